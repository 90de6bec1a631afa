"""The parts of a run's state that concern one task: its attempts, effects and questions."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ledgergraph.projections.schedule import FiringKey
from ledgergraph.schemas.ids import TaskId, Version

State = Literal["ready", "started", "retry", "failed", "parked", "dead"]


class Failure(NamedTuple):
    """A task that failed where its node's failures are values: the run went on without an update of it."""

    key: FiringKey
    kind: str
    message: str

    @property
    def node(self) -> str:
        return self.key.node


class Effect:
    """What is recorded of one effect."""

    __slots__ = ("asked", "attempt", "error", "key", "name", "number", "on_unknown", "outcome", "request", "result")

    def __init__(self, name: str, number: int, key: str, request: str, on_unknown: str, attempt: int) -> None:
        self.name, self.number, self.key, self.request = name, number, key, request
        self.on_unknown, self.attempt = on_unknown, attempt
        self.outcome: Literal["unknown", "succeeded", "failed"] = "unknown"
        self.result: Any = None
        self.error: tuple[str, str] | None = None


class Question:
    """One question of a task."""

    __slots__ = ("answer", "answered_by", "asked", "asked_at", "kind", "number", "open", "task", "value", "version")

    def __init__(self, asked: Any, at: int, version: Version) -> None:
        self.asked, self.asked_at, self.version = asked, at, version
        self.task, self.number, self.kind, self.value = TaskId(asked.task), asked.number, asked.kind, asked.value
        self.open = True
        self.answer: Any = None
        self.answered_by = ""


class Task:
    """A scheduled execution of a node that is not done."""

    __slots__ = ("attempt", "due_at", "effects", "failures", "generation", "id", "index", "key", "losses", "origin", "payload",
                 "questions", "rank", "recorded", "state", "worker")

    def __init__(self, id: TaskId, key: FiringKey, index: int, rank: int, payload: Any, origin: Any = None) -> None:
        self.id, self.key, self.index, self.rank, self.payload, self.origin = id, key, index, rank, payload, origin
        self.state: State = "ready"
        self.generation = 0
        """How often it was started anew, since the state that it saw was edited."""
        self.attempt = 0
        self.worker = ""
        self.due_at = 0
        """When it may start, microseconds since 1970 UTC."""
        self.failures = 0
        """Attempts that raised, since it was last resumed."""
        self.losses = 0
        """Attempts whose worker died."""
        self.effects: dict[str, Effect] = {}
        """By key."""
        self.recorded: list[Any] = []
        """[kind, value] of what it read of clock, randomness and ids."""
        self.questions: list[Question] = []
        """Asked by it, in order."""

    def anew(self, earlier: Task) -> None:
        """Takes over what an earlier start of it has used up, and what it did outside: attempts count on, so that nothing is taken for
        its duplicate, and a call that was made for the same request is not made again."""
        self.attempt, self.effects, self.generation = earlier.attempt, earlier.effects, earlier.generation + 1
