"""run.*: the life of a run."""
from __future__ import annotations

from typing import Any, NamedTuple


class RunStarted(NamedTuple):
    """A run begins in its thread, from the fold that the thread's last run ended with."""

    run: str
    thread: str
    graph: str
    version: str
    """The graph author's."""
    fingerprint: str
    spec: str
    """Digest of the artifact that holds the graph's spec."""
    clock: int
    """Version of the scheduling rules."""
    input: dict[str, Any]
    """Its first update."""
    initial: dict[str, Any] = {}
    """What the state's schema begins with, of the fields that the thread has not."""
    sent: list[Any] = []
    """Where a route of START went."""
    blobs: dict[str, str] = {}
    """Fields of the input that are artifacts: their digests."""
    as_of: str | None = None
    """ISO 8601 with zone: what was known by then is all that it may read."""
    max_steps: int | None = None
    options: dict[str, Any] = {}
    """What the caller asked for otherwise: durability, labels."""


class RunCompleted(NamedTuple):
    """Nothing is left to do."""

    rank: int
    """The highest that was reached."""


class RunFailed(NamedTuple):
    """A task failed for good, updates conflict, or a barrier starves: nothing new is scheduled; it can be resumed."""

    why: str
    """node, conflict, starved."""
    task: str
    node: str
    kind: str
    message: str


class RunCapped(NamedTuple):
    """A firing came to a cap and is parked; the run can be resumed with a higher one."""

    cap: str
    """max_steps or max_visits."""
    limit: int
    node: str
    path: list[str]
    """The cycle that it went round."""
    counts: dict[str, int]
    """Visits of the nodes on it."""


class RunResumed(NamedTuple):
    """Somebody goes on with a failed, capped or crashed run."""

    why: str
    max_steps: int | None = None


class RunCancelled(NamedTuple):
    reason: str


class RunAdopted(NamedTuple):
    """A person let another version of the graph serve the run."""

    fingerprint: str
    spec: str
    reason: str
