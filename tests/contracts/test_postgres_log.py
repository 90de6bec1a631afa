"""What only a PostgreSQL log must bear: other sessions, a server that goes and comes, databases that are no log."""
from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import PostgresServer
from stream_writer import StreamWriter, new_events, run_row, task_row
from test_race import call_append
from test_store_postgres import connected

from ledgergraph.eventstore.backends import postgres_append, postgres_link
from ledgergraph.eventstore.backends.postgres import PostgresStore
from ledgergraph.eventstore.chain import verify
from ledgergraph.eventstore.migrations import upgrade
from ledgergraph.eventstore.store import Append, Appended, Rows
from ledgergraph.schemas.errors import (
    DamagedLog,
    ForeignLog,
    InvalidInput,
    StoreError,
    StoreUnavailable,
)
from ledgergraph.schemas.ids import StreamId, TaskId


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_url)) as store:
        yield store


# What an append costs


def test_a_batch_is_one_round_trip(store: PostgresStore, tmp_path: Path) -> None:
    writers = [StreamWriter(f"thread:{n}") for n in range(5)]
    with (tmp_path / "trace").open("wb") as trace:
        connection = store._appender._connection
        assert connection is not None
        connection.pgconn.trace(trace.fileno())
        store.append([w.next(3, key="k", rows=Rows(put_tasks=(task_row("t"),), put_runs=(run_row("r"),))) for w in writers])
        connection.pgconn.untrace()
    sent = [line.split("\t")[3] for line in (tmp_path / "trace").read_text().splitlines() if line.split("\t")[1] == "F"]
    assert sent.count("Sync") == 1
    assert sent.count("Bind") == sent.count("Execute") == 1


def test_a_thousand_steps_take_less_than_three_megabytes(store: PostgresStore, postgres_url: str) -> None:
    writer = StreamWriter("thread:a")
    for n in range(1_000):
        rows = Rows(put_tasks=(task_row(f"task-{n + 1:019}"),), drop_tasks=(TaskId(f"task-{n:019}"),), put_runs=(run_row("r"),))
        append = writer.next(new_events(4, b"x" * 120), key=f"key-{n:020}", rows=rows)
        assert 230 < len(append.events[0].data) < 270
        store.append([append])
    assert store.last_position() == 4_000
    with connected(postgres_url) as db:
        row = db.execute("SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' "
                         "AND relnamespace = current_schema()::regnamespace").fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    assert row[0] < 3_000_000


# Other sessions


