"""Why a run stopped, as the error that its caller gets."""
from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ledgergraph.projections.run_state import RunState
from ledgergraph.schemas.errors import (
    BarrierStarved,
    ConflictingUpdates,
    GraphRecursionError,
    InvalidUpdateError,
)
from ledgergraph.schemas.errors import (
    RunCancelled as Cancelled,
)
from ledgergraph.schemas.errors import (
    RunFailed as Failed,
)
from ledgergraph.schemas.events.run import RunCancelled, RunCapped, RunFailed
from ledgergraph.schemas.ids import TaskId


def raise_stopped(run: RunState, errors: Mapping[TaskId, BaseException]) -> NoReturn:
    """Raises what fits the event that stopped the run: the node's own error where it was raised in this process."""
    stopped = run.stopped
    if isinstance(stopped, RunCapped):
        raise capped(run, stopped)
    if isinstance(stopped, RunCancelled):
        raise Cancelled(f"run {run.id} was cancelled{': ' + stopped.reason if stopped.reason else ''}.")
    assert isinstance(stopped, RunFailed)
    if stopped.why == "starved":
        raise BarrierStarved(stopped.node, stopped.message.split(", "))
    if stopped.why == "conflict":
        raise conflict(run, stopped)
    error = errors.get(TaskId(stopped.task))
    if isinstance(error, Exception):
        error.add_note(f"run {run.id}, thread {run.thread!r}, node {stopped.node!r}: `ledgergraph resume {run.id}` tries it again")
        raise error
    if stopped.kind in ("UnknownField", "InvalidValue", "UnstorableValue"):
        raise InvalidUpdateError(stopped.message)
    raise Failed(f"run {run.id} failed in node {stopped.node!r}: {stopped.kind}: {stopped.message} "
                 f"`ledgergraph resume {run.id}` tries it again.")


def capped(run: RunState, e: RunCapped) -> GraphRecursionError:
    counts = ", ".join(f"{n} {k}x" for n, k in e.counts.items())
    return GraphRecursionError(
        f"run {run.id} reached {e.cap} = {e.limit} before node {e.node!r}, on the cycle {' -> '.join(e.path)} (visits: {counts}). "
        f"It can go on: invoke(None, ...) or `ledgergraph resume {run.id} --max-steps N`; or let a route of the cycle end it.")


def conflict(run: RunState, e: RunFailed) -> ConflictingUpdates:
    field, _, nodes = e.message.partition(": ")
    return ConflictingUpdates(field, nodes.split(", "), f"at {e.node!r}" if e.node else "at the end")
