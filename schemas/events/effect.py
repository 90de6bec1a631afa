"""effect.*: interactions with the outside, each under a key that a retry has again."""
from __future__ import annotations

from typing import Any, NamedTuple


class EffectIntended(NamedTuple):
    """It is about to be asked for. Without an outcome after it, what happened is unknown."""

    task: str
    attempt: int
    name: str
    number: int
    """Among the task's effects of this name."""
    key: str
    request: str
    """Digest of the request."""
    on_unknown: str
    asked: Any = None
    """The request itself, where the caller gave one."""


class EffectSucceeded(NamedTuple):
    task: str
    key: str
    result: Any
    blob: str = ""
    """Digest of the artifact that holds the result, where it is large."""


class EffectErred(NamedTuple):
    """The call raised: the next attempt calls again under the same key."""

    task: str
    key: str
    kind: str
    message: str
