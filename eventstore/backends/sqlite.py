"""The log in one SQLite file: WAL, every commit flushed, one writing connection a process, several processes at once."""
from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ledgergraph.eventstore.backends import sqlite_sql as sql
from ledgergraph.eventstore.backends.memory import damaged_artifact
from ledgergraph.eventstore.backends.sqlite_append import Appends, RowChanges, StreamIds
from ledgergraph.eventstore.backends.sqlite_file import SqliteFile
from ledgergraph.eventstore.backends.sqlite_schema import prepare
from ledgergraph.eventstore.bell import Bell
from ledgergraph.eventstore.group_commit import Flushing, GroupCommit
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
_KNOWN_MAX = 100_000
"""Streams whose numbers are kept in memory."""


class SqliteStore:
    """An EventStore in a file. The writer gives an event its position in the append: BEGIN IMMEDIATE lets one transaction
    at a time look for the last position, so that positions are dense and in the order of commits."""

    def __init__(self, path: str | Path) -> None:
        """Makes the log where there is no file yet. Raises StoreUnavailable, NotALog, NewerLog, OlderLog."""
        self._file = SqliteFile(Path(path))
        try:
            self._incarnation = prepare(self._file)
        except BaseException:
            self._file.close()
            raise
        self._bell = Bell()
        self._known: StreamIds = {}
        self._group = GroupCommit(self._commit, self._bell)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def file(self) -> SqliteFile:
        return self._file

    @property
    def incarnation(self) -> str:
        return self._incarnation

    @property
    def bell(self) -> Bell:
        return self._bell

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        return self._group.append(batch)

    def _commit(self, batch: list[Append], flushing: Flushing) -> list[Outcome]:
        with self._file.writing(sum(len(e.data) for a in batch for e in a.events), flushing) as db:
            appends = Appends(db, self._known)
            outcomes = [appends.append(a) for a in batch]
            appends.flush()
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        self._known.update(appends.found)
        return outcomes

    def head(self, stream: StreamId) -> Head:
        row = self._one(sql.HEAD, stream)
        return Head._make(row) if row else Head(0, NO_HASH, 0)

    def heads(self, after: str = "", limit: int = 10_000) -> list[tuple[StreamId, Head]]:
        return [(StreamId(name), Head(*rest)) for name, *rest in self._all(sql.HEADS, after, limit)]

    def read_stream(self, stream: StreamId, after: int = 0, limit: int = 1_000_000, until: int | None = None) -> list[StoredEvent]:
        rows = self._all(sql.READ_STREAM, stream, after, _END if until is None else until, limit)
        return list(map(StoredEvent._make, rows))

    def read_all(self, after: int = 0, limit: int = 1_000) -> list[StoredEvent]:
        return list(map(StoredEvent._make, self._all(sql.READ_ALL, after, limit)))

    def last_position(self) -> Position:
        row = self._one(sql.LAST_POSITION)
        assert row is not None
        return Position(row[0])

    def now(self) -> int:
        return time.time_ns() // 1_000

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
        changes = RowChanges()
        changes.add(rows)
        with self._file.writing() as db:
            for table in ("tasks", "runs", "questions"):
                db.execute(f"DELETE FROM {table}")
            changes.write(db)

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
        self._file.close()

    def _one(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        with self._file.reading() as db:
            return db.execute(statement, values).fetchone()  # type: ignore[no-any-return]

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._file.reading() as db:
            return db.execute(statement, values).fetchall()

    def _listed(self, texts: dict[tuple[str, ...], str], limit: int, **filters: str | None) -> list[tuple[Any, ...]]:
        given = {name: value for name, value in filters.items() if value is not None}
        return self._all(texts[tuple(given)], *given.values(), limit)

    def _put(self, statement: str, *values: Any) -> None:
        with self._file.writing(sum(len(v) for v in values if isinstance(v, bytes))) as db:
            db.execute(statement, values)
