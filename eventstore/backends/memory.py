"""The log in this process's memory: the short reference for what every backend does."""
from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from ledgergraph.eventstore.bell import Bell
from ledgergraph.eventstore.offer import check_append
from ledgergraph.eventstore.store import (
    Append,
    Appended,
    Head,
    Outcome,
    QuestionRow,
    Rows,
    RunRow,
    Snapshot,
    TaskRow,
    TaskState,
    Worker,
)
from ledgergraph.schemas.envelope import NO_HASH, StoredEvent
from ledgergraph.schemas.errors import DamagedLog, IdempotencyConflict, StoreUnavailable, WrongExpectedVersion
from ledgergraph.schemas.ids import Position, RunId, StreamId, ThreadId, Version

_NO_HEAD = Head(0, NO_HASH, 0)


class _Key(NamedTuple):
    digest: bytes
    version: Version


class MemoryStore:
    """An EventStore that ends with its process. One lock: every method is atomic."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._incarnation = uuid.uuid4().hex
        self._bell = Bell()
        self._events: list[StoredEvent] = []
        self._streams: dict[str, list[StoredEvent]] = {}
        self._keys: dict[tuple[str, str], _Key] = {}
        self._tasks: dict[str, TaskRow] = {}
        self._runs: dict[str, RunRow] = {}
        self._questions: dict[str, QuestionRow] = {}
        self._workers: dict[str, Worker] = {}
        self._snapshots: dict[tuple[str, str, int], Snapshot] = {}
        self._checkpoints: dict[str, tuple[int, bytes]] = {}
        self._artifacts: dict[str, bytes] = {}

    @property
    def incarnation(self) -> str:
        return self._incarnation

    @property
    def bell(self) -> Bell:
        return self._bell

    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        for append in batch:
            check_append(append)
        with self._open():
            outcomes = [self._append(a) for a in batch]
        self._bell.ring()
        return outcomes

    def _append(self, a: Append) -> Outcome:
        stored = self._keys.get((a.stream, a.key)) if a.key else None
        if stored is not None:
            if stored.digest != a.digest:
                return IdempotencyConflict(a.stream, a.key, stored.digest.hex(), a.digest.hex())
            return Appended(stored.version, duplicate=True)
        head = self._head(a.stream)
        if head.version != a.expected_version:
            return WrongExpectedVersion(a.stream, a.expected_version, head.version)
        if head.version and head.hash != a.expected_hash:
            return WrongExpectedVersion(a.stream, a.expected_version, head.version, "its last event is another one")
        events = [e._replace(position=at) for at, e in enumerate(a.events, len(self._events) + 1)]
        self._events.extend(events)
        self._streams.setdefault(a.stream, []).extend(events)
        version = events[-1].version
        if a.key:
            self._keys[a.stream, a.key] = _Key(a.digest, version)
        self._put(a.rows)
        return Appended(version)

    def _put(self, rows: Rows) -> None:
        self._tasks.update((row.task, row) for row in rows.put_tasks)
        self._runs.update((row.run, row) for row in rows.put_runs)
        self._questions.update((row.question, row) for row in rows.put_questions)
        for task in rows.drop_tasks:
            self._tasks.pop(task, None)
        for question in rows.drop_questions:
            self._questions.pop(question, None)

    def _head(self, stream: str) -> Head:
        events = self._streams.get(stream)
        return Head(events[-1].version, events[-1].hash, events[-1].recorded_at) if events else _NO_HEAD

    def head(self, stream: StreamId) -> Head:
        with self._open():
            return self._head(stream)

    def heads(self, after: str = "", limit: int = 10_000) -> list[tuple[StreamId, Head]]:
        with self._open():
            names = sorted(name for name in self._streams if name > after)[:limit]
            return [(StreamId(name), self._head(name)) for name in names]

    def read_stream(self, stream: StreamId, after: int = 0, limit: int = 1_000_000, until: int | None = None) -> list[StoredEvent]:
        with self._open():
            return self._streams.get(stream, [])[after:until][:limit]

    def read_all(self, after: int = 0, limit: int = 1_000) -> list[StoredEvent]:
        with self._open():
            return self._events[after:after + limit]

    def last_position(self) -> Position:
        with self._open():
            return Position(len(self._events))

    def now(self) -> int:
        return time.time_ns() // 1_000

    def tasks(self, run: RunId | None = None, state: TaskState | None = None, limit: int = 10_000) -> list[TaskRow]:
        with self._open():
            rows = [t for t in self._tasks.values() if run in (None, t.run) and state in (None, t.state)]
        return sorted(rows, key=lambda t: (t.due_at, t.task))[:limit]

    def runs(self, thread: ThreadId | None = None, status: str | None = None, limit: int = 1_000) -> list[RunRow]:
        with self._open():
            rows = [r for r in self._runs.values() if thread in (None, r.thread) and status in (None, r.status)]
        return sorted(rows, key=lambda r: (r.started_at, r.run), reverse=True)[:limit]

    def run(self, run: RunId) -> RunRow | None:
        with self._open():
            return self._runs.get(run)

    def questions(self, run: RunId | None = None, limit: int = 1_000) -> list[QuestionRow]:
        with self._open():
            rows = [q for q in self._questions.values() if run in (None, q.run)]
        return sorted(rows, key=lambda q: (q.asked_at, q.question))[:limit]

    def replace_rows(self, rows: Rows) -> None:
        with self._open():
            self._tasks, self._runs, self._questions = {}, {}, {}
            self._put(rows)

    def beat(self, worker: Worker) -> None:
        with self._open():
            self._workers[worker.worker] = worker

    def worker(self, worker: str) -> Worker | None:
        with self._open():
            return self._workers.get(worker)

    def put_snapshot(self, snapshot: Snapshot) -> None:
        with self._open():
            self._snapshots[snapshot.stream, snapshot.fingerprint, snapshot.version] = snapshot

    def drop_snapshots(self, stream: StreamId, before: int) -> None:
        with self._lock:
            self._snapshots = {k: s for k, s in self._snapshots.items() if s.stream != stream or s.version >= before}

    def snapshot(self, stream: StreamId, fingerprint: str, until: int | None = None) -> Snapshot | None:
        with self._open():
            found = [s for s in self._snapshots.values()
                     if s.stream == stream and s.fingerprint == fingerprint and (until is None or s.version <= until)]
        return max(found, key=lambda s: s.version, default=None)

    def put_checkpoint(self, name: str, position: int, hash: bytes) -> None:
        with self._open():
            self._checkpoints[name] = (position, hash)

    def checkpoint(self, name: str) -> tuple[int, bytes] | None:
        with self._open():
            return self._checkpoints.get(name)

    def put_artifact(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        with self._open():
            self._artifacts.setdefault(digest, data)
        return digest

    def artifact(self, digest: str) -> bytes:
        with self._open():
            data = self._artifacts[digest]
        if hashlib.sha256(data).hexdigest() != digest:
            raise damaged_artifact(digest)
        return data

    def close(self) -> None:
        self._closed = True

    def _open(self) -> threading.RLock:
        if self._closed:
            raise StoreUnavailable("the log in memory was closed, and is gone with that. Open another one.")
        return self._lock


def damaged_artifact(digest: str) -> DamagedLog:
    return DamagedLog("artifacts", 0, f"the bytes stored under {digest} have another digest")
