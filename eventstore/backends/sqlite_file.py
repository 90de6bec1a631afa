"""One SQLite file as this process uses it: its connections, the lock beside it, its checkpoints, its errors.

SQLite before 3.51.3 can lose a commit where one connection writes while another resets the write-ahead log (WAL). There,
every commit, checkpoint and close of every process happens under one lock on `<path>.lock`. Automatic checkpoints are
off everywhere: the writer makes them, under that lock, when the WAL has grown.
"""
from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from ledgergraph.schemas.crash_points import reach
from ledgergraph.schemas.errors import NotALog, StoreError, StoreUnavailable

WAL_MAX = 8_000_000
"""Bytes that this process commits, about, before it puts the WAL into the database. The WAL's file stays as long as it is:
to flush what overwrites it is quicker by a third than to flush what makes it longer."""
WAL_KEPT_MAX = 64_000_000
"""Bytes that are left of a WAL that a long reader has made larger."""
_TRANSACTION_BYTES = 6 * 4_120
"""A transaction changes six pages or more: one of each table and index."""
BUSY_S = 30.0
"""How long a connection waits for another process."""
APPLICATION_ID = int.from_bytes(b"LGRH", "big")
"""Stands at offset 68 of the file's header (sqlite.org/fileformat.html, 1.3)."""
_HEADER = b"SQLite format 3\0"
_SAFE_VERSION = (3, 51, 3)


