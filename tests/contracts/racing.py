"""A race over one log: writers that hold on, commit late or roll back, and readers that follow them.

What the backends differ in is how a writer can hold a transaction open: a `Writing` of theirs.
"""
from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import orjson
from stream_writer import StreamWriter

from ledgergraph.eventstore.bell import Bell
from ledgergraph.eventstore.store import Append, Appended, EventStore
from ledgergraph.schemas.envelope import NewEvent, StoredEvent, payload_of

WRITERS = 8
READERS = 3
STREAMS = 5
"""Fewer than writers, so that they get into each other's way."""
APPENDS = 40
"""Tries of each writer."""
HOLD_MAX_S = 0.01
_EVERYTHING = 60.0
"""Seconds after which nothing new is a failure."""

Held = Callable[[Append, Callable[[], bool]], bool]
"""Stores the append in a transaction of its own that stays open while the second argument runs; what that returns says whether
it commits. Returns whether the append was stored and committed."""
Writing = AbstractContextManager[Held]


class Committed(NamedTuple):
    stream: str
    version: int
    hash: bytes


class Race:
    """Its writers, what they have committed, and what each reader saw."""

    def __init__(self, store: EventStore, seed: int, writing: Callable[[], Writing]) -> None:
        self.store, self.seed, self.writing = store, seed, writing
        self.committed: list[Committed] = []
        self.rolled_back = 0
        self.seen: list[list[StoredEvent]] = [[] for _ in range(READERS)]
        self._moved = Bell()
        self._errors: list[BaseException] = []
        self._going = set(range(WRITERS))

    def run(self) -> None:
        """Returns when every writer is done and every reader has found nothing more."""
        threads = [threading.Thread(target=self._noting_errors, args=(self._write, n), daemon=True) for n in range(WRITERS)]
        threads += [threading.Thread(target=self._noting_errors, args=(self._tail, n), daemon=True) for n in range(READERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_EVERYTHING)
            assert not thread.is_alive(), f"seed {self.seed}: somebody waits for ever; {self._errors}"
        if self._errors:
            raise AssertionError(f"seed {self.seed}") from self._errors[0]

    def _noting_errors(self, work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except BaseException as e:
            self._errors.append(e)
            raise
        finally:
            self._moved.ring()

    def _write(self, number: int) -> None:
        rng = random.Random(f"{self.seed}/{number}")
        try:
            with self.writing() as held:
                for _ in range(APPENDS):
                    self._append(rng, held)
        finally:
            self._going.discard(number)

    def _append(self, rng: random.Random, held: Held) -> None:
        append = self._made(rng)
        if rng.random() < 0.4:
            stored = held(append, lambda: self._hold(rng))
        else:
            stored = isinstance(self.store.append([append])[0], Appended)
        if stored:
            self.committed.extend(Committed(e.stream, e.version, e.hash) for e in append.events)
        else:
            self.rolled_back += 1
        self._moved.ring()

    def _made(self, rng: random.Random) -> Append:
        """Two events or so at the end of a stream as it was read; the first names a cause that is committed by then."""
        cause = rng.choice(self.committed) if self.committed else None
        name = f"thread:{rng.randrange(STREAMS)}"
        head = self.store.head(StreamWriter(name).stream)
        payload = orjson.dumps({"cause": cause and [cause.stream, cause.version]})
        events = [NewEvent("task.completed", payload), *[NewEvent("task.completed", b"{}") for _ in range(rng.randrange(3))]]
        return StreamWriter(name, head.version, head.hash).next(events)

    def _hold(self, rng: random.Random) -> bool:
        threading.Event().wait(rng.random() * HOLD_MAX_S)  # the hold is what is tested: nothing else happens meanwhile
        return rng.random() < 0.6

    def _tail(self, number: int) -> None:
        rng, seen = random.Random(f"{self.seed}/reader/{number}"), self.seen[number]
        while True:
            rings, going = self._moved.rings, bool(self._going)
            page = self.store.read_all(len(seen), rng.randint(1, 9))
            seen.extend(page)
            if not page and not going:
                return
            if not page:
                assert self._moved.wait(rings, _EVERYTHING) != rings, f"seed {self.seed}: nothing new"


def check(race: Race) -> None:
    """Each reader saw every committed event once, none that was not committed, in one order that nothing contradicts."""
    seen, seed = race.seen[0], f"seed {race.seed}"
    assert [e.position for e in seen] == list(range(1, len(seen) + 1)), seed
    assert sorted((e.stream, e.version, e.hash) for e in seen) == sorted(race.committed), seed
    for other in (*race.seen[1:], race.store.read_all(limit=len(seen) + 10)):
        assert other == seen, f"{seed}: positions differ"
    _check_order(seen, seed)


def _check_order(seen: Sequence[StoredEvent], seed: str) -> None:
    ends: dict[str, int] = {}
    for event in seen:
        assert event.version == ends.get(event.stream, 0) + 1, f"{seed}: an event comes before an earlier one of its stream"
        ends[event.stream] = event.version
        cause = orjson.loads(payload_of(event.data)).get("cause")
        assert cause is None or cause[1] <= ends.get(cause[0], 0), f"{seed}: an event comes before its cause"
