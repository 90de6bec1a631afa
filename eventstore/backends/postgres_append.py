"""The connection that appends: a batch is one call of `append_events`, one round trip, one transaction."""
from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from ledgergraph.eventstore.backends import postgres_sql as sql
from ledgergraph.eventstore.backends.postgres_errors import failure, unreachable
from ledgergraph.eventstore.backends.postgres_link import Driver, PostgresLink
from ledgergraph.eventstore.backends.postgres_wire import (
    BYTEAS,
    INT4S,
    INT8S,
    TEXTS,
    RowType,
    byteas,
    int4s,
    int8s,
    read_array,
    read_numbers,
    texts,
)
from ledgergraph.eventstore.group_commit import Flushing
from ledgergraph.eventstore.store import NO_ROWS, Append, Appended, Outcome
from ledgergraph.schemas.crash_points import reach
from ledgergraph.schemas.errors import IdempotencyConflict, InvalidInput, WrongExpectedVersion
from ledgergraph.schemas.ids import Version

_STORED, _DUPLICATE, _MOVED_ON, _OTHER_CONTENT = range(4)
"""`o_status` of append_events."""
CANCEL_S = 2.0
"""How long an interrupted caller waits for the server to hear of it."""
_KNOWN_MAX = 100_000
"""Streams whose numbers are kept in memory."""
_MAKE, _FIND = 0, -1
_EVENT_TYPES = (INT8S, TEXTS, INT4S, INT8S, BYTEAS, TEXTS, BYTEAS, INT4S, INT4S, INT8S, INT8S, TEXTS, TEXTS, BYTEAS, BYTEAS)


class _Lost(Exception):
    """The connection broke while the answer was due: the batch may be stored or not."""


class _Rows(NamedTuple):
    tasks: RowType
    runs: RowType
    questions: RowType

    def parameters(self, batch: Sequence[Append]) -> list[bytes]:
        rows = [a.rows for a in batch]
        tasks, questions = [r.put_tasks for r in rows], [r.put_questions for r in rows]
        drop_tasks, drop_questions = [r.drop_tasks for r in rows], [r.drop_questions for r in rows]
        runs = [r.put_runs for r in rows]
        return [self.tasks.rows(x for part in tasks for x in part), _ends(tasks),
                texts(x for part in drop_tasks for x in part), _ends(drop_tasks),
                self.runs.rows(x for part in runs for x in part), _ends(runs),
                self.questions.rows(x for part in questions for x in part), _ends(questions),
                texts(x for part in drop_questions for x in part), _ends(drop_questions)]

    def types(self) -> list[int]:
        return [self.tasks.array, INT4S, TEXTS, INT4S, self.runs.array, INT4S, self.questions.array, INT4S, TEXTS, INT4S]


def _ends(parts: Sequence[Sequence[object]]) -> bytes:
    return int4s(list(accumulate(map(len, parts))))


