"""What one SQLite transaction does with the appends that it got."""
from __future__ import annotations

import sqlite3
from itertools import chain
from typing import Any

from ledgergraph.eventstore.backends import sqlite_sql as sql
from ledgergraph.eventstore.store import (
    NO_ROWS,
    Append,
    Appended,
    Outcome,
    QuestionRow,
    Rows,
    RunRow,
    TaskRow,
)
from ledgergraph.schemas.errors import IdempotencyConflict, WrongExpectedVersion
from ledgergraph.schemas.ids import Version

StreamIds = dict[str, int]


class Appends:
    """Appends within one transaction, each on the state that those before it left. Events and rows are kept back until
    `flush`, so that each table is written at once."""

    def __init__(self, db: sqlite3.Connection, known: StreamIds) -> None:
        self._db, self._known = db, known
        self.found: StreamIds = {}
        """Streams that this transaction looked up or made: known to others when it has committed."""
        self._position: int = db.execute(sql.LAST_POSITION).fetchone()[0]
        self._events: list[tuple[Any, ...]] = []
        self._rows = RowChanges()

    def append(self, a: Append) -> Outcome:
        stream = self._known.get(a.stream) or self._find(a.stream)
        last = a.events[-1]
        if stream is None:
            if a.expected_version:
                return WrongExpectedVersion(a.stream, a.expected_version, 0)
            stream = self._begin_stream(a)
            if a.key:
                self._db.execute(sql.KEEP_KEY, (stream, a.key, a.digest, last.version))
        else:
            if a.key and not self._db.execute(sql.KEEP_KEY, (stream, a.key, a.digest, last.version)).rowcount:
                return self._by_key(stream, a)
            moved = self._db.execute(sql.MOVE_HEAD, (last.version, last.hash, last.recorded_at, stream,
                                                     a.expected_version, a.expected_hash)).rowcount
            if not moved:
                return self._conflict(stream, a)
        self._keep(stream, a)
        return Appended(last.version)

    def flush(self) -> None:
        events, at = self._events, 0
        for size, statement in sql.NEW_EVENTS.items():
            while len(events) - at >= size:
                self._db.execute(statement, list(chain.from_iterable(events[at:at + size])))
                at += size
        if at < len(events):
            self._db.executemany(sql.NEW_EVENT, events[at:])
        self._rows.write(self._db)

    def _find(self, name: str) -> int | None:
        stream = self.found.get(name)
        if stream is None:
            row = self._db.execute(sql.STREAM_ID, (name,)).fetchone()
            if row is not None:
                stream = self.found[name] = row[0]
        return stream

    def _begin_stream(self, a: Append) -> int:
        last = a.events[-1]
        stream = self._db.execute(sql.NEW_STREAM, (a.stream, last.version, last.hash, last.recorded_at)).lastrowid
        assert stream is not None
        self.found[a.stream] = stream
        return stream

    def _by_key(self, stream: int, a: Append) -> Outcome:
        digest, version = self._db.execute(sql.BY_KEY, (stream, a.key)).fetchone()
        if digest != a.digest:
            return IdempotencyConflict(a.stream, a.key, digest.hex(), a.digest.hex())
        return Appended(Version(version), duplicate=True)

    def _conflict(self, stream: int, a: Append) -> Outcome:
        if a.key:
            self._db.execute(sql.DROP_KEY, (stream, a.key))
        version = self._db.execute(sql.HEAD_BY_ID, (stream,)).fetchone()[0]
        why = "its last event is another one" if version == a.expected_version else ""
        return WrongExpectedVersion(a.stream, a.expected_version, version, why)

    def _keep(self, stream: int, a: Append) -> None:
        at = self._position
        self._events.extend([(n, stream, e.version, e.type, e.recorded_at, e.key, e.hash, e.data)
                             for n, e in enumerate(a.events, at + 1)])
        self._position = at + len(a.events)
        if a.rows is not NO_ROWS:
            self._rows.add(a.rows)


class RowChanges:
    """What several appends do to the projections, the later over the earlier; None: the row goes."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskRow | None] = {}
        self._runs: dict[str, RunRow] = {}
        self._questions: dict[str, QuestionRow | None] = {}

    def add(self, rows: Rows) -> None:
        for task in rows.put_tasks:
            self._tasks[task.task] = task
        for run in rows.put_runs:
            self._runs[run.run] = run
        for question in rows.put_questions:
            self._questions[question.question] = question
        self._tasks.update(dict.fromkeys(rows.drop_tasks))
        self._questions.update(dict.fromkeys(rows.drop_questions))

    def write(self, db: sqlite3.Connection) -> None:
        if self._tasks:
            _change(db, self._tasks, sql.PUT_TASK, sql.DROP_TASK)
        if self._runs:
            db.executemany(sql.PUT_RUN, self._runs.values())
        if self._questions:
            _change(db, self._questions, sql.PUT_QUESTION, sql.DROP_QUESTION)


def _change(db: sqlite3.Connection, rows: dict[str, Any], put: str, drop: str) -> None:
    puts = [row for row in rows.values() if row is not None]
    drops = [(id_,) for id_, row in rows.items() if row is None]
    if puts:
        db.executemany(put, puts)
    if drops:
        db.executemany(drop, drops)
