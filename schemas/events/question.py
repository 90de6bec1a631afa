"""question.*: what people are asked and what they answer."""
from __future__ import annotations

from typing import Any, NamedTuple


class QuestionAsked(NamedTuple):
    """A task is parked on it."""

    question: str
    task: str
    number: int
    """Among the task's questions, from 0."""
    revision: int
    kind: str
    """interrupt; effect: whether an effect of unknown outcome happened."""
    value: Any
    shown: str
    """Digest of what is shown."""


class QuestionAnswered(NamedTuple):
    question: str
    revision: int
    value: Any
    shown: str = ""
    """Digest of what the person saw, where they say it."""
    why: str = ""
    by: str = ""
    """Who answered: the event's actor, for the node that asked."""


class QuestionSuperseded(NamedTuple):
    """It no longer stands: its task starts anew."""

    question: str
    why: str
