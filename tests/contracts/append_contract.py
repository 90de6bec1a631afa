"""What every backend promises of an append: its three outcomes, and what it leaves behind."""
from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stream_writer import StreamWriter, new_events, run_row, task_row

from ledgergraph.eventstore.store import Appended, EventStore, Rows
from ledgergraph.schemas.envelope import NO_HASH, payload_of
from ledgergraph.schemas.errors import IdempotencyConflict, InvalidInput, WrongExpectedVersion
from ledgergraph.schemas.ids import StreamId, TaskId

ODD_NAMES = ["thread:Ürümqi", "thread:quote ' double \" back `", "thread:" + "x" * 200, "thread:" + "🏦" * 200, "thread:%_?:1$1",
             "thread:日本", "thread:a;drop table events", "thread:\\", "thread:A"]


class AppendContract:
    def test_appended_events_are_read_back_as_they_were_made(self, store: EventStore) -> None:
        append = StreamWriter("thread:a").next(3)
        assert store.append([append]) == [Appended(3, duplicate=False)]
        read = store.read_stream(StreamId("thread:a"))
        assert [e._replace(position=None) for e in read] == list(append.events)
        assert store.head(StreamId("thread:a")) == (3, append.events[-1].hash, append.events[-1].recorded_at)

    def test_an_empty_batch_does_nothing(self, store: EventStore) -> None:
        assert store.append([]) == []
        assert store.last_position() == 0

    def test_the_same_key_and_content_returns_the_first_result(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        retry = writer.twin()
        writer.store(store, 2, key="k")
        writer.store(store, 1)
        assert store.append([retry.next(2, key="k")]) == [Appended(2, duplicate=True)]
        assert store.head(StreamId("thread:a")).version == 3

    def test_a_retry_that_read_the_new_head_is_a_duplicate_too(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        writer.store(store, 2, key="k")
        assert store.append([writer.next(2, key="k")]) == [Appended(2, duplicate=True)]

    def test_the_same_key_with_other_content_conflicts_and_names_both_digests(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        first = writer.store(store, 1, key="k")
        other = writer.next(new_events(1, b'{"a":2}'), key="k")
        [outcome] = store.append([other])
        assert isinstance(outcome, IdempotencyConflict)
        assert (outcome.stream, outcome.key) == ("thread:a", "k")
        assert (outcome.recorded, outcome.offered) == (first.digest.hex(), other.digest.hex())
        assert store.head(StreamId("thread:a")).version == 1

    def test_a_key_belongs_to_its_stream(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 1, key="k")
        StreamWriter("thread:b").store(store, 2, key="k")
        assert store.head(StreamId("thread:b")).version == 2

    def test_a_stale_version_conflicts_and_names_both(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        writer.store(store, 1)
        late = writer.twin()
        writer.store(store, 1)
        [outcome] = store.append([late.next()])
        assert isinstance(outcome, WrongExpectedVersion)
        assert (outcome.stream, outcome.expected, outcome.actual) == ("thread:a", 1, 2)

    def test_a_version_ahead_of_the_stream_conflicts(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        writer.next()
        [outcome] = store.append([writer.next()])
        assert isinstance(outcome, WrongExpectedVersion)
        assert (outcome.expected, outcome.actual) == (1, 0)
        assert store.heads() == []

    def test_the_right_version_with_another_hash_conflicts(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 1)
        [outcome] = store.append([StreamWriter("thread:a", 1, b"\1" * 32).next()])
        assert isinstance(outcome, WrongExpectedVersion)
        assert (outcome.expected, outcome.actual) == (1, 1)

    def test_a_conflict_gives_its_key_back(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        late = writer.twin()
        writer.store(store, 1)
        [outcome] = store.append([late.next(1, key="k")])
        assert isinstance(outcome, WrongExpectedVersion)
        writer.store(store, 1, key="k")

    def test_a_conflict_never_fails_its_neighbours(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        late = writer.twin()
        writer.store(store, 1, key="k")
        batch = [StreamWriter("thread:b").next(2), late.next(1), StreamWriter("thread:c").next(3),
                 late.next(new_events(1, b"{}"), key="k"), writer.next(1)]
        outcomes = store.append(batch)
        assert [type(o) for o in outcomes] == [Appended, WrongExpectedVersion, Appended, IdempotencyConflict, Appended]
        assert [name for name, _ in store.heads()] == ["thread:a", "thread:b", "thread:c"]
        assert store.last_position() == 7

    def test_appends_of_one_stream_in_a_batch_follow_one_another(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        late = writer.twin()
        first = writer.next(2, key="k")
        outcomes = store.append([first, writer.next(1), late.next(2, key="k"), writer.next(1)])
        assert outcomes == [Appended(2), Appended(3), Appended(2, duplicate=True), Appended(4)]
        assert [e.version for e in store.read_stream(StreamId("thread:a"))] == [1, 2, 3, 4]

    def test_an_append_without_events_is_refused_and_stores_nothing(self, store: EventStore) -> None:
        with pytest.raises(InvalidInput, match="no events"):
            store.append([StreamWriter("thread:b").next(), StreamWriter("thread:a").next([])])
        assert store.last_position() == 0

    def test_events_that_do_not_follow_what_the_append_expects_are_refused(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        first, second = writer.next(), writer.next()
        for broken in (first._replace(events=second.events), first._replace(expected_version=1), second._replace(expected_hash=b"\1" * 32),
                       first._replace(stream=StreamId("thread:b")), first._replace(events=[*first.events, *first.events])):
            with pytest.raises(InvalidInput, match="thread:"):
                store.append([broken])
        assert store.last_position() == 0

    def test_a_fork_begins_with_its_parents_hash(self, store: EventStore) -> None:
        parent = StreamWriter("thread:a").store(store, 2)
        fork = StreamWriter("fork:1", 0, parent.events[-1].hash)
        fork.store(store, 1)
        fork.store(store, 1)
        assert [e.version for e in store.read_stream(StreamId("fork:1"))] == [1, 2]

    def test_a_new_stream_that_names_a_previous_hash_without_an_origin_is_refused(self, store: EventStore) -> None:
        append = StreamWriter("fork:1", 0, b"\2" * 32).next()
        with pytest.raises(InvalidInput, match="previous hash"):
            store.append([append._replace(origin=b"", expected_hash=NO_HASH)])

    def test_a_fork_of_a_stream_that_exists_conflicts(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 2)
        [outcome] = store.append([StreamWriter("thread:a", 0, b"\2" * 32).next()])
        assert isinstance(outcome, WrongExpectedVersion)

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_any_name_of_a_stream_is_kept(self, store: EventStore, name: str) -> None:
        StreamWriter("thread:a").store(store, 1)
        StreamWriter(name).store(store, 2, key=f"key {name}")
        assert [e.stream for e in store.read_stream(StreamId(name))] == [name, name]
        assert {e.stream for e in store.read_all()} == {"thread:a", name}
        assert {n for n, _ in store.heads()} == {"thread:a", name}

    @pytest.mark.parametrize("payload", [b"", b"\0", b"a\0b\0", bytes(range(256)) * 3, b"\xff\xfe", b"\\x00", b"x" * 890_000])
    def test_any_bytes_of_a_payload_are_kept(self, store: EventStore, payload: bytes) -> None:
        append = StreamWriter("thread:a").store(store, new_events(2, payload))
        read = store.read_stream(StreamId("thread:a"))
        assert [payload_of(e.data) for e in read] == [payload, payload]
        assert [e.data for e in read] == [e.data for e in append.events]
        assert all(type(e.data) is bytes and type(e.hash) is bytes for e in read)

    def test_a_large_batch_is_one_append(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 3_000)
        outcomes = store.append([StreamWriter(f"thread:{n}").next() for n in range(600)])
        assert outcomes == [Appended(1)] * 600
        assert store.last_position() == 3_600

    def test_rows_are_written_with_the_append(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        writer.store(store, 1, rows=Rows(put_tasks=(task_row("t1"), task_row("t2")), put_runs=(run_row("r1"),)))
        writer.store(store, 1, rows=Rows(put_tasks=(task_row("t2", state="started"), task_row("t3")), drop_tasks=(TaskId("t1"),)))
        assert store.tasks() == [task_row("t2", state="started"), task_row("t3")]
        assert store.runs() == [run_row("r1")]

    def test_rows_of_a_conflict_or_a_duplicate_are_not_written(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        late, retry = writer.twin(), writer.twin()
        writer.store(store, 1, key="k", rows=Rows(put_tasks=(task_row("t1"),)))
        store.append([late.next(1, rows=Rows(put_tasks=(task_row("t2"),), drop_tasks=(TaskId("t1"),))),
                      retry.next(1, key="k", rows=Rows(put_tasks=(task_row("t3"),))),
                      StreamWriter("thread:b").next(1, rows=Rows(put_tasks=(task_row("t4"),)))])
        assert [t.task for t in store.tasks()] == ["t1", "t4"]

    def test_later_rows_of_a_batch_win(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        store.append([writer.next(1, rows=Rows(put_tasks=(task_row("t1"), task_row("t2")))),
                      writer.next(1, rows=Rows(drop_tasks=(TaskId("t1"),), put_tasks=(task_row("t2", state="started"),))),
                      writer.next(1, rows=Rows(put_tasks=(task_row("t3"),))),
                      writer.next(1, rows=Rows(drop_tasks=(TaskId("t3"),))),
                      writer.next(1, rows=Rows(put_tasks=(task_row("t1", state="parked"),)))])
        assert store.tasks() == [task_row("t1", state="parked"), task_row("t2", state="started")]

    @settings(max_examples=25, deadline=None, suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.differing_executors])
    @given(data=st.data())
    def test_any_mix_of_writers_leaves_one_chain_a_stream(self, store: EventStore, data: st.DataObject) -> None:
        """Some writers are stale, some retry; what is stored is what was answered as appended."""
        names = [f"thread:{store.last_position()}-{n}" for n in range(2)]
        writers = [StreamWriter(name) for name in names for _ in range(2)]
        expected = dict.fromkeys(names, 0)
        for n in range(data.draw(st.integers(1, 4))):
            picked = data.draw(st.lists(st.sampled_from(writers), min_size=1, max_size=5))
            batch = [w.twin().next(data.draw(st.integers(1, 3)), key=data.draw(st.sampled_from(["", f"k{n}", "k"]))) for w in picked]
            for append, outcome in zip(batch, store.append(batch), strict=True):
                if isinstance(outcome, Appended) and not outcome.duplicate:
                    expected[append.stream] += len(append.events)
                    assert outcome.version == expected[append.stream]
            refreshed = data.draw(st.sampled_from(writers))
            head = store.head(refreshed.stream)
            refreshed.chain = StreamWriter(refreshed.stream, head.version, head.hash).chain
        assert {name: store.head(StreamId(name)).version for name in names} == expected


