"""New databases for each measurement: SQLite files, and a PostgreSQL as the tests have it (fsync on)."""
from __future__ import annotations

import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from sqlalchemy import make_url

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from postgres import NoPostgres, new_database, server_url

T = TypeVar("T")


class Stores(AbstractContextManager["Stores"]):
    """Where the databases of one kind are made. At the end of a `with` block what was opened in it is closed and dropped."""

    def __init__(self, kind: str, folder: Path, server: str = "") -> None:
        self.kind, self.folder, self._server = kind, folder, server
        self._opened = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def path(self) -> str:
        """Of a new SQLite file."""
        return str(self.folder / f"{uuid.uuid4().hex}.db")

    def url(self) -> str:
        """A new database, as ledgergraph names it."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.path()}"
        return self._opened.enter_context(new_database(self._server))

    def keep(self, thing: T) -> T:
        """Closes it at the end."""
        self._opened.enter_context(closing(thing))  # type: ignore[type-var]
        return thing

    def version(self) -> str:
        if self.kind == "sqlite":
            return f"SQLite {sqlite3.sqlite_version}"
        with psycopg.connect(conninfo(self._server)) as db:
            return f"PostgreSQL {db.info.server_version // 10_000}.{db.info.server_version % 10_000}"


@contextmanager
def all_stores(only: str | None = None) -> Iterator[list[Stores]]:
    """Both kinds, or one. Without a PostgreSQL it says so and goes on."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as servers:
        folder = Path(name)
        out = [Stores("sqlite", folder)] if only in (None, "sqlite") else []
        if only in (None, "postgres"):
            try:
                out.append(Stores("postgres", folder, servers.enter_context(server_url())))
            except NoPostgres as e:
                print(f"PostgreSQL is left out: {e}", file=sys.stderr)
        yield out


def conninfo(url: str) -> str:
    """A PostgreSQL URL as libpq takes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def bytes_of(url: str) -> int:
    """What a database takes on the disk: tables, indexes, large values; SQLite's write-ahead log put into the file."""
    if url.startswith("sqlite:///"):
        return _file_bytes(Path(url.removeprefix("sqlite:///")))
    with psycopg.connect(conninfo(url), autocommit=True) as db:
        row: Any = db.execute("SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' "
                              "AND relnamespace = 'public'::regnamespace").fetchone()
        return int(row[0])


def _file_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size
