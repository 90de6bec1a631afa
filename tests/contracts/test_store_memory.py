from __future__ import annotations

from collections.abc import Iterator

import pytest
from event_store_contract import EventStoreContract

from ledgergraph.eventstore.backends.memory import MemoryStore
from ledgergraph.eventstore.store import EventStore


class TestMemoryStore(EventStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[EventStore]:
        store = MemoryStore()
        yield store
        store.close()

    def damage_artifact(self, store: EventStore, digest: str) -> None:
        assert isinstance(store, MemoryStore)
        store._artifacts[digest] = b"rates 2026-12-01"
