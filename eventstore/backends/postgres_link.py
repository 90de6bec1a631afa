"""Connections to one PostgreSQL database: how they are made, lent for reads, and made again after the server was gone."""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import URL, Engine, NullPool, create_engine
from sqlalchemy.dialects.postgresql import psycopg as dialects
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from ledgergraph.eventstore.backends.postgres_errors import (
    LOCK_TIMEOUT_S,
    closed,
    is_silence,
    translated,
    unreachable,
)
from ledgergraph.eventstore.opening import shown
from ledgergraph.schemas.errors import StoreUnavailable

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
    "SET enable_seqscan = off", "SET enable_hashjoin = off", "SET enable_mergejoin = off", "SET jit = off"))


class PostgresLink:
    """One database as this process uses it. All methods may be called from any thread."""

    def __init__(self, url: URL) -> None:
        self.place = shown(url)
        dialect: Any = dialects.dialect  # untyped in SQLAlchemy
        arguments, options = dialect().create_connect_args(url)
        self._arguments, self._options = list(arguments), {**_DEFAULTS, **options}
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._closed = False
        self._engine = create_engine("postgresql+psycopg://", creator=self.connect, poolclass=QueuePool, pool_size=READERS_MAX,
                                     max_overflow=0, pool_reset_on_return=None)

    def connect(self) -> Driver:
        """A new connection in autocommit. Raises StoreUnavailable."""
        try:
            connection: Driver = psycopg.connect(*self._arguments, **self._options, autocommit=True)
            connection.execute(_SETTINGS.encode())
        except (psycopg.Error, UnicodeError) as e:
            raise unreachable(self.place, str(e)) from e
        return connection

    def reconnect(self) -> Driver:
        """A new connection to a server that was there before: waits for it while it starts again."""
        deadline, pause_s = time.monotonic() + RECONNECT_S, 0.01
        while True:
            self.refuse_misuse()
            try:
                return self.connect()
            except StoreUnavailable:
                if time.monotonic() + pause_s > deadline:
                    raise
            time.sleep(pause_s)  # a server that is not there yet cannot signal
            pause_s = min(pause_s * 1.5, 0.5)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement that only reads, or that may be sent twice."""
        return self.use(lambda db: db.execute(statement.encode(), values, prepare=True, binary=True).fetchall())

    def use(self, work: Callable[[Driver], _T]) -> _T:
        """What `work` returns with a connection of the pool; where that was broken, once more with a new one."""
        self.refuse_misuse()
        try:
            return self._lend(work)
        except psycopg.Error as e:
            if not is_silence(e):
                raise translated(e, self.place) from e
        self._engine.dispose()  # those that wait in the pool are broken as well
        self.reconnect().close()
        try:
            return self._lend(work)
        except psycopg.Error as e:
            raise translated(e, self.place) from e

    def _lend(self, work: Callable[[Driver], _T]) -> _T:
        try:
            lent = self._engine.raw_connection()
        except NoneFree as e:
            raise StoreUnavailable(f"all {READERS_MAX} connections to {self.place} have been in use for a long time. "
                                   "Read less at once, and try again.") from e
        connection = _driver(lent)
        try:
            return work(connection)
        except BaseException:
            if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    lent.invalidate()
            raise
        finally:
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