class FileLock:
    """Exclusive between processes. Where it cannot be had within BUSY_S, StoreUnavailable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1 if sqlite3.sqlite_version_info >= _SAFE_VERSION else _open_lock(path)

    def acquire(self) -> None:
        if self._fd < 0:
            return
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()

    def _wait(self) -> None:
        deadline, pause_s = time.monotonic() + BUSY_S, 0.000_05
        while time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.3, 0.005)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                continue
        raise StoreUnavailable(f"another process has held {self._path} for {BUSY_S:g} s, so that nothing could be written. "
                               f"See who it is (`fuser {self._path}`) and try again.")

    def release(self) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as e:
        raise StoreUnavailable(f"the lock file {path} cannot be opened: {e.strerror}. Every process that uses this log needs to "
                               "read and write it and its folder.") from e


class SqliteFile:
    """Connections to one file. `writing` is a transaction on the only connection of this process that writes; `reading`
    lends one that cannot write and waits for nobody."""

    def __init__(self, path: Path) -> None:
        """Raises StoreUnavailable for a path that cannot be used, NotALog for a file that is no SQLite database."""
        self.path = path
        refuse_unusable(path)
        self.lock = FileLock(path.with_name(path.name + ".lock"))
        self._mutex = threading.Lock()
        self._pid = os.getpid()
        self._wal_bytes = 0
        self._engine = _engine(path)
        self._lent: PoolProxiedConnection | None = None
        self.lock.acquire()
        try:
            self._lent = self._engine.raw_connection()
            self._writer = _driver(self._lent)
            self._writer.execute("PRAGMA query_only = 0")
            self._mark_new()
            if self._writer.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise StoreUnavailable(f"{path} cannot be used with a write-ahead log. Put it on a local disk.")
            self._inode = os.stat(path).st_ino
        except sqlite3.Error as e:
            self._engine.dispose()
            raise translated(e, path) from e
        finally:
            self.lock.release()

    @contextmanager
    def writing(self, size: int = 0, flushing: Callable[[], None] | None = None) -> Generator[sqlite3.Connection]:
        """A transaction that is durable when the block has ended, and undone where it raised. `size`: about how many bytes
        it stores. `flushing` is called when only the flush is left. Raises StoreUnavailable."""
        with self._mutex:
            self._refuse_misuse()
            self.lock.acquire()
            db = self._writer
            try:
                self._refuse_replaced()
                db.execute("BEGIN IMMEDIATE")
                yield db
                reach("committing")
                if flushing is not None:
                    flushing()
                db.execute("COMMIT")
            except sqlite3.Error as e:
                raise translated(e, self.path) from e
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                else:
                    self._checkpoint_if_large(size)
                self.lock.release()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        if self._lent is None:
            raise self._closed()
        lent = self._engine.raw_connection()
        try:
            yield _driver(lent)
        except sqlite3.Error as e:
            raise translated(e, self.path) from e
        finally:
            lent.close()

    @contextmanager
    def alone(self) -> Generator[sqlite3.Connection]:
        """The writing connection outside a transaction, with every other writer of every process held off."""
        with self._mutex:
            self._refuse_misuse()
            self.lock.acquire()
            try:
                yield self._writer
            except sqlite3.Error as e:
                raise translated(e, self.path) from e
            finally:
                self.lock.release()

    def close(self) -> None:
        with self._mutex:
            if self._lent is None:
                return
            self.lock.acquire()  # the last connection that closes checkpoints
            try:
                self._lent.close()
                self._lent = None
                self._engine.dispose()
            finally:
                self.lock.release()
                self.lock.close()

    def _checkpoint_if_large(self, size: int) -> None:
        """Raises nothing: what was committed before is durable, and another commit tries again. A passive checkpoint waits
        for no reader; the next commit after one that was complete begins the WAL anew."""
        self._wal_bytes += size + _TRANSACTION_BYTES
        if self._wal_bytes >= WAL_MAX:
            self._wal_bytes = 0
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _mark_new(self) -> None:
        """Before the WAL is on, so that the mark stands in the file itself, where `refuse_unusable` reads it."""
        if self._writer.execute("PRAGMA page_count").fetchone()[0] == 0:
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _refuse_misuse(self) -> None:
        if self._lent is None:
            raise self._closed()
        if os.getpid() != self._pid:
            raise StoreUnavailable(f"the log {self.path} was opened by process {self._pid}, of which this one is a fork; SQLite's "
                                   "connections cannot be shared. Open the log after the fork.")

    def _refuse_replaced(self) -> None:
        """What is committed to a file that was deleted or replaced would be gone with this process."""
        try:
            inode = os.stat(self.path).st_ino
        except FileNotFoundError:
            inode = 0
        if inode != self._inode:
            raise StoreUnavailable(f"the file {self.path} was removed or replaced while this process had it open; nothing was "
                                   "stored. Close the log and open it again.")

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"the log {self.path} was closed. Open it again with open_store('sqlite:///{self.path}').")


def refuse_unusable(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreUnavailable(f"the folder {path.parent} of the log {path.name} does not exist. "
                               f"Make it (mkdir -p {path.parent}), or give another path.")
    if path.is_dir():
        raise StoreUnavailable(f"{path} is a folder. Give the path of a file in it, for example {path / 'ledger.db'}.")
    if not path.exists() or path.stat().st_size == 0:
        return
    try:
        with path.open("rb") as f:
            header = f.read(100)
    except OSError as e:
        raise StoreUnavailable(f"{path} cannot be read: {e.strerror}. Give this user access to it.") from e
    if not header.startswith(_HEADER):
        raise NotALog(str(path), "it is no SQLite database")
    if header[68:72] != APPLICATION_ID.to_bytes(4, "big"):
        raise NotALog(str(path), "it is the SQLite database of another program")


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=QueuePool, pool_size=8, max_overflow=-1, pool_reset_on_return=None,
        connect_args={"isolation_level": None, "check_same_thread": False, "timeout": BUSY_S, "cached_statements": 256})

    @event.listens_for(engine, "connect")
    def _(connection: sqlite3.Connection, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        for pragma in ("wal_autocheckpoint = 0", "synchronous = FULL", "foreign_keys = OFF", "query_only = 1",
                       f"journal_size_limit = {WAL_KEPT_MAX}"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _driver(lent: PoolProxiedConnection) -> sqlite3.Connection:
    connection = lent.driver_connection
    assert isinstance(connection, sqlite3.Connection)
    return connection


def translated(error: sqlite3.Error, path: Path) -> Exception:
    """SQLite's error as ours, naming the file; itself where it is no matter of the file."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_FULL"):
        return StoreUnavailable(f"the disk that holds {path} is full; nothing was stored. Free some space and try again.")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreUnavailable(f"another process has kept {path} locked for {BUSY_S:g} s; nothing was stored. Try again.")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return StoreUnavailable(f"{path} cannot be written ({error}); nothing was stored. Check the rights of the file, of its "
                                "folder, and of the files -wal, -shm and .lock beside it.")
    if name.startswith("SQLITE_NOTADB"):
        return NotALog(str(path), "it is no SQLite database")
    if name.startswith("SQLITE_CORRUPT"):
        return StoreError(f"the file {path} is damaged ({error}). Do not write to it; restore a backup.")
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(f"the disk did not do what was asked for {path} ({error}). Look into the system's log.")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreUnavailable(f"the log {path} was closed.")
    return error
