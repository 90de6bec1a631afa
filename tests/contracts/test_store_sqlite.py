from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from event_store_contract import DurableContract, EventStoreContract

from ledgergraph.eventstore.backends.sqlite import SqliteStore
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore


class TestSqliteStore(EventStoreContract, DurableContract):
    @pytest.fixture
    def open_again(self, tmp_path: Path) -> Iterator[Callable[[], EventStore]]:
        opened: list[EventStore] = []

        def open_() -> EventStore:
            opened.append(open_store(f"sqlite:///{tmp_path / 'ledger.db'}"))
            return opened[-1]

        yield open_
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_again: Callable[[], EventStore]) -> EventStore:
        return open_again()

    def damage_artifact(self, store: EventStore, digest: str) -> None:
        assert isinstance(store, SqliteStore)
        with sqlite3.connect(store.path) as db:
            db.execute("UPDATE artifacts SET data = ? WHERE digest = ?", (b"rates 2026-12-01", digest))
        db.close()
