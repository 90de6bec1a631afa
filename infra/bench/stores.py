"""New databases for each measurement, on SQLite files and on the PostgreSQL that tests start (fsync on)."""
from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from postgres import NoPostgres, PostgresServer


class Stores:
    """Where logs of one kind are made."""

    def __init__(self, kind: str, folder: Path, server: str = "") -> None:
        self.kind, self._folder, self._server = kind, folder, server

    def path(self) -> str:
        return str(self._folder / f"{uuid.uuid4().hex}.db")

    def conninfo(self) -> str:
        """A new PostgreSQL database, as libpq names it."""
        name = f"bench_{uuid.uuid4().hex}"
        with psycopg.connect(self._server.replace("+psycopg", ""), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return self._server.replace("+psycopg", "").rpartition("/")[0] + f"/{name}"

    def url(self) -> str:
        """A new log, as ledgergraph names it."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.path()}"
        return self.conninfo().replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def all_stores(only: str | None = None) -> Iterator[list[Stores]]:
    with tempfile.TemporaryDirectory() as folder:
        out = [Stores("sqlite", Path(folder))] if only in (None, "sqlite") else []
        try:
            server = PostgresServer() if only in (None, "postgres") else None
        except NoPostgres as e:
            print(f"PostgreSQL is left out: {e}")
            server = None
        try:
            yield out + ([Stores("postgres", Path(folder), server.url)] if server else [])
        finally:
            if server:
                server.remove()


def bytes_of(url: str) -> int:
    """What a database takes on the disk, its write-ahead log put into it."""
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        import sqlite3
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        return path.stat().st_size
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as db:
        row = db.execute("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
                         ).fetchone()
        return int(row[0] or 0) if row else 0
