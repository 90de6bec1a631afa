"""A reader of the whole log that goes on where it left off.

    starting -- its checkpoint is this log's --> catching up -- nothing is left to read --> live
       \\                                             ^                                      |
        `- it is another log's: ForeignLog           `--------- something was appended -----+

`batches` hands out events; `ack` keeps how far they were dealt with. A reader that dies in between gets them again: what it does with
them has to bear that (at least once), or to be stored with the checkpoint.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Literal

from ledgergraph.eventstore.store import EventStore
from ledgergraph.schemas.envelope import NO_HASH, StoredEvent
from ledgergraph.schemas.errors import ForeignLog

State = Literal["starting", "catching up", "live", "stopped"]
BATCH_MAX = 1_000
"""Events that are handed out together."""
PATIENCE_S = 0.5
"""Between two looks at a log that other processes write to: their commits ring no bell here."""


class Subscription:
    """One named reader of a store. Its batches are for one thread; `stop` may come from any."""

    def __init__(self, store: EventStore, name: str, batch_max: int = BATCH_MAX) -> None:
        """Raises ForeignLog where the checkpoint of that name was made on another log."""
        self.store, self.name, self.batch_max = store, name, batch_max
        self.state: State = "starting"
        self.position, self._hash = store.checkpoint(name) or (0, NO_HASH)
        self._read_to, self._read_hash = self.position, self._hash
        self._stopped = threading.Event()
        self._refuse_foreign()
        self.state = "catching up"

    def _refuse_foreign(self) -> None:
        if self.position == 0:
            return
        there = self.store.read_all(self.position - 1, 1)
        if not there or there[0].position != self.position or there[0].hash != self._hash:
            found = f"has the hash {there[0].hash.hex()[:16]}" if there else f"is not there (the last one is {self.store.last_position()})"
            raise ForeignLog(f"reader {self.name!r} has read up to position {self.position} with the hash {self._hash.hex()[:16]}; in log "
                             f"{self.store.incarnation} that position {found}. It is another log, or an older copy of it (a restored backup, a "
                             "fail-over). Rebuild what this reader made, from position 0, under a new name; or open the log that it was made on.")

    def batches(self, *, wait: bool = True) -> Iterator[list[StoredEvent]]:
        """Events in the order of their positions, from behind the checkpoint on. `wait`: goes on until it is stopped; else ends where
        the log ends."""
        while not self._stopped.is_set():
            rings = self.store.bell.rings
            events = self.store.read_all(self._read_to, self.batch_max)
            if events:
                self.state = "catching up" if len(events) == self.batch_max else "live"
                self._read_to, self._read_hash = events[-1].position or 0, events[-1].hash
                yield events
            elif wait:
                self.state = "live"
                self.store.bell.wait(rings, PATIENCE_S)
            else:
                return

    def ack(self) -> None:
        """What was handed out has been dealt with: a later reader of this name begins behind it."""
        if self._read_to != self.position:
            self.store.put_checkpoint(self.name, self._read_to, self._read_hash)
            self.position, self._hash = self._read_to, self._read_hash

    def stop(self) -> None:
        """The reader ends after its batch; one that waits is woken."""
        self._stopped.set()
        self.state = "stopped"
        self.store.bell.ring()