def test_batches_never_wait_for_one_another_in_a_circle(store: PostgresStore, postgres_url: str) -> None:
    """Two processes, the same streams in opposite orders, some of them new to one and known to the other."""
    errors: list[BaseException] = []

    def write(log: PostgresStore, reverse: bool) -> None:
        try:
            for n in range(40):
                names = [f"thread:{n // 2 + m}" for m in range(6)]
                heads = [(name, log.head(StreamId(name))) for name in names]
                batch = [StreamWriter(name, h.version, h.hash).next(1) for name, h in heads]
                log.append(batch[::-1] if reverse else batch)
        except BaseException as e:
            errors.append(e)

    with closing(PostgresStore(postgres_url)) as other:
        threads = [threading.Thread(target=write, args=(log, reverse)) for log, reverse in ((store, False), (other, True)) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert errors == []
    assert verify(store).events == store.last_position() >= 40


def test_an_append_waits_for_a_stream_that_another_session_holds(store: PostgresStore, postgres_url: str) -> None:
    with connected(postgres_url) as other:
        other.autocommit = False
        mine, theirs = StreamWriter("thread:a"), StreamWriter("thread:a")
        assert call_append(other, theirs.next(2)) == 0
        outcomes: list[Any] = []
        thread = threading.Thread(target=lambda: outcomes.extend(store.append([mine.next(1)])))
        thread.start()
        _await_waiting(postgres_url)
        assert outcomes == []
        other.commit()
        thread.join(30)
        assert [(o.expected, o.actual) for o in outcomes] == [(0, 2)]


def test_an_interrupted_append_leaves_a_store_that_works(store: PostgresStore, postgres_url: str) -> None:
    with connected(postgres_url) as other:
        other.autocommit = False
        call_append(other, StreamWriter("thread:a").next(2))

        interrupted = threading.Event()

        def interrupt() -> None:
            _await_waiting(postgres_url)
            # Again where it came into a finalizer, which swallows it.
            while not interrupted.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                interrupted.wait(1)

        # Whoever runs the tests may have told this process to ignore it.
        kept = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            try:
                store.append([StreamWriter("thread:a").next(1)])
            finally:
                interrupted.set()
        thread.join(30)
        signal.signal(signal.SIGINT, kept)
        other.rollback()
    StreamWriter("thread:a").store(store, 3)
    assert store.last_position() == 3


def _await_waiting(url: str) -> None:
    """Until a session of the database waits for a lock."""
    with connected(url) as db:
        while db.execute("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").fetchone() is None:
            pass


def test_a_stream_that_is_held_too_long_is_unavailable(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "_SETTINGS", postgres_link._SETTINGS + "; SET lock_timeout = '100ms'")
    with closing(PostgresStore(postgres_url)) as store, connected(postgres_url) as other:
        other.autocommit = False
        call_append(other, StreamWriter("thread:a").next(2))
        with pytest.raises(StoreUnavailable, match="another session has kept locked"):
            store.append([StreamWriter("thread:a").next(1)])
        other.rollback()
        StreamWriter("thread:a").store(store, 1)


def test_a_text_that_cannot_be_stored_is_refused_alone(store: PostgresStore) -> None:
    with pytest.raises(InvalidInput, match="cannot store"):
        store.append([StreamWriter("thread:a\0b").next(1)])
    with pytest.raises(InvalidInput, match="cannot be stored"):
        store.append([StreamWriter("thread:a").next(1, rows=Rows(put_tasks=(task_row("\ud800"),)))])
    StreamWriter("thread:a").store(store, 1)


def test_its_time_is_the_databases(store: PostgresStore, postgres_url: str) -> None:
    with connected(postgres_url) as db:
        before = store.now()
        row = db.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8").fetchone()
        after = store.now()
    assert row is not None
    assert isinstance(row[0], int)
    assert before - 5_000 <= row[0] <= after + 5_000


def test_many_threads_read_at_once(store: PostgresStore) -> None:
    StreamWriter("thread:a").store(store, 5)
    store.read_all()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(store.read_stream(StreamId("thread:a"))))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [5] * 40


# A server that goes and comes


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of these tests' own, which they may stop."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def own_store(server: PostgresServer) -> Iterator[PostgresStore]:
    with connected(server.url) as db:
        db.execute("DROP SCHEMA public CASCADE")
        db.execute("CREATE SCHEMA public")
    with closing(PostgresStore(server.url)) as store:
        yield store


def test_it_goes_on_after_a_restart(server: PostgresServer, own_store: PostgresStore) -> None:
    writer = StreamWriter("thread:a")
    writer.store(own_store, 2, key="k1")
    server.stop()
    server.start()
    assert own_store.last_position() == 2
    server.stop()
    server.start()
    writer.store(own_store, 2, key="k2")
    assert verify(own_store) == (4, 1)


def test_nothing_is_lost_or_doubled_while_the_server_crashes(server: PostgresServer, own_store: PostgresStore) -> None:
    done = threading.Event()
    written: dict[int, StreamWriter] = {}
    errors: list[BaseException] = []

    def write(number: int) -> None:
        writer = written[number] = StreamWriter(f"thread:{number}")
        try:
            while not done.is_set():
                writer.store(own_store, 2, key=f"k{writer.chain.version}")
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        own_store.bell.wait(own_store.bell.rings, 30)
        server.crash()
        own_store.bell.wait(own_store.bell.rings, 30)
    done.set()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert {n: own_store.head(w.stream).version for n, w in written.items()} == {n: w.chain.version for n, w in written.items()}
    assert verify(own_store).events == own_store.last_position()


