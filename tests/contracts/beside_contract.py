"""What every backend promises of rows, workers, caches and artifacts."""
from __future__ import annotations

import hashlib

import pytest
from stream_writer import StreamWriter, question_row, run_row, task_row

from ledgergraph.eventstore.store import EventStore, Rows, Snapshot, Worker
from ledgergraph.schemas.errors import DamagedLog, StoreUnavailable
from ledgergraph.schemas.ids import RunId, StreamId, ThreadId, Version


class BesideContract:
    def damage_artifact(self, store: EventStore, digest: str) -> None:
        """Changes the bytes stored under the digest behind the store's back."""
        raise NotImplementedError

    def test_tasks_are_filtered_and_those_due_first_come_first(self, store: EventStore) -> None:
        rows = (task_row("t1", due_at=5), task_row("t2", run="run-2", due_at=3), task_row("t3", state="started", due_at=4))
        StreamWriter("thread:a").store(store, 1, rows=Rows(put_tasks=rows))
        assert [t.task for t in store.tasks()] == ["t2", "t3", "t1"]
        assert [t.task for t in store.tasks(run=RunId("run-1"))] == ["t3", "t1"]
        assert [t.task for t in store.tasks(state="ready")] == ["t2", "t1"]
        assert [t.task for t in store.tasks(run=RunId("run-1"), state="ready")] == ["t1"]
        assert [t.task for t in store.tasks(limit=1)] == ["t2"]
        assert store.tasks(run=RunId("run-3")) == []
        assert store.tasks(run=RunId("run-2")) == [rows[1]]

    def test_runs_are_filtered_and_the_newest_comes_first(self, store: EventStore) -> None:
        rows = (run_row("r1", started_at=1), run_row("r2", thread="b", started_at=2), run_row("r3", status="done", started_at=3))
        StreamWriter("thread:a").store(store, 1, rows=Rows(put_runs=rows))
        assert [r.run for r in store.runs()] == ["r3", "r2", "r1"]
        assert [r.run for r in store.runs(thread=ThreadId("a"))] == ["r3", "r1"]
        assert [r.run for r in store.runs(status="running")] == ["r2", "r1"]
        assert [r.run for r in store.runs(thread=ThreadId("a"), status="running", limit=1)] == ["r1"]
        assert store.run(RunId("r2")) == rows[1]
        assert store.run(RunId("r9")) is None

    def test_questions_are_filtered_and_the_oldest_comes_first(self, store: EventStore) -> None:
        writer = StreamWriter("thread:a")
        rows = (question_row("q1", asked_at=2), question_row("q2", asked_at=1), question_row("q3", run="run-2", asked_at=3))
        writer.store(store, 1, rows=Rows(put_questions=rows))
        assert [q.question for q in store.questions()] == ["q2", "q1", "q3"]
        assert store.questions(run=RunId("run-1"), limit=1) == [rows[1]]
        writer.store(store, 1, rows=Rows(drop_questions=("q1", "q9")))
        assert [q.question for q in store.questions()] == ["q2", "q3"]

    def test_replaced_rows_are_all_that_is_left(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 1, rows=Rows((task_row("t1"),), (), (run_row("r1"),), (question_row("q1"),)))
        store.replace_rows(Rows((task_row("t2"),), (), (run_row("r2"),), (question_row("q2"),)))
        assert (store.tasks(), store.runs(), store.questions()) == ([task_row("t2")], [run_row("r2")], [question_row("q2")])
        store.replace_rows(Rows())
        assert (store.tasks(), store.runs(), store.questions()) == ([], [], [])
        assert store.last_position() == 1

    def test_a_worker_is_its_last_beat(self, store: EventStore) -> None:
        assert store.worker("w") is None
        store.beat(Worker("w", "host", 1, 2, 3))
        store.beat(Worker("w", "host", 1, 2, 1_800_000_000_000_000))
        store.beat(Worker("v", "häuser", 5, 6, 7))
        assert store.worker("w") == Worker("w", "host", 1, 2, 1_800_000_000_000_000)
        assert store.worker("v") == Worker("v", "häuser", 5, 6, 7)

    def test_a_snapshot_is_found_by_fingerprint_and_version(self, store: EventStore) -> None:
        stream = StreamId("thread:a")
        made = {(v, f): Snapshot(stream, Version(v), bytes([v]) * 32, f, b"\0state %d" % v) for v in (2, 5, 9) for f in ("f1", "f2")}
        for snapshot in made.values():
            store.put_snapshot(snapshot)
        store.put_snapshot(made[5, "f1"]._replace(data=b"again"))
        assert store.snapshot(stream, "f2") == made[9, "f2"]
        assert store.snapshot(stream, "f1", until=8) == made[5, "f1"]._replace(data=b"again")
        assert store.snapshot(stream, "f1", until=9) == made[9, "f1"]
        assert store.snapshot(stream, "f1", until=1) is None
        assert store.snapshot(stream, "f3") is None
        assert store.snapshot(StreamId("thread:b"), "f1") is None
        store.drop_snapshots(stream, 9)
        assert store.snapshot(stream, "f1", until=8) is None
        assert store.snapshot(stream, "f1") == made[9, "f1"]

    def test_a_checkpoint_is_its_last_value(self, store: EventStore) -> None:
        assert store.checkpoint("audit") is None
        store.put_checkpoint("audit", 3, b"\1" * 32)
        store.put_checkpoint("cost", 4, b"\2" * 32)
        store.put_checkpoint("audit", 9, b"\0" * 32)
        assert store.checkpoint("audit") == (9, b"\0" * 32)
        assert store.checkpoint("cost") == (4, b"\2" * 32)

    @pytest.mark.parametrize("data", [b"", b"\0\1\0", b"x" * 3_000_000])
    def test_an_artifact_is_named_by_its_content(self, store: EventStore, data: bytes) -> None:
        digest = store.put_artifact(data)
        assert digest == hashlib.sha256(data).hexdigest() == store.put_artifact(data)
        assert store.artifact(digest) == data

    def test_an_unknown_artifact_is_a_key_error(self, store: EventStore) -> None:
        with pytest.raises(KeyError, match="0" * 64):
            store.artifact("0" * 64)

    def test_a_damaged_artifact_is_not_returned(self, store: EventStore) -> None:
        digest = store.put_artifact(b"rates 2026-11-30")
        self.damage_artifact(store, digest)
        with pytest.raises(DamagedLog, match=digest):
            store.artifact(digest)

    def test_a_closed_store_answers_nothing(self, store: EventStore) -> None:
        StreamWriter("thread:a").store(store, 1)
        store.close()
        store.close()
        for call in (lambda: store.append([StreamWriter("thread:b").next()]), lambda: store.read_all(), store.last_position,
                     lambda: store.head(StreamId("thread:a")), store.tasks, lambda: store.put_artifact(b"x"),
                     lambda: store.put_checkpoint("c", 1, b"")):
            with pytest.raises(StoreUnavailable, match="closed"):
                call()


