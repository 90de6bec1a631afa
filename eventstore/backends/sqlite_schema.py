"""Makes the tables in a new SQLite file, and looks at those of an old one."""
from __future__ import annotations

import sqlite3
import time
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from sqlalchemy import StaticPool, create_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from ledgergraph.eventstore import tables
from ledgergraph.eventstore.backends.sqlite_file import SqliteFile
from ledgergraph.eventstore.migrations import refuse_other_revision, run_migrations
from ledgergraph.schemas.errors import NotALog, OlderLog


def prepare(file: SqliteFile) -> str:
    """The log's incarnation; an empty file gets its tables first. Raises NotALog, NewerLog, OlderLog."""
    with file.alone() as db:
        if is_empty(db):
            _create(db)
        return _incarnation(db, str(file.path))


def upgrade(path: Path) -> None:
    """Brings the tables to this version's, all or nothing; makes the log where there is none."""
    file = SqliteFile(path)
    try:
        with file.alone() as db:
            if is_empty(db):
                return _create(db)
            with suppress(OlderLog):
                _incarnation(db, str(path))
                return None
            _migrate(db)
    finally:
        file.close()


def _migrate(db: sqlite3.Connection) -> None:
    engine = create_engine("sqlite://", creator=lambda: db, poolclass=StaticPool)
    db.execute("BEGIN IMMEDIATE")
    try:
        with engine.begin() as connection:
            run_migrations(connection)
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def is_empty(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if is_empty(db):  # where no lock lies beside the file, another process may have been quicker
            for statement in create_statements():
                db.execute(statement)
            db.execute("INSERT INTO log (incarnation, format, created_at) VALUES (?, ?, ?)",
                       (uuid.uuid4().hex, tables.LOG_FORMAT, time.time_ns() // 1_000))
            db.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (tables.REVISION,))
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


@cache
def create_statements() -> tuple[str, ...]:
    dialect = sqlite.dialect()
    all_tables = (*tables.metadata.sorted_tables, *tables.sqlite_metadata.sorted_tables)
    statements = [str(CreateTable(t).compile(dialect=dialect)) for t in all_tables]
    indexes = [i for t in all_tables for i in sorted(t.indexes, key=lambda i: str(i.name))]
    return (*statements, *(str(CreateIndex(i).compile(dialect=dialect)) for i in indexes))


def _incarnation(db: sqlite3.Connection, place: str) -> str:
    try:
        row = db.execute("SELECT incarnation, format FROM log").fetchone()
        revision = db.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as e:
        raise NotALog(place, f"its tables are others ({e})") from e
    if row is None:
        raise NotALog(place, "its table 'log' is empty")
    refuse_other_revision(place, revision[0] if revision else "", row[1])
    return str(row[0])
