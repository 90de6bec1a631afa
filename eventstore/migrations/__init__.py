"""Changes of the tables, as Alembic revisions that ship with the package.

A new log is made from `tables.py` at once and marked with the newest revision: making and opening one never runs Alembic.
A test compares what both ways make.
"""
from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from ledgergraph.eventstore.opening import parse_url, sqlite_path
from ledgergraph.eventstore.tables import LOG_FORMAT, REVISION, REVISIONS
from ledgergraph.schemas.errors import NewerLog, OlderLog


def upgrade(url: str) -> None:
    """Brings the log at the URL to this version's tables; an empty database gets all of them. Events are never rewritten.
    Raises InvalidStoreUrl, StoreUnavailable, NotALog, NewerLog; where it raises, nothing was changed."""
    parsed = parse_url(url)
    if parsed.drivername == "sqlite":
        from ledgergraph.eventstore.backends import sqlite_schema
        sqlite_schema.upgrade(Path(sqlite_path(parsed)))
    elif parsed.drivername == "postgresql+psycopg":
        from ledgergraph.eventstore.backends import postgres_schema
        postgres_schema.upgrade(parsed)


def run_migrations(connection: Connection, revision: str = "head") -> None:
    """Brings the tables to a revision, in the transaction that the connection is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def refuse_other_revision(place: str, revision: str, log_format: int) -> None:
    """Raises NewerLog for what a later version wrote, OlderLog for tables that must be upgraded first."""
    if log_format > LOG_FORMAT:
        raise NewerLog(f"the format of {place}", log_format, LOG_FORMAT)
    if revision == REVISION:
        return
    if revision in REVISIONS or not revision:
        raise OlderLog(place, revision, REVISION)
    raise NewerLog(f"the table revision of {place}", revision, REVISION)
