"""Connections to one PostgreSQL database: how they are made, lent for reads, and made again after the server was gone."""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import URL, Engine, NullPool, create_engine
from sqlalchemy.dialects.postgresql import psycopg as dialects
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from ledgergraph.eventstore.backends import postgres_sql as sql
from ledgergraph.eventstore.backends.postgres_errors import (
    LOCK_TIMEOUT_S,
    closed,
    is_silence,
    translated,
    unreachable,
)
from ledgergraph.eventstore.opening import shown
from ledgergraph.schemas.errors import ForeignLog, StoreUnavailable

Driver = psycopg.Connection[tuple[Any, ...]]
_T = TypeVar("_T")

READERS_MAX = 8
"""Connections for reads, beside the one that appends."""
RECONNECT_S = 10.0
"""How long a call waits for a server that has been there before to come back."""
_DEFAULTS = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
             "tcp_user_timeout": 30_000, "application_name": "ledgergraph", "client_encoding": "UTF8"}
"""What libpq is told where the URL says nothing else: a server that vanished is noticed within a minute."""
_SETTINGS = "; ".join((
    "SET synchronous_commit = on",  # whatever the database's default: an append that returned is durable
    "SET default_transaction_isolation = 'read committed'",  # the functions look again after they have waited for a lock
    f"SET lock_timeout = '{LOCK_TIMEOUT_S}s'",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    # Every statement here takes few rows by an index. A plan made before the first statistics, or for other values, would read whole tables.
    "SET enable_seqscan = off", "SET enable_hashjoin = off", "SET enable_mergejoin = off", "SET jit = off",
    "SET plan_cache_mode = force_generic_plan"))


class PostgresLink:
    """One database as this process uses it. All methods may be called from any thread."""

    def __init__(self, url: URL) -> None:
        self.place = shown(url)
        self.incarnation = ""
        """Of the log that was found there; once it is set, no other one is taken for it."""
        dialect: Any = dialects.dialect  # untyped in SQLAlchemy
        arguments, options = dialect().create_connect_args(url)
        self._arguments, self._options = list(arguments), {**_DEFAULTS, **options}
        self._password = url.password
        self._pid = os.getpid()
        self._closed = False
        self._engine = create_engine("postgresql+psycopg://", creator=self.connect, poolclass=QueuePool, pool_size=READERS_MAX,
                                     max_overflow=0, pool_reset_on_return=None)

    def connect(self) -> Driver:
        """A new connection in autocommit. A server that was there before is waited for while it starts again. Raises
        StoreUnavailable, and ForeignLog where another log has taken the place of this one."""
        deadline, pause_s = time.monotonic() + (RECONNECT_S if self.incarnation else 0.0), 0.01
        while True:
            self.refuse_misuse()
            try:
                return self._connect()
            except StoreUnavailable:
                if time.monotonic() + pause_s > deadline:
                    raise
            time.sleep(pause_s)  # a server that is not there yet cannot signal
            pause_s = min(pause_s * 1.5, 0.5)

    def _connect(self) -> Driver:
        connection: Driver | None = None
        try:
            connection = psycopg.connect(*self._arguments, **self._options, autocommit=True)
            connection.execute(_SETTINGS.encode())
            self._refuse_other_log(connection)
        except BaseException as e:
            if connection is not None:
                connection.close()
            if isinstance(e, psycopg.Error | UnicodeError):
                raise unreachable(self.place, self._hidden(str(e))) from e
            raise
        return connection

    def _refuse_other_log(self, connection: Driver) -> None:
        if not self.incarnation:
            return
        row = connection.execute(sql.INCARNATION).fetchone()
        if row != (self.incarnation,):
            raise ForeignLog(f"the database {self.place} now holds another log ({row and row[0]}) than the one that was opened "
                             f"({self.incarnation}); nothing was stored. Close it and open it again, knowing that.")

    def _hidden(self, message: str) -> str:
        return message.replace(str(self._password), "***") if self._password else message

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement that only reads, or that may be sent twice."""
        return self.use(lambda db: db.execute(statement.encode(), values, prepare=True, binary=True).fetchall())

    def use(self, work: Callable[[Driver], _T]) -> _T:
        """What `work`, which may be done twice, returns with a connection of the pool. A server that went away has broken
        all of them: each that fails is made anew when it is taken out next."""
        for tries_left in reversed(range(READERS_MAX + 2)):
            self.refuse_misuse()
            try:
                return self._lend(work)
            except psycopg.Error as e:
                if not tries_left or not is_silence(e):
                    raise translated(e, self.place) from e
        raise AssertionError("unreachable")

    def _lend(self, work: Callable[[Driver], _T]) -> _T:
        try:
            lent = self._engine.raw_connection()
        except NoneFree as e:
            raise StoreUnavailable(f"all {READERS_MAX} connections to {self.place} have been in use for a long time. "
                                   "Read less at once, and try again.") from e
        connection = _driver(lent)
        try:
            return work(connection)
        finally:
            if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    lent.invalidate()
            lent.close()

    def schema_engine(self) -> Engine:
        """For what changes tables: connections of its own, with transactions."""
        return create_engine("postgresql+psycopg://", creator=self._transactional, poolclass=NullPool)

    def _transactional(self) -> Driver:
        connection = self.connect()
        connection.autocommit = False
        return connection

    def refuse_misuse(self) -> None:
        if self._closed:
            raise closed(self.place)
        if os.getpid() != self._pid:
            raise StoreUnavailable(f"the log {self.place} was opened by process {self._pid}, of which this one is a fork; a connection "
                                   "cannot be shared. Open the log after the fork.")

    def close(self) -> None:
        self._closed = True
        if os.getpid() == self._pid:
            self._engine.dispose()


def _driver(lent: PoolProxiedConnection) -> Driver:
    connection = lent.driver_connection
    assert isinstance(connection, psycopg.Connection)
    return cast(Driver, connection)
