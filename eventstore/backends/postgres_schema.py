"""Makes the tables and functions in an empty PostgreSQL database, and looks at those of an old one."""
from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, cast

import psycopg
from sqlalchemy import URL, Connection
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from ledgergraph.eventstore import tables
from ledgergraph.eventstore.backends import postgres_sql as sql
from ledgergraph.eventstore.backends.postgres_errors import translated
from ledgergraph.eventstore.backends.postgres_link import Driver, PostgresLink
from ledgergraph.eventstore.migrations import refuse_other_revision, run_migrations
from ledgergraph.schemas.errors import NotALog, OlderLog, StoreError

_MISSING = ("42P01", "42703")
"""SQLSTATE of a table or column that is not there."""


def prepare(link: PostgresLink) -> str:
    """The log's incarnation; an empty database gets its tables first. Raises NotALog, NewerLog, OlderLog."""
    found = link.use(lambda db: _read(db, link.place))
    if found is None:
        _change(link, lambda connection: None)
        found = link.use(lambda db: _read(db, link.place))
    assert found is not None
    return found


def upgrade(url: URL) -> None:
    """Brings tables and functions to this version's, all or nothing; makes the log in an empty database."""
    link = PostgresLink(url)
    try:
        _change(link, run_migrations)
    finally:
        link.close()


def _change(link: PostgresLink, migrate: Callable[[Connection], None]) -> None:
    """Makes the tables where there are none, else has them changed where they are older; one process at a time."""
    engine = link.schema_engine()
    try:
        with engine.begin() as connection:
            db = _driver(connection)
            db.execute(sql.LOCK_SCHEMA)
            if is_empty(db):
                _create(db, link.place)
                return
            with suppress(OlderLog):
                _read(db, link.place)
                return
            migrate(connection)
            db.execute(sql.functions().encode())
    except psycopg.Error as e:
        raise translated(e, link.place) from e
    finally:
        engine.dispose()


def is_empty(db: Driver) -> bool:
    return db.execute(sql.RELATIONS).fetchone() is None


def _create(db: Driver, place: str) -> None:
    encoding = db.execute(sql.ENCODING).fetchone()
    if encoding != ("UTF8",):
        raise StoreError(f"the database {place} has the encoding {encoding and encoding[0]}, a log needs UTF8. Make another one: "
                         "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.")
    for statement in create_statements():
        db.execute(statement.encode())
    db.execute(sql.NEW_LOG, (uuid.uuid4().hex, tables.LOG_FORMAT, time.time_ns() // 1_000))
    db.execute(sql.NEW_REVISION, (tables.REVISION,))
    db.execute(sql.NEW_FENCE)
    db.execute(sql.functions().encode())


@cache
def create_statements() -> tuple[str, ...]:
    make: Any = postgresql.dialect  # untyped in SQLAlchemy
    dialect = make()
    all_tables = (*tables.metadata.sorted_tables, *tables.postgres_metadata.sorted_tables)
    statements = [str(CreateTable(t).compile(dialect=dialect)) for t in all_tables]
    indexes = [i for t in all_tables for i in sorted(t.indexes, key=lambda i: str(i.name))]
    return (*statements, *(str(CreateIndex(i).compile(dialect=dialect)) for i in indexes))


def _read(db: Driver, place: str) -> str | None:
    """The incarnation; None: the database is empty."""
    try:
        with db.transaction():
            row = db.execute(sql.OPENED).fetchone()
    except psycopg.Error as e:
        if e.sqlstate not in _MISSING:
            raise
        if is_empty(db):
            return None
        raise NotALog(place, f"its tables are others ({str(e).splitlines()[0]})") from e
    if row is None:
        raise NotALog(place, "its table 'log' is empty")
    refuse_other_revision(place, row[2] or "", row[1])
    return str(row[0])


def _driver(connection: Connection) -> Driver:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return cast(Driver, driver)
