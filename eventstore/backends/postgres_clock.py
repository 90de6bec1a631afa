"""The database's time without asking for it each time."""
from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import NamedTuple

from ledgergraph.eventstore.backends import postgres_sql as sql
from ledgergraph.eventstore.backends.postgres_link import PostgresLink
from ledgergraph.schemas.errors import StoreUnavailable

ASKED_EVERY_S = 60.0
TRIES = 3
"""How often it is asked each time; the quickest answer counts."""


class _Reading(NamedTuple):
    took: int
    """Nanoseconds that the answer took: the estimate is wrong by half of that at most."""
    at: int
    """Nanoseconds of this process's steady clock, in the middle of the question."""
    time: int
    """The database's, microseconds since 1970 UTC."""


class PostgresClock:
    """Counts on from the last reading by this process's steady clock, so that a change of this machine's date is not seen."""

    def __init__(self, link: PostgresLink) -> None:
        """Raises StoreUnavailable."""
        self._link = link
        self._asking = threading.Lock()
        self._reading = self._ask()

    def now(self) -> int:
        """Microseconds since 1970 UTC."""
        now = time.monotonic_ns()
        if now - self._reading.at > ASKED_EVERY_S * 1e9 and self._asking.acquire(blocking=False):
            try:
                with suppress(StoreUnavailable):  # the last reading is still a good estimate
                    self._reading = self._ask()
            finally:
                self._asking.release()
        reading = self._reading
        return reading.time + (time.monotonic_ns() - reading.at) // 1_000

    def _ask(self) -> _Reading:
        return min(self._ask_once() for _ in range(TRIES))

    def _ask_once(self) -> _Reading:
        before = time.monotonic_ns()
        [(there,)] = self._link.ask(sql.CLOCK)
        took = time.monotonic_ns() - before
        return _Reading(took, before + took // 2, there)
