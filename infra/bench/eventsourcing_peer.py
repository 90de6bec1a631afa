"""Raw appends by the `eventsourcing` library: its application recorders, with a total order. Not with its database functions on
PostgreSQL: these are quicker but leave out the lock of the table, so that a reader of its notification log steps over what commits late.
"""
from __future__ import annotations

from typing import Any
from uuid import uuid4

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore
from psycopg.conninfo import conninfo_to_dict
from stores import Stores

STATE = b"x" * 400


class Recorder:
    def __init__(self, stores: Stores) -> None:
        if stores.kind == "sqlite":
            self._recorder: Any = SQLiteApplicationRecorder(SQLiteDatastore(stores.path(), pool_size=8))
        else:
            at = conninfo_to_dict(stores.conninfo())
            self._recorder = PostgresApplicationRecorder(
                PostgresDatastore(str(at["dbname"]), str(at["host"]), str(at["port"]), str(at["user"]), "", pool_size=8, max_overflow=8))
        self._recorder.create_table()

    def produce(self, appends: int) -> None:
        """One producer: that many appends of one event to a stream of its own."""
        stream = uuid4()
        for version in range(1, appends + 1):
            self._recorder.insert_events([StoredEvent(stream, version, "bench", STATE)])
