from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from event_store_contract import DurableContract, EventStoreContract
from sqlalchemy import make_url

from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore


def connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of the test's own, in autocommit."""
    return psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True)


class TestPostgresStore(EventStoreContract, DurableContract):
    @pytest.fixture
    def open_again(self, postgres_url: str) -> Iterator[Callable[[], EventStore]]:
        opened: list[EventStore] = []

        def open_() -> EventStore:
            opened.append(open_store(postgres_url))
            return opened[-1]

        yield open_
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_again: Callable[[], EventStore]) -> EventStore:
        return open_again()

    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def damage_artifact(self, store: EventStore, digest: str) -> None:
        with connected(self.url) as db:
            db.execute("UPDATE artifacts SET data = %s WHERE digest = %s", (b"rates 2026-12-01", digest))
