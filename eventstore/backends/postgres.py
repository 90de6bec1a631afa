"""The log in a PostgreSQL database: one round trip an append, positions given by a sequencer, many processes at once."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ledgergraph.eventstore.backends import postgres_sql as sql
from ledgergraph.eventstore.backends.memory import damaged_artifact
from ledgergraph.eventstore.backends.postgres_append import Appender
from ledgergraph.eventstore.backends.postgres_clock import PostgresClock
from ledgergraph.eventstore.backends.postgres_link import Driver, PostgresLink
from ledgergraph.eventstore.backends.postgres_schema import prepare
from ledgergraph.eventstore.bell import Bell
from ledgergraph.eventstore.group_commit import GroupCommit
from ledgergraph.eventstore.opening import parse_url
from ledgergraph.eventstore.store import (
    Append,
    Head,
    Outcome,
    QuestionRow,
    Rows,
    RunRow,
    Snapshot,
    TaskRow,
    TaskState,
    Worker,
)
from ledgergraph.schemas.envelope import NO_HASH, StoredEvent
from ledgergraph.schemas.ids import Position, RunId, StreamId, ThreadId

_END = 2**63 - 1
SEQUENCED_MAX = 10_000
"""Appends that one statement gives positions to."""


class PostgresStore:
    """An EventStore in a PostgreSQL database (15 or newer). An append leaves its events without positions; whoever reads the
    whole log gives positions to what was committed by then, in one statement under a lock."""

    def __init__(self, url: str) -> None:
        """Makes the log in an empty database. Raises InvalidStoreUrl, StoreUnavailable, NotALog, NewerLog, OlderLog."""
        self._link = PostgresLink(parse_url(url))
        try:
            self._link.incarnation = prepare(self._link)
            self._clock = PostgresClock(self._link)
            self._appender = Appender(self._link)
        except BaseException:
            self._link.close()
            raise
        self._bell = Bell()
        self._group = GroupCommit(self._appender.commit, self._bell)
        self._reached = 0
        """A position that is known to be given: pages up to it need no sequencing."""

    @property
    def incarnation(self) -> str:
        return self._link.incarnation

    @property
    def bell(self) -> Bell:
        return self._bell

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        return self._group.append(batch)

    def head(self, stream: StreamId) -> Head:
        row = self._one(sql.HEAD, stream)
        return Head._make(row) if row else Head(0, NO_HASH, 0)

    def heads(self, after: str = "", limit: int = 10_000) -> list[tuple[StreamId, Head]]:
        return [(StreamId(name), Head(*rest)) for name, *rest in self._all(sql.HEADS, after, limit)]

    def read_stream(self, stream: StreamId, after: int = 0, limit: int = 1_000_000, until: int | None = None) -> list[StoredEvent]:
        rows = self._all(sql.READ_STREAM, stream, stream, after, _END if until is None else until, limit)
        return list(map(StoredEvent._make, rows))

    def read_all(self, after: int = 0, limit: int = 1_000) -> list[StoredEvent]:
        if after + limit > self._reached:
            self.sequence()
        return list(map(StoredEvent._make, self._all(sql.READ_ALL, after, limit, after, limit)))

    def last_position(self) -> Position:
        return self.sequence()

    def sequence(self) -> Position:
        """Gives a position to every committed event that has none, and returns the last one given. Any number of callers
        may do so at once: each statement holds the sequencer's lock."""
        numbered = SEQUENCED_MAX
        while numbered >= SEQUENCED_MAX:
            [(numbered, self._reached)] = self._all(sql.SEQUENCE, SEQUENCED_MAX)
        return Position(self._reached)

    def now(self) -> int:
        return self._clock.now()

    def tasks(self, run: RunId | None = None, state: TaskState | None = None, limit: int = 10_000) -> list[TaskRow]:
        return list(map(TaskRow._make, self._listed(sql.TASKS, limit, run=run, state=state)))

    def runs(self, thread: ThreadId | None = None, status: str | None = None, limit: int = 1_000) -> list[RunRow]:
        return list(map(RunRow._make, self._listed(sql.RUNS, limit, thread=thread, status=status)))

    def run(self, run: RunId) -> RunRow | None:
        row = self._one(sql.RUN, run)
        return RunRow._make(row) if row else None

    def questions(self, run: RunId | None = None, limit: int = 1_000) -> list[QuestionRow]:
        return list(map(QuestionRow._make, self._listed(sql.QUESTIONS, limit, run=run)))

    def replace_rows(self, rows: Rows) -> None:
        self._link.use(lambda db: _replace(db, rows))

    def beat(self, worker: Worker) -> None:
        self._put(sql.PUT_WORKER, *worker)

    def worker(self, worker: str) -> Worker | None:
        row = self._one(sql.WORKER, worker)
        return Worker._make(row) if row else None

    def put_snapshot(self, snapshot: Snapshot) -> None:
        self._put(sql.PUT_SNAPSHOT, *snapshot)

    def drop_snapshots(self, stream: StreamId, before: int) -> None:
        self._put(sql.DROP_SNAPSHOTS, stream, before)

    def snapshot(self, stream: StreamId, fingerprint: str, until: int | None = None) -> Snapshot | None:
        row = self._one(sql.SNAPSHOT, stream, fingerprint, _END if until is None else until)
        return Snapshot._make(row) if row else None

    def put_checkpoint(self, name: str, position: int, hash: bytes) -> None:
        self._put(sql.PUT_CHECKPOINT, name, position, hash)

    def checkpoint(self, name: str) -> tuple[int, bytes] | None:
        row = self._one(sql.CHECKPOINT, name)
        return (row[0], row[1]) if row else None

    def put_artifact(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if self._one(sql.HAS_ARTIFACT, digest) is None:
            self._put(sql.PUT_ARTIFACT, digest, data)
        return digest

    def artifact(self, digest: str) -> bytes:
        row = self._one(sql.ARTIFACT, digest)
        if row is None:
            raise KeyError(digest)
        data: bytes = row[0]
        if hashlib.sha256(data).hexdigest() != digest:
            raise damaged_artifact(digest)
        return data

    def close(self) -> None:
        self._link.close()
        self._appender.close()

    def _one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._link.ask(statement, *values)
        return rows[0] if rows else None

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._link.ask(statement, *values)

    def _listed(self, statements: dict[tuple[str, ...], str], limit: int, **filters: str | None) -> list[tuple[Any, ...]]:
        given = {name: value for name, value in filters.items() if value is not None}
        return self._all(statements[tuple(given)], *given.values(), limit)

    def _put(self, statement: str, *values: Any) -> None:
        self._link.use(lambda db: db.execute(statement.encode(), values, prepare=True, binary=True))


def _replace(db: Driver, rows: Rows) -> None:
    with db.transaction(), db.cursor() as cursor:
        cursor.execute("LOCK TABLE tasks, runs, questions IN SHARE ROW EXCLUSIVE MODE")
        for table in ("tasks", "runs", "questions"):
            cursor.execute(f"DELETE FROM {table}".encode())
        for statement, part in ((sql.PUT_TASK, rows.put_tasks), (sql.PUT_RUN, rows.put_runs), (sql.PUT_QUESTION, rows.put_questions)):
            cursor.executemany(statement.encode(), part)
