"""Raw appends by the `eventsourcing` library: its application recorders, with a total order. Importing it raises ImportError
where the library is not installed.

On PostgreSQL not with its database functions: these are quicker but leave out the lock of the table, so that a reader of its
notification log steps over what commits late. What is left pipelines lock and insert, which is its faster way that loses nothing.
"""
from __future__ import annotations

from typing import Any
from uuid import uuid4

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore
from psycopg.conninfo import conninfo_to_dict
from stores import Stores, conninfo

STATE = b"x" * 400


class Recorder:
    def __init__(self, stores: Stores) -> None:
        self._recorder: Any = (SQLiteApplicationRecorder if stores.kind == "sqlite" else PostgresApplicationRecorder)(
            stores.keep(_datastore(stores)))
        self._recorder.create_table()

    def produce(self, appends: int) -> None:
        """One producer: that many appends of one event to a stream of its own."""
        stream = uuid4()
        for version in range(1, appends + 1):
            self._recorder.insert_events([StoredEvent(stream, version, "bench", STATE)])


def _datastore(stores: Stores) -> Any:
    url = stores.url()
    if stores.kind == "sqlite":
        return SQLiteDatastore(url.removeprefix("sqlite:///"), pool_size=8)
    at = {k: str(v) for k, v in conninfo_to_dict(conninfo(url)).items()}
    return PostgresDatastore(at["dbname"], at["host"], at.get("port", "5432"), at["user"], at.get("password", ""),
                             pool_size=8, max_overflow=8)
