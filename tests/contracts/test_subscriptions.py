"""Readers of the whole log, on every backend: in order, once each, on from where they were, and never on from another log."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stream_writer import StreamWriter

from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.eventstore.subscriptions import Subscription
from ledgergraph.schemas.errors import ForeignLog


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/log.db"


@pytest.fixture
def store(url: str) -> Iterator[EventStore]:
    with closing(open_store(url)) as opened:
        yield opened


def test_it_goes_on_where_it_left_off(store: EventStore) -> None:
    StreamWriter("thread:a").store(store, 5)
    StreamWriter("thread:b").store(store, 4)
    first = Subscription(store, "audit", batch_max=3)
    read = []
    for batch in first.batches(wait=False):
        read += [e.position for e in batch]
        if len(read) == 6:
            first.ack()
    assert read == list(range(1, 10))
    again = Subscription(store, "audit", batch_max=3)
    assert again.position == 6
    assert [e.position for b in again.batches(wait=False) for e in b] == [7, 8, 9]
    other = Subscription(store, "cost")
    assert [e.position for b in other.batches(wait=False) for e in b] == list(range(1, 10))


def test_it_waits_for_what_comes_and_can_be_stopped(store: EventStore) -> None:
    reader, seen, live = Subscription(store, "live"), [], threading.Event()

    def read() -> None:
        for batch in reader.batches():
            seen.extend(batch)
            reader.ack()
            live.set()
            if len(seen) >= 3:
                reader.stop()
    thread = threading.Thread(target=read)
    thread.start()
    writer = StreamWriter("thread:a")
    writer.store(store, 1)
    assert live.wait(10)
    writer.store(store, 2)
    thread.join(10)
    assert not thread.is_alive()
    assert [e.version for e in seen] == [1, 2, 3]
    assert store.checkpoint("live") == (3, seen[-1].hash)
    assert reader.state == "stopped"


def test_a_log_that_is_not_the_readers_is_refused_with_both_sides(store: EventStore) -> None:
    StreamWriter("thread:a").store(store, 2)
    store.put_checkpoint("ahead", 9, b"\1" * 32)
    with pytest.raises(ForeignLog, match=r"up to position 9 .* is not there \(the last one is 2\)"):
        Subscription(store, "ahead")
    store.put_checkpoint("other", 2, b"\1" * 32)
    with pytest.raises(ForeignLog, match="has the hash"):
        Subscription(store, "other")
