"""thread.*, state.*, head.*: what people do to a thread's history."""
from __future__ import annotations

from typing import Any, NamedTuple


class StateEdited(NamedTuple):
    """An update by a person, above all that was recorded by then."""

    update: dict[str, Any]
    rank: int
    as_node: str | None = None
    sent: list[Any] = []
    """Where `as_node` goes beside its static edges."""
    blobs: dict[str, str] = {}


class ThreadForked(NamedTuple):
    """The first event of a branch: what it continues, and its own run."""

    thread: str
    run: str
    parent: str
    parent_version: int
    parent_hash: str
    parent_run: str
    why: str = ""


class HeadMoved(NamedTuple):
    """From here on the thread shows this stream."""

    stream: str
