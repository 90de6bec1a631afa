"""Writes one stream: applies each event to the state at once, and stores what was offered in one append.

`sync`: `commit` returns when it is durable. `pipelined`: `commit` hands it to a thread and returns; `settle` waits until all
of it is durable, which whoever lets something out must do first (output commit).
"""
from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ledgergraph.consumers.artifacts import lightened
from ledgergraph.eventstore.store import Append, Appended, EventStore, Rows
from ledgergraph.projections.history import Loaded
from ledgergraph.projections.rows import changed_rows
from ledgergraph.schemas.envelope import NO_HASH, NewEvent, StoredEvent, content_digest
from ledgergraph.schemas.errors import LedgergraphError
from ledgergraph.schemas.events.catalogue import NAME_OF, encode
from ledgergraph.schemas.events.task import Begun, TasksReady, TaskStarted
from ledgergraph.schemas.upcasts import current

AHEAD_MAX = 1_024
"""Steps that may wait to be stored."""


class Ledger:
    """The end of one stream: its state, its chain, and what is offered but not yet stored."""

    def __init__(self, store: EventStore, loaded: Loaded, pipelined: bool = False, actor: str = "", origin: bytes = b"") -> None:
        self.store = store
        self.state, self.chain = loaded
        self.actor, self.origin = actor, origin
        self._offered: list[NewEvent] = []
        self._ready: dict[str, TasksReady] = {}
        """Task -> the tasks.ready that holds it, of those that are offered and not stored."""
        self._unsaid: dict[int, TasksReady] = {}
        """The same by their places among the offered: their payloads are not made yet."""
        self._at = 0
        self._behind = WriteBehind(store) if pipelined else None

    def offer(self, event: Any, *, encoded: Mapping[str, bytes] | None = None, code: str = "", actor: str | None = None,
              correlation: str | None = None) -> None:
        """Applies the event; `commit` will store it. Nothing is applied where its payload cannot be encoded."""
        if not self._offered:
            self._at = max(self.store.now(), self.chain.recorded_at)
        name = NAME_OF[type(event)]
        if isinstance(event, TasksReady):
            # What starts with it comes later: `_append` encodes it.
            event, payload = event._replace(begun=[]), b""
            self._ready.update(dict.fromkeys((t.task for t in event.tasks), event))
            self._unsaid[len(self._offered)] = event
        else:
            payload = encode(lightened(self.store, event, encoded), encoded)
        self.state.evolve(event, self._at)
        run = self.state.run
        who = correlation if correlation is not None else run.id if run is not None else ""
        self._offered.append(NewEvent(name, payload, current(name), None, self.actor if actor is None else actor, who, code=code))

    def begin(self, begun: Begun) -> None:
        """A task's start: within the event that makes it ready where that is not stored yet, else an event of its own."""
        if begun.task in self._ready:
            self._ready[begun.task].begun.append(begun)
            self.state.begin(begun)
        else:
            self.offer(TaskStarted(begun.task, begun.attempt, begun.worker), code=begun.code)

    def restart(self, loaded: Loaded) -> None:
        """Goes on from what the stream holds now; what was offered and not stored is forgotten."""
        self.state, self.chain = loaded
        self._offered = []
        self._ready.clear()
        self._unsaid.clear()
        if self._behind is not None:
            self._behind.close()
            self._behind = WriteBehind(self.store)

    @property
    def pending(self) -> bool:
        return bool(self._offered)

    def commit(self, key: str = "") -> None:
        """Stores what was offered. Raises WrongExpectedVersion where somebody else wrote: then this ledger is void, and the
        caller loads the stream again."""
        if not self._offered:
            return
        append = self._append(key)
        if self._behind is None:
            check(self.store.append([append])[0])
        else:
            self._behind.put(append)

    def settle(self) -> None:
        """Waits until all that was committed is durable."""
        if self._behind is not None:
            self._behind.settle()

    def close(self) -> None:
        if self._behind is not None:
            self._behind.close()

    def take(self, key: str = "") -> Append:
        """What was offered, as an append for a batch of several streams."""
        return self._append(key)

    def _append(self, key: str) -> Append:
        events, self._offered = self._offered, []
        for at, ready in self._unsaid.items():
            events[at] = events[at]._replace(payload=encode(ready))
        self._ready.clear()
        self._unsaid.clear()
        if key:
            events[0] = events[0]._replace(key=key)
        version, hash_ = self.chain.version, self.chain.hash
        origin = self.origin if version == 0 else b""
        stored = self.chain.extend(events, self._at)
        return Append(self.state.stream, version, hash_ if version else NO_HASH, stored, key, content_digest(events) if key else b"",
                      changed_rows(self.state), origin)


def check(outcome: Appended | LedgergraphError) -> Appended:
    """The outcome, or its error raised."""
    if isinstance(outcome, LedgergraphError):
        raise outcome
    return outcome


class WriteBehind:
    """Appends of one stream that are stored by a thread of their own, in order, several in one transaction."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._waiting: list[Append] = []
        self._busy = False
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def put(self, append: Append) -> None:
        with self._changed:
            while len(self._waiting) >= AHEAD_MAX and self._error is None:
                self._changed.wait()
            self._raise()
            self._waiting.append(append)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="ledgergraph-write-behind", daemon=True)
                self._thread.start()
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def settle(self) -> None:
        with self._changed:
            while (self._waiting or self._busy) and self._error is None:
                self._changed.wait()
            self._raise()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                batch, self._waiting = self._waiting, []
                if not batch:
                    return
                self._busy = True
                self._changed.notify_all()
            error: BaseException | None = None
            try:
                check(self._store.append([joined(batch)])[0])
            except BaseException as e:
                error = e
            with self._changed:
                self._busy, self._error = False, error
                self._changed.notify_all()
            if error is not None:
                return


def joined(batch: list[Append]) -> Append:
    """Appends that follow one another in a stream, as one."""
    if len(batch) == 1:
        return batch[0]
    events: list[StoredEvent] = [e for a in batch for e in a.events]
    return batch[0]._replace(events=events, key="", digest=b"", rows=joined_rows([a.rows for a in batch]))


def joined_rows(all_: list[Rows]) -> Rows:
    """The rows after all of the changes."""
    tasks: dict[Any, Any] = {}
    runs: dict[Any, Any] = {}
    questions: dict[Any, Any] = {}
    for r in all_:
        tasks.update({t.task: t for t in r.put_tasks} | dict.fromkeys(r.drop_tasks))
        runs.update({x.run: x for x in r.put_runs})
        questions.update({q.question: q for q in r.put_questions} | dict.fromkeys(r.drop_questions))
    return Rows(tuple(t for t in tasks.values() if t), tuple(k for k, t in tasks.items() if t is None), tuple(runs.values()),
                tuple(q for q in questions.values() if q), tuple(k for k, q in questions.items() if q is None))