class DurableContract:
    """For backends that outlive their process: the fixture `open_again` opens what `store` opened."""

    def test_all_is_there_after_reopening(self, store: EventStore, open_again: object) -> None:
        assert callable(open_again)
        writer = StreamWriter("thread:a")
        writer.store(store, 3, key="k", rows=Rows((task_row("t1"),), (), (run_row("r1"),), (question_row("q1"),)))
        digest = store.put_artifact(b"x")
        events, incarnation = store.read_all(), store.incarnation
        store.close()
        again: EventStore = open_again()
        assert again.incarnation == incarnation
        assert again.read_all() == events
        assert (again.tasks(), again.runs(), again.questions()) == ([task_row("t1")], [run_row("r1")], [question_row("q1")])
        assert again.artifact(digest) == b"x"
        [retry] = again.append([StreamWriter("thread:a").next(3, key="k")])
        assert retry == (3, True)
        writer.store(again, 1)
        assert again.last_position() == 4

    def test_two_open_stores_share_one_log(self, store: EventStore, open_again: object) -> None:
        assert callable(open_again)
        other: EventStore = open_again()
        a, b = StreamWriter("thread:a"), StreamWriter("thread:b")
        for _ in range(5):
            a.store(store, 2)
            b.store(other, 1)
        assert other.read_all(limit=100) == store.read_all(limit=100)
        assert [e.position for e in store.read_all(limit=100)] == list(range(1, 16))
        late = a.twin()
        a.store(other, 1)
        assert type(store.append([late.next()])[0]).__name__ == "WrongExpectedVersion"
