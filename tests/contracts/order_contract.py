"""What every backend promises of reading and of the order of the whole log."""
from __future__ import annotations

import random
import threading

import pytest
from stream_writer import StreamWriter

from ledgergraph.eventstore.chain import verify
from ledgergraph.eventstore.store import Appended, EventStore
from ledgergraph.schemas.envelope import NO_HASH, StoredEvent
from ledgergraph.schemas.ids import StreamId, Version


def _versions(events: list[StoredEvent]) -> list[int]:
    return [e.version for e in events]


class OrderContract:
    def test_an_empty_log(self, store: EventStore) -> None:
        assert store.head(StreamId("thread:a")) == (0, NO_HASH, 0)
        assert (store.read_stream(StreamId("thread:a")), store.read_all(), store.heads(), store.last_position()) == ([], [], [], 0)

    def test_read_stream_takes_after_until_and_limit(self, store: EventStore) -> None:
        stream = StreamId("thread:a")
        StreamWriter("thread:b").store(store, 3)
        StreamWriter(stream).store(store, 9)
        rows = [((0, 1_000, None), [1, 2, 3, 4, 5, 6, 7, 8, 9]), ((4, 1_000, None), [5, 6, 7, 8, 9]), ((4, 2, None), [5, 6]),
                ((4, 1_000, 7), [5, 6, 7]), ((4, 2, 7), [5, 6]), ((9, 5, None), []), ((4, 5, 4), []), ((0, 0, None), []), ((0, 1_000, 0), [])]
        for (after, limit, until), expected in rows:
            assert _versions(store.read_stream(stream, after, limit, until)) == expected

    def test_read_all_is_dense_and_pages(self, store: EventStore) -> None:
        a, b = StreamWriter("thread:a"), StreamWriter("thread:b")
        for _ in range(4):
            store.append([a.next(2), b.next(1)])
        events = store.read_all(limit=100)
        assert [e.position for e in events] == list(range(1, 13)) == list(range(1, store.last_position() + 1))
        assert store.read_all(after=5, limit=3) == events[5:8]
        assert store.read_all(after=12) == []

    def test_a_position_comes_after_those_of_its_streams_earlier_events(self, store: EventStore) -> None:
        writers = [StreamWriter(f"thread:{n}") for n in range(3)]
        for _ in range(5):
            store.append([w.next(2) for w in writers])
        for w in writers:
            assert _versions([e for e in store.read_all(limit=100) if e.stream == w.stream]) == list(range(1, 11))

    def test_read_stream_fills_positions_that_are_known(self, store: EventStore) -> None:
        StreamWriter("thread:b").store(store, 3)
        StreamWriter("thread:a").store(store, 2)
        store.read_all()
        assert [e.position for e in store.read_stream(StreamId("thread:a"))] == [4, 5]

    def test_heads_pages_by_name(self, store: EventStore) -> None:
        for n in range(5):
            StreamWriter(f"thread:{n}").store(store, n + 1)
        heads = store.heads()
        assert [(name, head.version) for name, head in heads] == [(f"thread:{n}", n + 1) for n in range(5)]
        assert store.heads(after="thread:1", limit=2) == heads[2:4]

    def test_what_is_returned_cannot_be_changed(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 1)
        [event] = store.read_stream(StreamId("thread:a"))
        with pytest.raises(AttributeError):
            event.data = b""  # type: ignore[misc]
        store.read_stream(StreamId("thread:a")).clear()
        store.read_all().clear()
        assert store.read_all() == [event._replace(position=1)]

    def test_now_is_the_present_in_microseconds(self, store: EventStore) -> None:
        first = store.now()
        assert 1_700_000_000_000_000 < first <= store.now() + 1_000_000

    def test_the_bell_rings_after_an_append(self, store: EventStore) -> None:
        rings = store.bell.rings
        heard = threading.Event()

        def listen() -> None:
            store.bell.wait(rings, 30)
            if store.read_all():
                heard.set()

        listener = threading.Thread(target=listen)
        listener.start()
        StreamWriter("thread:a").store(store, 1)
        listener.join(30)
        assert heard.is_set()

    def test_twenty_racing_appends_have_one_winner(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        writer.store(store, 1)
        together = threading.Barrier(20)
        won: list[bool] = []

        def race(append: StreamWriter) -> None:
            offer = append.next(1)
            together.wait()
            won.append(isinstance(store.append([offer])[0], Appended))

        _run_threads([threading.Thread(target=race, args=(writer.twin(),)) for _ in range(20)])
        assert won.count(True) == 1
        assert store.head(StreamId("thread:a")).version == 2

    def test_fifty_threads_with_one_key_append_once(self, store: EventStore) -> None:
        together = threading.Barrier(50)
        outcomes: list[object] = []

        def race() -> None:
            offer = StreamWriter("thread:a").next(2, key="k")
            together.wait()
            outcomes.extend(store.append([offer]))

        _run_threads([threading.Thread(target=race) for _ in range(50)])
        assert outcomes.count(Appended(Version(2))) == 1
        assert outcomes.count(Appended(Version(2), duplicate=True)) == 49

    def test_a_tailing_reader_sees_every_event_once_in_order(self, store: EventStore) -> None:
        """Eight writers that hold on at random, and one reader that follows them."""
        writers, appends = 8, 25
        sizes = [[random.Random(w * 100 + n).randint(1, 4) for n in range(appends)] for w in range(writers)]

        def write(number: int) -> None:
            writer, pause = StreamWriter(f"thread:{number}"), random.Random(number)
            for n, size in enumerate(sizes[number]):
                if pause.random() < 0.5:
                    threading.Event().wait(pause.random() * 0.002)
                writer.store(store, size, key=f"k{n}")

        threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
        for thread in threads:
            thread.start()
        seen = _tail(store, sum(map(sum, sizes)))
        _run_threads(threads, started=True)
        assert [e.position for e in seen] == list(range(1, len(seen) + 1))
        assert seen == store.read_all(limit=10_000)
        for number in range(writers):
            assert _versions([e for e in seen if e.stream == f"thread:{number}"]) == list(range(1, sum(sizes[number]) + 1))
        assert verify(store) == (len(seen), writers)


def _tail(store: EventStore, count: int) -> list[StoredEvent]:
    seen: list[StoredEvent] = []
    while len(seen) < count:
        rings = store.bell.rings
        page = store.read_all(seen[-1].position or 0 if seen else 0, limit=7)
        seen.extend(page)
        if not page:
            assert store.bell.wait(rings, 30) != rings, f"nothing new after {len(seen)} of {count} events"
    return seen


def _run_threads(threads: list[threading.Thread], started: bool = False) -> None:
    for thread in threads:
        if not started:
            thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
