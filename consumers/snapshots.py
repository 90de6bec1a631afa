"""What a person sees of a thread: its state now, at every version, and what comes next."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ledgergraph.consumers.command import Interrupt
from ledgergraph.projections.history import History
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.schemas.copying import fresh
from ledgergraph.schemas.errors import InvalidInput
from ledgergraph.schemas.ids import StreamId

Config = dict[str, Any]
_SHOWN = ("run.started", "task.completed", "state.edited", "thread.forked")
"""Events after which the state is another one."""


@dataclass(frozen=True)
class TaskView:
    """A task that is not done."""

    id: str
    name: str
    state: str
    attempt: int
    error: str | None
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True)
class StateSnapshot:
    """The state of a thread at a version of its stream."""

    values: dict[str, Any]
    next: tuple[str, ...]
    """Nodes that are to run or running."""
    config: Config
    """Names this very version."""
    metadata: dict[str, Any]
    """run, status, version, stream, and conflicts: fields whose parallel writes nothing has settled."""
    created_at: str | None
    parent_config: Config | None
    tasks: tuple[TaskView, ...]
    interrupts: tuple[Interrupt, ...]


def config_of(thread: str, stream: str, version: int) -> Config:
    return {"configurable": {"thread_id": thread, "checkpoint_id": f"{stream}@{version}"}}


def parse_checkpoint(text: str) -> tuple[StreamId, int]:
    """(stream, version) of a checkpoint id. Raises InvalidInput."""
    stream, at, version = text.rpartition("@")
    if not at or not version.isdigit() or not stream.startswith(("thread:", "fork:")):
        raise InvalidInput(f"{text!r} names no version of a stream. Take the config of a StateSnapshot; it looks like 'thread:a@12'.")
    return StreamId(stream), int(version)


def snapshot(s: StreamState, parent: Config | None = None) -> StateSnapshot:
    """What the state shows."""
    run = s.run
    if run is None:
        return StateSnapshot({}, (), config_of(s.thread, s.stream, s.version), {}, None, parent, (), ())
    view = run.view()
    asked = tuple(Interrupt(fresh(q.value), id) for id, q in run.questions.items())
    tasks = tuple(TaskView(t.id, t.key.node, t.state, t.attempt, _error(run.failures.get(t.id)),
                           tuple(Interrupt(fresh(q.value), q.asked.question) for q in t.questions if q.open))
                  for t in run.tasks.values())
    metadata = {"run": run.id, "status": run.status, "version": int(s.version), "stream": s.stream,
                "conflicts": {f: [w.key.node for w in ws] for f, ws in view.conflicts().items()}}
    return StateSnapshot({k: fresh(v) for k, v in view.totals.items()}, run.next_nodes(), config_of(s.thread, s.stream, s.version),
                         metadata, _iso(s.changed_at), parent, tasks, asked)


def _error(failure: tuple[str, str] | None) -> str | None:
    return None if failure is None else f"{failure[0]}: {failure[1]}"


def _iso(at: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).isoformat()


def history(past: History, stream: StreamId, until: int | None = None) -> Iterator[StateSnapshot]:
    """A snapshot for every append that changed the state, oldest first; a branch's own history follows its parents'."""
    line = past.lineage(stream)
    state = StreamState(line[0][0], past.spec)
    parent: Config | None = None
    for name, last in line:
        if state.stream != name:
            state.stream, state.version = name, type(state.version)(0)
        shown = False
        for stored, event in past.events(name, 0, until if last is None else last):
            if shown and stored.type not in ("tasks.ready", "run.completed"):
                yield (s := snapshot(state, parent))
                parent, shown = s.config, False
            state.evolve(event, stored.recorded_at)
            shown = shown or stored.type in _SHOWN
        if shown:
            yield (s := snapshot(state, parent))
            parent = s.config
