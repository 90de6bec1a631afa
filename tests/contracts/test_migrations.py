"""A new log and an upgraded one are the same; what is no log, or another version's, is left alone."""
from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection
from stream_writer import StreamWriter
from test_store_postgres import connected

from ledgergraph.eventstore.backends import postgres_schema, sqlite_schema
from ledgergraph.eventstore.backends.postgres_link import PostgresLink
from ledgergraph.eventstore.migrations import run_migrations, upgrade
from ledgergraph.eventstore.opening import open_store, parse_url
from ledgergraph.eventstore.tables import REVISION
from ledgergraph.schemas.errors import NewerLog, NotALog, OlderLog, StoreError


def _tables(db: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """Everything that the tables are: columns with types, defaults and collations, indexes, options."""
    columns = db.execute(
        "SELECT c.relname, c.reloptions, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attcollation, "
        "pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum").fetchall()
    indexes = db.execute("SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1, 2").fetchall()
    return columns + indexes


def _sqlite_tables(db: sqlite3.Connection) -> dict[str, Any]:
    """Columns, keys and indexes of each table, as SQLite understood them."""
    names = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {name: (db.execute(f"PRAGMA table_info({name})").fetchall(), sorted(row[1:] for row in db.execute(f"PRAGMA index_list({name})")),
                   db.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (name,)).fetchall()) for name in names}


def test_migrations_make_what_a_new_log_in_sqlite_is_made_of(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path / 'new.db'}").close()
    with closing(sqlite3.connect(tmp_path / "new.db")) as made, closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated:
        sqlite_schema._migrate(migrated)
        assert _sqlite_tables(migrated) == _sqlite_tables(made)
        assert migrated.execute("SELECT version_num FROM alembic_version").fetchall() == [(REVISION,)]


def test_migrations_make_what_a_new_log_in_postgres_is_made_of(postgres_url: str) -> None:
    with closing(open_store(postgres_url)), connected(postgres_url) as db:
        made = _tables(db)
        db.execute("DROP SCHEMA public CASCADE")
        db.execute("CREATE SCHEMA public")
    link = PostgresLink(parse_url(postgres_url))
    engine = link.schema_engine()
    with engine.begin() as connection:
        run_migrations(connection)
    with connected(postgres_url) as db:
        assert _tables(db) == made
        assert db.execute("SELECT name FROM fences").fetchall() == [("sequencer",)]
    link.close()


def test_an_upgrade_makes_a_log_and_brings_its_functions_back(postgres_url: str) -> None:
    upgrade(postgres_url)
    with connected(postgres_url) as db:
        db.execute("DROP FUNCTION sequence_events")
        db.execute("UPDATE alembic_version SET version_num = ''")
    with pytest.raises(OlderLog):
        open_store(postgres_url)

    def migrate(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")

    link = PostgresLink(parse_url(postgres_url))
    postgres_schema._change(link, migrate)
    link.close()
    with closing(open_store(postgres_url)) as store:
        StreamWriter("thread:a").store(store, 1)
        assert store.last_position() == 1


def test_what_is_newer_or_not_ours_is_left_alone(postgres_url: str) -> None:
    with closing(open_store(postgres_url)), connected(postgres_url) as db:
        db.execute("UPDATE log SET format = 99")
        for call in (open_store, upgrade):
            with pytest.raises(NewerLog, match="99"):
                call(postgres_url)
        db.execute("DROP TABLE log")
        before = _tables(db)
        for call in (open_store, upgrade):
            with pytest.raises(NotALog, match="its tables are others"):
                call(postgres_url)
        assert _tables(db) == before


def test_an_empty_database_is_made_a_log_once(postgres_url: str) -> None:
    together = threading.Barrier(6)
    found: list[str] = []

    def open_() -> None:
        together.wait()
        with closing(open_store(postgres_url)) as store:
            found.append(store.incarnation)

    threads = [threading.Thread(target=open_) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    assert len(set(found)) == 1


def test_a_database_of_another_encoding_is_refused(postgres_server: str) -> None:
    name = "lgtest_latin1"
    with connected(postgres_server) as db:
        db.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        try:
            with pytest.raises(StoreError, match="ENCODING 'UTF8'"):
                open_store(postgres_server.rsplit("/", 1)[0] + "/" + name)
        finally:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


