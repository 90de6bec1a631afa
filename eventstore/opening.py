"""Opens the log that a URL names."""
from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ledgergraph.eventstore.store import EventStore
from ledgergraph.schemas.errors import InvalidStoreUrl


def open_store(url: str) -> EventStore:
    """The log at `memory://`, `sqlite:///path` or `postgresql+psycopg://...`; one that is not there yet is made. Raises
    InvalidStoreUrl, StoreUnavailable, NotALog, NewerLog, OlderLog."""
    parsed = parse_url(url)
    if parsed.drivername == "memory":
        from ledgergraph.eventstore.backends.memory import MemoryStore
        return MemoryStore()
    if parsed.drivername == "sqlite":
        from ledgergraph.eventstore.backends.sqlite import SqliteStore
        return SqliteStore(sqlite_path(parsed))
    from ledgergraph.eventstore.backends.postgres import PostgresStore
    return PostgresStore(url)


def parse_url(url: str) -> URL:
    """The URL in its parts. Raises InvalidStoreUrl, which shows no password."""
    try:
        parsed = make_url(url)
    except ArgumentError as e:
        raise InvalidStoreUrl(url if "@" not in url else "the URL", "it is no URL") from e
    name = parsed.drivername
    if name in ("memory", "postgresql+psycopg"):
        return parsed
    if name in ("sqlite", "sqlite+pysqlite"):
        return parsed.set(drivername="sqlite")
    if name in ("postgresql", "postgres"):
        raise InvalidStoreUrl(shown(parsed), "its driver is not said; write postgresql+psycopg://")
    raise InvalidStoreUrl(shown(parsed), f"{name!r} is no database that ledgergraph knows")


def shown_url(url: str) -> str:
    """The URL as it may be shown: no password, neither in its place nor among its options. Raises InvalidStoreUrl."""
    return shown(parse_url(url))


def shown(url: URL) -> str:
    secret = [name for name in url.query if "password" in name]
    return url.update_query_dict(dict.fromkeys(secret, "***")).render_as_string(hide_password=True)


def sqlite_path(url: URL) -> str:
    if not url.database or url.database == ":memory:":
        raise InvalidStoreUrl(shown(url), "it has no path; a log in memory is memory://")
    if url.host:
        raise InvalidStoreUrl(shown(url), "a path follows three slashes (sqlite:///path.db), an absolute one four")
    if url.query:
        raise InvalidStoreUrl(shown(url), "options are not known here; the log chooses SQLite's settings itself")
    return url.database
