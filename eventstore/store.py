"""The port: what every backend of the log does, and the values that cross it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from ledgergraph.eventstore.bell import Bell
from ledgergraph.schemas.envelope import StoredEvent
from ledgergraph.schemas.errors import StoreError
from ledgergraph.schemas.ids import Position, RunId, StreamId, TaskId, ThreadId, Version

TaskState = Literal["ready", "started", "waiting", "failed", "parked", "dead"]


class TaskRow(NamedTuple):
    """A task that is not done: a projection of its run's events, written with them."""

    task: TaskId
    run: RunId
    stream: StreamId
    node: str
    queue: str
    state: TaskState
    attempt: int
    worker: str
    """Who holds it; empty where nobody does."""
    due_at: int
    """When it may start, microseconds since 1970 UTC."""
    graph: str
    """Fingerprint of the graph that it belongs to."""


class RunRow(NamedTuple):
    """A run as lists show it: a projection of its stream's events, written with them."""

    run: RunId
    stream: StreamId
    thread: ThreadId
    graph: str
    """Name."""
    fingerprint: str
    status: str
    started_at: int
    changed_at: int
    version: Version
    """Of the last event that changed this row."""


class QuestionRow(NamedTuple):
    """An open question."""

    question: str
    run: RunId
    stream: StreamId
    task: TaskId
    node: str
    kind: str
    asked_at: int
    version: Version


class Rows(NamedTuple):
    """What an append changes in the projections that are written with it."""

    put_tasks: tuple[TaskRow, ...] = ()
    drop_tasks: tuple[TaskId, ...] = ()
    put_runs: tuple[RunRow, ...] = ()
    put_questions: tuple[QuestionRow, ...] = ()
    drop_questions: tuple[str, ...] = ()


NO_ROWS = Rows()


class Append(NamedTuple):
    """Events that the writer has already chained (`Chain.extend`), for one stream."""

    stream: StreamId
    expected_version: int
    expected_hash: bytes
    """Of the stream's last event; for the first event of a fork see `origin`."""
    events: Sequence[StoredEvent]
    key: str
    """Idempotency key of the whole append; empty: none."""
    digest: bytes
    """`content_digest` of the events."""
    rows: Rows = NO_ROWS
    origin: bytes = b""
    """For a new stream that forks another: the hash which its first event names as its previous one."""


class Appended(NamedTuple):
    version: Version
    """Of the stream after it."""
    duplicate: bool = False
    """True: this key had stored this content before; `version` is that append's last."""


Outcome = Appended | StoreError
"""WrongExpectedVersion or IdempotencyConflict as values: a conflict never fails its neighbours in a batch."""


class Head(NamedTuple):
    version: int
    hash: bytes
    recorded_at: int


class Worker(NamedTuple):
    """A process that holds tasks. Its tasks are held as long as it lives: here by its process, elsewhere by `until`."""

    worker: str
    host: str
    """Machine and boot, so that a process number means something."""
    pid: int
    born: int
    """The process's start as the system counts it; tells a reused number."""
    until: int
    """Microseconds since 1970 UTC."""


class Snapshot(NamedTuple):
    """A cache of a stream's folded state: any difference in `fingerprint` means replay."""

    stream: StreamId
    version: Version
    hash: bytes
    """Of the event at that version."""
    fingerprint: str
    """Of schema, reducers, and the code that made it."""
    data: bytes


class Log(Protocol):
    """Streams of events and their order."""

    @property
    def incarnation(self) -> str:
        """The log's own id, made with it."""
        ...

    @property
    def bell(self) -> Bell:
        """Rings after every append that this process committed."""
        ...

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        """An outcome for each, in one transaction; waits until they are durable. Several appends of one stream in a
        batch follow one another. Calls of several threads that come together are committed together. Raises InvalidInput,
        with nothing stored, for an append without events or with events that do not follow its expected version and hash."""
        ...

    def head(self, stream: StreamId) -> Head:
        """Version 0 and NO_HASH where there is no such stream."""
        ...

    def heads(self, after: str = "", limit: int = 10_000) -> list[tuple[StreamId, Head]]:
        """Every stream's end, by name, from the first name after the given one (in the database's order of names)."""
        ...

    def read_stream(self, stream: StreamId, after: int = 0, limit: int = 1_000_000, until: int | None = None) -> list[StoredEvent]:
        """Events with after < version <= until, in order; positions are filled where they are known."""
        ...

    def read_all(self, after: int = 0, limit: int = 1_000) -> list[StoredEvent]:
        """Events with position > after, in order, dense. Gives positions to what has none yet where no sequencer runs."""
        ...

    def last_position(self) -> Position: ...

    def now(self) -> int:
        """The database's time, as this process estimates it, in microseconds since 1970 UTC."""
        ...


class RowStore(Protocol):
    """Projections that are written with the log."""

    def tasks(self, run: RunId | None = None, state: TaskState | None = None, limit: int = 10_000) -> list[TaskRow]:
        """Those that are due first come first."""
        ...

    def runs(self, thread: ThreadId | None = None, status: str | None = None, limit: int = 1_000) -> list[RunRow]:
        """Newest first."""
        ...

    def run(self, run: RunId) -> RunRow | None: ...

    def questions(self, run: RunId | None = None, limit: int = 1_000) -> list[QuestionRow]:
        """Open ones, oldest first."""
        ...

    def replace_rows(self, rows: Rows) -> None:
        """Drops all rows of these projections and puts the given ones: the end of a rebuild."""
        ...


class Workers(Protocol):
    """Who is at work."""

    def beat(self, worker: Worker) -> None:
        """Puts the worker's row."""
        ...

    def worker(self, worker: str) -> Worker | None: ...


class Caches(Protocol):
    """What can be dropped and made again from the log."""

    def put_snapshot(self, snapshot: Snapshot) -> None: ...

    def drop_snapshots(self, stream: StreamId, before: int) -> None:
        """Those of the stream at versions below."""
        ...

    def snapshot(self, stream: StreamId, fingerprint: str, until: int | None = None) -> Snapshot | None:
        """The latest with this fingerprint at a version <= until."""
        ...

    def put_checkpoint(self, name: str, position: int, hash: bytes) -> None: ...

    def checkpoint(self, name: str) -> tuple[int, bytes] | None:
        """(position read up to, hash of the event there)."""
        ...


class Artifacts(Protocol):
    """Large values by the digest of their bytes."""

    def put_artifact(self, data: bytes) -> str:
        """Its SHA-256 in hex; storing the same bytes again is free."""
        ...

    def artifact(self, digest: str) -> bytes:
        """Raises DamagedLog where the bytes are not the digest's, KeyError where there are none."""
        ...


class EventStore(Log, RowStore, Workers, Caches, Artifacts, Protocol):
    """The log of one database and what lies beside it. All methods may be called from any thread. Errors:
    StoreUnavailable where the database does not answer or was closed, NewerLog where its format is newer than this code."""

    def close(self) -> None:
        """Gives the database back; closing twice is fine."""
        ...