@pytest.mark.parametrize("key", ["", "k"])
def test_an_answer_that_was_lost_is_found_out(store: PostgresStore, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """The batch was committed and the connection broke before its answer came."""
    writer = StreamWriter("thread:a")
    writer.store(store, 1)
    call = postgres_append._call
    lost: list[bool] = []

    def call_and_lose(*arguments: Any) -> Any:
        result = call(*arguments)
        if not lost:
            lost.append(True)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return result

    monkeypatch.setattr(postgres_append, "_call", call_and_lose)
    late = writer.twin().next(new_events(1, b'{"other":1}'), key="late")
    batch: list[Append] = [writer.next(2, key=key), late, writer.next(1)]
    outcomes = store.append(batch)
    assert lost
    assert outcomes[0] == Appended(batch[0].events[-1].version)
    assert type(outcomes[1]).__name__ == "WrongExpectedVersion"
    assert outcomes[2] == Appended(batch[2].events[-1].version)
    assert store.last_position() == 4


def test_a_server_that_is_away_is_named_without_its_password(server: PostgresServer, own_store: PostgresStore,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "RECONNECT_S", 0.05)
    url = server.url.replace("postgres@", "postgres:hunter2@") + "?sslpassword=hunter2"
    with closing(PostgresStore(url)) as store:
        writer = StreamWriter("thread:a")
        writer.store(store, 1)
        server.stop("immediate")
        try:
            for call in (lambda: store.append([writer.twin().next(1)]), store.read_all, lambda: PostgresStore(url), lambda: upgrade(url)):
                with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{server.port}") as raised:
                    call()
                assert "hunter2" not in "".join(traceback.format_exception(raised.value))
        finally:
            server.start()
        monkeypatch.undo()
        writer.store(store, 1)
        assert store.last_position() == 2


def test_another_log_in_its_place_is_not_taken_for_it(server: PostgresServer, own_store: PostgresStore) -> None:
    StreamWriter("thread:a").store(own_store, 1)
    with connected(server.url) as db:
        db.execute("UPDATE log SET incarnation = 'restored from elsewhere'")
    server.stop("immediate")
    server.start()
    with pytest.raises(ForeignLog, match="another log"):
        own_store.append([StreamWriter("thread:b").next(1)])
    with pytest.raises(ForeignLog, match="another log"):
        own_store.read_all()


def test_a_fork_of_the_process_may_not_use_it(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._link, "_pid", -1)
    with pytest.raises(StoreUnavailable, match="after the fork"):
        store.append([StreamWriter("thread:a").next(1)])
    with pytest.raises(StoreUnavailable, match="after the fork"):
        store.read_all()


# What is damaged or missing


def test_missing_functions_are_named_with_the_remedy(store: PostgresStore, postgres_url: str) -> None:
    with connected(postgres_url) as db:
        db.execute("DROP FUNCTION sequence_events")
    with pytest.raises(StoreError, match="db upgrade"):
        store.last_position()


@pytest.mark.parametrize("damage", [
    "UPDATE events SET data = set_byte(data, length(data) - 1, 0) WHERE version = 2",
    "UPDATE events SET type = 'run.failed' WHERE version = 2",
    "DELETE FROM events WHERE version = 2",
    "DELETE FROM events WHERE version = 3",
    "UPDATE streams SET hash = '\\x00'",
    "UPDATE positions SET first = first + 1, position = position + 1 WHERE last = 3"])
def test_damage_is_found(store: PostgresStore, postgres_url: str, damage: str) -> None:
    writer = StreamWriter("thread:a")
    for _ in range(3):
        writer.store(store, 1)
    assert verify(store) == (3, 1)
    with connected(postgres_url) as db:
        db.execute(damage)
    with pytest.raises(DamagedLog):
        verify(store)