class Appender:
    """Commits batches. One thread at a time may be in `commit`; `close` may come from any."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self._mutex = threading.Lock()
        self._connection: Driver | None = None
        self._known: dict[str, int] = {}
        self._rows: _Rows
        self._open(link.connect())

    def commit(self, batch: list[Append], flushing: Flushing = lambda: None) -> list[Outcome]:
        """An outcome for each, durable. Raises StoreUnavailable, InvalidInput for a text that cannot be stored; nothing is
        stored then, as far as is known."""
        with self._mutex:
            self._link.refuse_misuse()
            if self._connection is None:
                self._open(self._link.connect())
            try:
                return self._append(batch, flushing)
            except _Lost:
                self._open(self._link.connect())
            try:
                return self._settled(batch, self._append(batch, flushing))
            except _Lost as e:
                raise unreachable(self._link.place, str(e)) from e

    def close(self) -> None:
        with self._mutex:
            self._drop()

    def _open(self, connection: Driver) -> None:
        self._drop()
        self._known.clear()  # what is there now may be another database: a backup, a standby
        self._connection = connection
        try:
            types = {name: (row, array, tuple(columns)) for name, row, array, columns in connection.execute(sql.ROW_TYPES).fetchall()}
            self._rows = _Rows(*(RowType(*types[name]) for name in ("tasks", "runs", "questions")))
            _prepare(connection.pgconn, b"append", _EVENT_TYPES, self._link.place)
            _prepare(connection.pgconn, b"append_rows", (*_EVENT_TYPES, *self._rows.types()), self._link.place)
        except BaseException as e:
            self._drop()
            if isinstance(e, psycopg.Error):
                raise unreachable(self._link.place, str(e)) from e
            raise

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _abandon(self) -> None:
        """This thread was interrupted while an answer was due, which would be the next caller's: the connection goes, and
        what it still waits for is called off."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=CANCEL_S)
        self._drop()

    def _append(self, batch: list[Append], flushing: Flushing) -> list[Outcome]:
        statement, parameters = self._statement(batch)
        assert self._connection is not None
        try:
            result = _call(self._connection.pgconn, statement, parameters, flushing)
        except psycopg.Error as e:
            self._drop()
            raise _Lost(str(e)) from e
        except BaseException:
            self._abandon()
            raise
        return self._outcomes(batch, self._checked(result))

    def _statement(self, batch: list[Append]) -> tuple[bytes, list[bytes]]:
        try:
            parameters = self._parameters(batch)
            if all(a.rows is NO_ROWS for a in batch):
                return b"append", parameters
            return b"append_rows", parameters + self._rows.parameters(batch)
        except UnicodeEncodeError as e:
            raise InvalidInput(f"a text cannot be stored ({e}); nothing was. Leave the character out.") from e

    def _parameters(self, batch: list[Append]) -> list[bytes]:
        places: dict[str, int] = {}
        for a in batch:
            places.setdefault(a.stream, len(places) + 1)
        begun = {a.stream for a in batch if a.expected_version == 0}
        known = self._known
        ids = [known.get(s) or (_MAKE if s in begun else _FIND) for s in places]
        events = [e for a in batch for e in a.events]
        counts = [len(a.events) for a in batch]
        return [
            int8s(ids), texts(places), int4s([places[a.stream] for a in batch]),
            int8s([a.expected_version for a in batch]), byteas([a.expected_hash for a in batch]),
            texts([a.key for a in batch]), byteas([a.digest for a in batch]), int4s(list(accumulate(counts))),
            int4s([n for n, count in enumerate(counts, 1) for _ in range(count)]),
            int8s([e.version for e in events]), int8s([e.recorded_at for e in events]),
            texts([e.type for e in events]), texts([e.key for e in events]),
            byteas([e.hash for e in events]), byteas([e.data for e in events])]

    def _checked(self, result: PGresult) -> PGresult:
        if result.status == ExecStatus.TUPLES_OK:
            return result
        sqlstate = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode() or None
        message = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(errors="replace")
        if sqlstate is None or sqlstate.startswith(("08", "57P")):
            self._drop()
            raise _Lost(message)
        raise failure(self._link.place, sqlstate, message)

    def _outcomes(self, batch: list[Append], result: PGresult) -> list[Outcome]:
        statuses, versions = read_numbers(result.get_value(0, 0)), read_numbers(result.get_value(0, 1))
        streams, digests = read_numbers(result.get_value(0, 2)), read_array(result.get_value(0, 3))
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        self._known.update((a.stream, stream) for a, stream in zip(batch, streams, strict=True) if stream)
        return [_outcome(*one) for one in zip(batch, statuses, versions, digests, strict=True)]

    def _settled(self, batch: list[Append], outcomes: list[Outcome]) -> list[Outcome]:
        """What a second sending of a batch came to: where the first was stored after all, its own events stand in the log,
        and nobody else could have made their hashes."""
        return [Appended(a.events[-1].version) if o != Appended(a.events[-1].version) and self._is_stored(a) else o
                for a, o in zip(batch, outcomes, strict=True)]

    def _is_stored(self, a: Append) -> bool:
        last = a.events[-1]
        return bool(self._link.ask(sql.IS_STORED, a.stream, last.version, last.hash))


def _prepare(connection: PGconn, name: bytes, types: Sequence[int], place: str) -> None:
    values = ", ".join(f"${n}" for n in range(1, len(types) + 1))
    result = connection.prepare(name, f"SELECT * FROM append_events({values})".encode(), types)
    if result.status != ExecStatus.COMMAND_OK:
        sqlstate = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode() or None
        raise failure(place, sqlstate, result.error_message.decode(errors="replace"))


def _call(connection: PGconn, statement: bytes, parameters: list[bytes], flushing: Flushing) -> PGresult:
    """The statement's result. The driver's own cursor does the same in three times the time. Raises psycopg.Error."""
    connection.send_query_prepared(statement, parameters, [1] * len(parameters), 1)
    poll = select.poll()
    poll.register(connection.socket, select.POLLIN | select.POLLOUT)
    while connection.flush():
        if any(events & ~select.POLLOUT for _, events in poll.poll()):
            connection.consume_input()
    reach("committing")
    flushing()
    poll.modify(connection.socket, select.POLLIN)
    while connection.is_busy():
        poll.poll()
        connection.consume_input()
    result = connection.get_result()
    if result is None:
        raise psycopg.OperationalError("the connection gave no result")
    while connection.get_result() is not None:
        pass
    return result


def _outcome(a: Append, status: int | None, version: int | None, digest: bytes | None) -> Outcome:
    at = version or 0
    if status in (_STORED, _DUPLICATE):
        return Appended(Version(at), duplicate=status == _DUPLICATE)
    if status == _OTHER_CONTENT:
        return IdempotencyConflict(a.stream, a.key, (digest or b"").hex(), a.digest.hex())
    why = "its last event is another one" if at == a.expected_version else ""
    return WrongExpectedVersion(a.stream, a.expected_version, at, why)
