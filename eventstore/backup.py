"""A copy of a log while it is in use.

The main file of a database with a write-ahead log alone is not the database: what was committed last stands in the log
beside it. So the copy is made by SQLite, page by page, from one moment's state.
"""
from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import URL

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.backends.sqlite import SqliteStore
from ledgergraph.eventstore.backends.sqlite_file import SqliteFile, translated
from ledgergraph.eventstore.opening import parse_url, shown, sqlite_path
from ledgergraph.schemas.errors import DamagedLog, InvalidInput, OlderLog


def backup(url: str, target: str | Path) -> None:
    """Copies the log to a new file: everything that was committed when it began, verified, and durable when it returns.
    The copy is a log like any other and opens where it lies. A log with older tables can be copied too; then SQLite's own
    check takes the place of the chain's. Raises InvalidInput, StoreUnavailable, NotALog; DamagedLog, where the log itself
    is damaged. Where it raises, no target is left."""
    parsed, target = parse_url(url), Path(target)
    source = _source(parsed, target)
    partial = target.with_name(target.name + ".partial")
    try:
        _copy(source, partial)
        _verify(partial)
        _publish(partial, target)
    finally:
        for leftover in ("", "-wal", "-shm", "-journal", ".lock"):
            partial.with_name(partial.name + leftover).unlink(missing_ok=True)


def _source(url: URL, target: Path) -> Path:
    if url.drivername == "memory":
        raise InvalidInput("a log in memory ends with its process and cannot be copied. Keep it in a file (sqlite:///path.db).")
    if url.drivername != "sqlite":
        raise InvalidInput(f"a log in PostgreSQL is not copied to a file by ledgergraph. Use the database's own tool, which copies one "
                           f"moment's state while it is in use: pg_dump --format=custom --file={target} <connection to {shown(url)}>, "
                           "and pg_restore into an empty database.")
    source = Path(sqlite_path(url))
    if not source.exists():
        raise InvalidInput(f"there is no log at {source}. Name the one to copy.")
    if target.exists():
        raise InvalidInput(f"{target} exists. Give the path of a file that does not, so that no backup is overwritten.")
    if not target.parent.is_dir():
        raise InvalidInput(f"the folder {target.parent} does not exist. Make it (mkdir -p {target.parent}), or give another path.")
    return source


def _copy(source: Path, target: Path) -> None:
    """A reader's snapshot in a single step: writers go on meanwhile, and none of what they add can make it begin again."""
    file = SqliteFile(source)
    try:
        with file.reading() as db:
            try:
                with closing(sqlite3.connect(target)) as copy:
                    db.backup(copy)
            except sqlite3.Error as e:
                raise translated(e, target) from e
    finally:
        file.close()


def _verify(copy: Path) -> None:
    file = SqliteFile(copy)
    try:
        with file.reading() as db:
            found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    finally:
        file.close()
    if found != "ok":
        raise DamagedLog("?", 0, f"SQLite's check of the copy says: {found}")
    with suppress(OlderLog), closing(SqliteStore(copy)) as store:
        chain.verify(store)


def _publish(partial: Path, target: Path) -> None:
    """Under its name only when it is whole and flushed. A link, not a rename: it fails where somebody was quicker."""
    _flush(partial)
    try:
        os.link(partial, target)
    except FileExistsError as e:
        raise InvalidInput(f"{target} was made by somebody else meanwhile. Give another path.") from e
    except OSError:  # a file system without hard links
        os.rename(partial, target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
