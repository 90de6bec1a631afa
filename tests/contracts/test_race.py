"""No reader of the whole log misses an event, sees one twice, or sees one before what led to it.

LEDGERGRAPH_SEED repeats a run's choices (threads still come as they come).
"""
from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from racing import Held, Race, Writing, check
from sqlalchemy import make_url
from stream_writer import StreamWriter

from ledgergraph.eventstore.backends.memory import MemoryStore
from ledgergraph.eventstore.backends.sqlite import SqliteStore
from ledgergraph.eventstore.backends.sqlite_append import Appends
from ledgergraph.eventstore.chain import verify
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import Append, Appended, EventStore

SEED = int(os.environ.get("LEDGERGRAPH_SEED") or random.SystemRandom().randrange(10**6))


def run(store: EventStore, writing: Callable[[], Writing]) -> None:
    print(f"seed {SEED}")
    race = Race(store, SEED, writing)
    race.run()
    check(race)
    assert race.rolled_back > 10, f"seed {SEED}: the writers did not get into each other's way"
    assert verify(store).events == len(race.seen[0])


def test_in_memory() -> None:
    store = MemoryStore()

    def held(append: Append, commits: Callable[[], bool]) -> bool:
        return commits() and isinstance(store.append([append])[0], Appended)

    @contextmanager
    def writing() -> Iterator[Held]:
        yield held

    run(store, writing)


class _Undone(Exception):
    pass


def test_in_sqlite(tmp_path: Path) -> None:
    """Half of the writers have the file open as another process would."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)

    @contextmanager
    def writing() -> Iterator[Held]:
        other = SqliteStore(path)

        def held(append: Append, commits: Callable[[], bool]) -> bool:
            stored = False
            with suppress(_Undone), other.file.writing() as db:
                stored = _store(db, append)
                if not commits() or not stored:
                    stored = False
                    raise _Undone
            return stored

        yield held
        other.close()

    run(store, writing)
    store.close()


def _store(db: sqlite3.Connection, append: Append) -> bool:
    appends = Appends(db, {})
    outcome = appends.append(append)
    appends.flush()
    return isinstance(outcome, Appended)


def test_in_postgres(postgres_url: str) -> None:
    """Transactions of other sessions stay open after they have appended, and commit late or not at all."""
    store = open_store(postgres_url)

    @contextmanager
    def writing() -> Iterator[Held]:
        with psycopg.connect(_conninfo(postgres_url)) as db:
            def held(append: Append, commits: Callable[[], bool]) -> bool:
                stored = call_append(db, append) == 0
                if commits() and stored:
                    db.commit()
                    return True
                db.rollback()
                return False

            yield held

    run(store, writing)
    store.close()


def _conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def call_append(db: psycopg.Connection[tuple[object, ...]], a: Append) -> object:
    """Calls the server's function as any session can; its status."""
    events, n = a.events, len(a.events)
    row = db.execute(
        "SELECT o_status[1] FROM append_events(%s::int8[], %s::text[], %s::int4[], %s::int8[], %s::bytea[], %s::text[], %s::bytea[],"
        " %s::int4[], %s::int4[], %s::int8[], %s::int8[], %s::text[], %s::text[], %s::bytea[], %s::bytea[])",
        ([0 if a.expected_version == 0 else -1], [a.stream], [1], [a.expected_version], [a.expected_hash], [a.key], [a.digest],
         [n], [1] * n, [e.version for e in events], [e.recorded_at for e in events], [e.type for e in events],
         [e.key for e in events], [e.hash for e in events], [e.data for e in events])).fetchone()
    assert row is not None
    return row[0]


def test_an_append_that_commits_late_gets_a_late_position(postgres_url: str) -> None:
    """The bug of every log that polls for numbers above the last one seen, in slow motion."""
    store = open_store(postgres_url)
    with psycopg.connect(_conninfo(postgres_url)) as late, psycopg.connect(_conninfo(postgres_url)) as never:
        assert call_append(late, StreamWriter("thread:late").next(2)) == 0
        assert call_append(never, StreamWriter("thread:never").next(3)) == 0
        StreamWriter("thread:quick").store(store, 1)
        assert [(e.position, e.stream) for e in store.read_all()] == [(1, "thread:quick")]
        never.rollback()
        late.commit()
    StreamWriter("thread:last").store(store, 1)
    expected = [(1, "thread:quick"), (2, "thread:late"), (3, "thread:late"), (4, "thread:last")]
    assert [(e.position, e.stream) for e in store.read_all()] == expected
    store.close()


def test_readers_that_come_together_give_one_order(postgres_url: str) -> None:
    """Several processes' worth of sequencers at once."""
    readers = 4
    stores = [open_store(postgres_url) for _ in range(readers)]
    writers = [StreamWriter(f"thread:{n}") for n in range(20)]
    for _ in range(10):
        stores[0].append([w.next(2) for w in writers])
        together = threading.Barrier(readers)
        found: list[object] = []

        def read(store: EventStore, together: threading.Barrier = together, found: list[object] = found) -> None:
            together.wait()
            found.append(store.read_all(limit=10_000))

        threads = [threading.Thread(target=read, args=(s,)) for s in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == readers
        assert all(f == found[0] for f in found)
    assert stores[0].last_position() == 400
    for store in stores:
        store.close()
