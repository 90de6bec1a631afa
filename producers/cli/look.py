"""runs, show, state, events: what the log says."""
from __future__ import annotations

import time
from typing import Any

import click

from ledgergraph.consumers.snapshots import snapshot
from ledgergraph.eventstore.store import EventStore
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import console, json_option, log_option, plain, put_json, table, teaches, when
from ledgergraph.producers.cli.runs import row_of, state_of
from ledgergraph.projections.history import History
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.schemas.envelope import record
from ledgergraph.schemas.errors import InvalidInput, RunNotFound
from ledgergraph.schemas.ids import TaskId

POLL_S = 0.5
STATUSES = ("running", "waiting", "failed", "capped", "completed", "cancelled")


@click.command()
@click.option("--status", default=None, type=click.Choice(STATUSES), help="Only runs with this status.")
@click.option("--thread", default=None, help="Only runs of this thread.")
@click.option("--limit", default=50, type=click.IntRange(1), show_default=True, help="How many, newest first.")
@log_option
@json_option
@teaches
def runs(status: str | None, thread: str | None, limit: int, log: str | None, as_json: bool) -> None:
    """List runs, newest first."""
    rows = open_log(log).runs(thread, status, limit)  # type: ignore[arg-type]
    if as_json:
        put_json([r._asdict() for r in rows])
    else:
        table(f"{len(rows)} runs", ["run", "thread", "graph", "status", "started", "changed"],
              [(r.run, r.thread, r.graph, r.status, when(r.started_at), when(r.changed_at)) for r in rows])


@click.command()
@click.argument("run")
@log_option
@json_option
@teaches
def show(run: str, log: str | None, as_json: bool) -> None:
    """Show a RUN: how it stands, its tasks and questions, what comes next."""
    store = open_log(log)
    s = state_of(store, row_of(store, run))
    shown = snapshot(s)
    nodes = _visits(s)
    data = {"run": run, "thread": s.thread, "stream": s.stream, "version": int(s.version), "status": shown.metadata["status"],
            "graph": s.current.spec.name, "fingerprint": s.current.spec.fingerprint, "clock": s.current.spec.clock,
            "as_of": s.current.started.as_of, "next": list(shown.next), "conflicts": shown.metadata["conflicts"],
            "tasks": [plain(t) for t in shown.tasks], "nodes": nodes}
    if as_json:
        put_json(data)
        return
    table(f"run {run}", ["", ""], [(k, str(v)) for k, v in data.items() if k not in ("tasks", "nodes")])
    table("nodes", ["node", "firings"], list(nodes.items()))
    if shown.tasks:
        table("tasks that are not done", ["task", "node", "state", "attempt", "error"],
              [(t.id, t.name, t.state, t.attempt, t.error or "") for t in shown.tasks])


def _visits(s: StreamState) -> dict[str, int]:
    return {n: s.current.visits_of(n) for n in s.current.spec.names if s.current.visits_of(n)}


@click.command()
@click.argument("run")
@click.option("--at", type=int, default=None, help="A version of the run's stream.")
@click.option("--task", default=None, help="What this task saw, instead of the state.")
@log_option
@json_option
@teaches
def state(run: str, at: int | None, task: str | None, log: str | None, as_json: bool) -> None:
    """The state of a RUN: now, at a version, or as a task saw it."""
    store = open_log(log)
    if at is not None and task:
        raise InvalidInput("--at and --task are two questions: leave one of them out.")
    values = _seen(store, run, task) if task else snapshot(state_of(store, row_of(store, run), at)).values
    if as_json:
        put_json(values)
    else:
        table(f"state of {run}" + (f" at version {at}" if at is not None else "") + (f" as task {task} saw it" if task else ""),
              ["field", "value"], [(k, str(plain(v))[:500]) for k, v in values.items()])


def _seen(store: EventStore, run: str, task: str) -> dict[str, Any]:
    """The fold that a task saw, whether it is done or not."""
    past, row = History(store), row_of(store, run)
    loaded = past.load(row.stream, 0)
    for stored, event in past.events(row.stream):
        loaded.state.evolve(event, stored.recorded_at)
        known = loaded.state.run.tasks.get(TaskId(task)) if loaded.state.run else None
        if known is not None:
            return dict(loaded.state.current.pre[known.key].totals)
    raise RunNotFound(f"task {task!r} of run {run}", "`ledgergraph events RUN` shows the tasks.")


@click.command()
@click.argument("run")
@click.option("--follow", is_flag=True, help="Wait for further events until the run ends.")
@click.option("--payload", is_flag=True, help="Show what each event holds.")
@log_option
@json_option
@teaches
def events(run: str, follow: bool, payload: bool, log: str | None, as_json: bool) -> None:
    """The events of a RUN's stream, in order."""
    store = open_log(log)
    row = row_of(store, run)
    if follow and as_json:
        raise InvalidInput("--follow prints as it goes: leave --json out, or leave --follow out.")
    past, after = History(store), 0
    while True:
        page = [_line(stored, event, payload or as_json) for stored, event in past.events(row.stream, after)]
        after = page[-1]["version"] if page else after
        _print(page, as_json)
        row = store.run(row.run) or row
        if not follow or row.status in ("completed", "cancelled", "failed", "capped"):
            return
        time.sleep(POLL_S)


def _line(stored: Any, event: Any, payload: bool) -> dict[str, Any]:
    header = record(stored)
    line = {"version": int(stored.version), "position": stored.position, "recorded_at": when(stored.recorded_at), "type": stored.type,
            "actor": header.actor, "code": header.code, "hash": stored.hash.hex()[:16], "what": _what(event)}
    return {**line, "payload": plain(event)} if payload else line


def _what(event: Any) -> str:
    names = ("graph", "as_of", "node", "task", "attempt", "question", "name", "worker", "status", "why", "cap", "kind", "message", "reason")
    parts = [f"{n}={getattr(event, n)}" for n in names if getattr(event, n, None)]
    if hasattr(event, "tasks"):
        parts.append(", ".join(f"{t.node}@{'.'.join(map(str, t.time)) or '-'}" for t in event.tasks))
    if hasattr(event, "update"):
        parts.append("update: " + (", ".join(event.update) or "nothing"))
    return "  ".join(parts)[:160]


def _print(page: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        put_json(page)
    elif page and "payload" in page[0]:
        for line in page:
            console.print(f"{line['version']:>5}  {line['type']:<20} {line['payload']}", markup=False)
    elif page:
        table("", ["version", "recorded", "type", "what"], [(x["version"], x["recorded_at"], x["type"], x["what"]) for x in page])
