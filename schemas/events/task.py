"""task.*: what is scheduled, who tries it, and what came of it."""
from __future__ import annotations

from typing import Any, NamedTuple


class ReadyTask(NamedTuple):
    """One scheduled execution of a node, and its logical time."""

    task: str
    node: str
    epoch: int
    time: tuple[int, ...]
    index: int  # type: ignore[assignment]  # over tuple.index, which nobody asks of a task
    """Among the Sends of its firing."""
    rank: int


class Begun(NamedTuple):
    """A task that its worker starts in the very append that makes it ready: what task.started says of others."""

    task: str
    attempt: int
    worker: str
    code: str
    """Fingerprint of the node's code."""


class TasksReady(NamedTuple):
    """The tasks that one step of the decider released together."""

    tasks: list[ReadyTask]
    begun: list[Begun] = []
    """Those that start at once."""


class TaskStarted(NamedTuple):
    """A worker claims a task that was made ready before: its attempt is the fencing token."""

    task: str
    attempt: int
    worker: str


class TaskCompleted(NamedTuple):
    """A node returned: its update, and where it goes beside its static edges."""

    task: str
    attempt: int
    update: dict[str, Any]
    sent: list[Any] = []
    """Node names; a Send as [node, payload]."""
    blobs: dict[str, str] = {}
    """Fields of the update that are artifacts: their digests."""


class TaskFailed(NamedTuple):
    """An attempt raised. `retry_at` (microseconds): when it is tried again; None: not by itself."""

    task: str
    attempt: int
    kind: str
    """The error's type."""
    message: str
    trace: str
    retry_at: int | None = None
    continued: bool = False
    """The failure is a value: the run goes on without an update of this task."""


class TaskReleased(NamedTuple):
    """An attempt ended without an outcome; the task is ready again. `lost`: counts against a task that kills workers."""

    task: str
    attempt: int
    why: str
    lost: bool


class TaskRefused(NamedTuple):
    """A late outcome of an attempt that no longer counts: kept as a fact, not applied."""

    task: str
    attempt: int
    why: str
    digest: str


class TaskDead(NamedTuple):
    """A task that lost its workers too often is not tried again by itself."""

    task: str
    losses: int


class ContextRecorded(NamedTuple):
    """What a task read of clock, randomness and ids, in order: [kind, value] each."""

    task: str
    values: list[Any]


class CapRedirected(NamedTuple):
    """A firing over its cap went where its node's `on_cap` says."""

    node: str
    epoch: int
    time: tuple[int, ...]
    to: str


class BarrierProceeded(NamedTuple):
    """A starved barrier that may proceed fired with the sources that came."""

    target: str
    sources: list[str]
    missing: list[str]
