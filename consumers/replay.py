"""Replay of a stored run: its nodes run again on recorded inputs and effects, and must come to the recorded updates."""
from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.command import Abandoned
from ledgergraph.consumers.context import NodeContext
from ledgergraph.consumers.execute import Outcome, run_async, run_sync
from ledgergraph.projections.history import History
from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.schemas import codec
from ledgergraph.schemas.envelope import StoredEvent, record
from ledgergraph.schemas.errors import FingerprintMismatch, RunNotFound
from ledgergraph.schemas.events.run import RunStarted
from ledgergraph.schemas.events.task import TaskCompleted, TasksReady
from ledgergraph.schemas.events.thread import ThreadForked
from ledgergraph.schemas.ids import RunId, StreamId, TaskId

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay came to something else than the log."""

    stream: str
    version: int
    type: str
    node: str
    field: str
    """The state's field; `sent` for targets, `error` where the node raised, `schedule` where today's decider differs."""
    recorded: str
    replayed: str
    recorded_code: str
    loaded_code: str


@dataclass
class Verified:
    """What a replay compared. `differences`: all of them, the first one first."""

    run: RunId
    events: int = 0
    nodes: int = 0
    fields: int = 0
    effects: int = 0
    """Effects whose recorded result was returned, none of them called."""
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def ok(self) -> bool:
        return not self.differences


class NoLog:
    """Takes nothing: a replay writes nothing and streams nothing."""

    def record(self, ctx: NodeContext, events: Sequence[Any]) -> None:
        raise Abandoned(f"node {ctx.node!r} does something in the replay that the log has no record of: {type(events[-1]).__name__}")

    def stream(self, chunk: Any) -> None:
        return


def verify_run(past: History, binding: Binding, run: RunId, progress: Progress | None = None) -> Verified:
    """Runs every completed task of the run again and compares. Raises RunNotFound, FingerprintMismatch; a difference is a value
    of the result."""
    row = past.store.run(run)
    if row is None:
        raise RunNotFound(f"run {run!r}")
    if row.fingerprint != binding.spec.fingerprint:
        raise FingerprintMismatch(run, row.graph, row.fingerprint, binding.spec.fingerprint)
    out = Verified(run)
    for stored, event, state in _lived(past, row.stream, run):
        out.events += 1
        if isinstance(event, TasksReady):
            _compare_schedule(out, stored, event, state.current)
        elif isinstance(event, TaskCompleted):
            _compare_task(out, stored, event, state.current, binding)
            if progress is not None:
                progress(out.nodes)
    return out


def _lived(past: History, stream: StreamId, run: RunId) -> Iterator[tuple[StoredEvent, Any, StreamState]]:
    """The run's events, each with the state before it; a branch's run lived through its parents' events, too."""
    line = past.lineage(stream)
    wanted = _runs_of(past, [s for s, _ in line], run)
    state = StreamState(line[0][0], past.spec)
    for name, last in line:
        if state.stream != name:
            state.stream, state.version = name, type(state.version)(0)
        inside = False
        for stored, event in past.events(name, 0, last):
            if isinstance(event, RunStarted | ThreadForked):
                inside = event.run == wanted.get(name)
            if inside:
                yield stored, event, state
            state.evolve(event, stored.recorded_at)


def _runs_of(past: History, line: Sequence[StreamId], run: RunId) -> dict[str, str]:
    """Which run of each stream of the line the run continues."""
    wanted: dict[str, str] = {line[-1]: run}
    for child, parent in zip(line[::-1], line[-2::-1], strict=False):
        fork = next(past.events(child))[1]
        if not isinstance(fork, ThreadForked) or fork.run != wanted[child]:
            break
        wanted[parent] = fork.parent_run
    return wanted


def _compare_schedule(out: Verified, stored: StoredEvent, event: TasksReady, run: RunState) -> None:
    recorded = {(t.node, t.epoch, t.time, t.rank) for t in event.tasks}
    today = {(d.key.node, d.key.epoch, d.key.time, d.rank) for d in run.schedule.due()}
    if not recorded <= today:
        odd = sorted(recorded - today)
        out.differences.append(Difference(stored.stream, stored.version, stored.type, odd[0][0], "schedule", str(odd), str(sorted(today)), "", ""))


def _compare_task(out: Verified, stored: StoredEvent, event: TaskCompleted, run: RunState, binding: Binding) -> None:
    task = run.tasks[TaskId(event.task)]
    node = task.key.node
    as_of = datetime.fromisoformat(run.started.as_of) if run.started.as_of else None
    ctx = NodeContext(run.id, run.thread, node, task, event.attempt, as_of, NoLog(), run.failures_before(task.key), calls_allowed=False)
    view = run.pre[task.key]
    if binding.nodes[node].is_async:
        outcome = asyncio.run(run_async(binding, view, ctx))
    else:
        outcome = run_sync(binding, view, ctx)
    out.nodes += 1
    out.effects += sum(e.outcome == "succeeded" for e in task.effects.values())
    codes = record(stored).code, binding.nodes[node].code
    for what, recorded, replayed in _unequal(out, event, outcome):
        out.differences.append(Difference(stored.stream, stored.version, stored.type, node, what, recorded, replayed, *codes))


def _unequal(out: Verified, event: TaskCompleted, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """(what, recorded, replayed) of everything that differs."""
    if outcome.error is not None or outcome.parked is not None:
        why = outcome.error if outcome.error is not None else "it asks a question that the log does not have"
        yield "error", "an update", f"{type(why).__name__}: {why}" if isinstance(why, BaseException) else why
        return
    for name in sorted({*event.update, *outcome.encoded}):
        out.fields += 1
        recorded = codec.encode(event.update[name]) if name in event.update else b"(nothing)"
        replayed = outcome.encoded.get(name, b"(nothing)")
        if recorded != replayed:
            yield name, *_parting(recorded, replayed)
    if codec.encode(list(event.sent)) != codec.encode(outcome.sent):
        yield "sent", str(event.sent), str(outcome.sent)


def _parting(a: bytes, b: bytes, width: int = 60) -> tuple[str, str]:
    """Both around the first byte at which they part."""
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, at - 20)
    return a[start:start + width].decode(errors="replace"), b[start:start + width].decode(errors="replace")
