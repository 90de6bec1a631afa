"""Makes appends as a worker does: one chain a stream."""
from __future__ import annotations

from collections.abc import Sequence

from ledgergraph.eventstore.store import (
    NO_ROWS,
    Append,
    Appended,
    EventStore,
    QuestionRow,
    Rows,
    RunRow,
    TaskRow,
)
from ledgergraph.schemas.envelope import NO_HASH, Chain, NewEvent, content_digest
from ledgergraph.schemas.ids import RunId, StreamId, TaskId, ThreadId, Version

NOW = 1_700_000_000_000_000


def new_events(count: int, payload: bytes = b'{"a":1}', type_: str = "task.completed") -> list[NewEvent]:
    return [NewEvent(type_, payload) for _ in range(count)]


class StreamWriter:
    """Appends to one stream, each after the one before it."""

    def __init__(self, stream: str, version: int = 0, hash_: bytes = NO_HASH) -> None:
        self.stream = StreamId(stream)
        self.chain = Chain(self.stream, version, hash_)
        self.origin = hash_ if version == 0 and hash_ != NO_HASH else b""

    def next(self, events: int | Sequence[NewEvent] = 1, key: str = "", rows: Rows = NO_ROWS, now: int = NOW) -> Append:
        made = new_events(events) if isinstance(events, int) else list(events)
        version, hash_ = self.chain.version, self.chain.hash
        stored = self.chain.extend(made, now)
        origin = self.origin if version == 0 else b""
        return Append(self.stream, version, hash_, stored, key, content_digest(made), rows, origin)

    def twin(self) -> StreamWriter:
        """Another writer that has read as far."""
        twin = StreamWriter(self.stream)
        twin.chain, twin.origin = self.chain.copy(), self.origin
        return twin

    def store(self, store: EventStore, events: int | Sequence[NewEvent] = 1, key: str = "", rows: Rows = NO_ROWS) -> Append:
        append = self.next(events, key, rows)
        assert store.append([append]) == [Appended(Version(self.chain.version))]
        return append


def task_row(task: str, *, run: str = "run-1", state: str = "ready", due_at: int = 0) -> TaskRow:
    return TaskRow(TaskId(task), RunId(run), StreamId("thread:a"), "score", "default", state, 1, "", due_at, "f1")  # type: ignore[arg-type]


def run_row(run: str, *, thread: str = "a", status: str = "running", started_at: int = 0) -> RunRow:
    return RunRow(RunId(run), StreamId(f"thread:{thread}"), ThreadId(thread), "factors", "f1", status, started_at, started_at, Version(1))


def question_row(question: str, *, run: str = "run-1", asked_at: int = 0) -> QuestionRow:
    return QuestionRow(question, RunId(run), StreamId("thread:a"), TaskId("t"), "review", "approval", asked_at, Version(3))
