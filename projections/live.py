"""The live firings of a run (waiting or running), and which of them another one waits for."""
from __future__ import annotations

from collections.abc import Callable

from ledgergraph.projections.firings import FiringKey
from ledgergraph.schemas.clock import LogicalClock, StepClock

Before = Callable[[FiringKey, FiringKey], bool]


class Live:
    def __init__(self, clock: LogicalClock | StepClock, before: Before) -> None:
        self.clock, self.before = clock, before
        self._of: dict[str, dict[FiringKey, None]] = {}
        self._mask = 0
        """Nodes with live firings, as the clock's bit set."""
        self._first: FiringKey | None = None
        """The earliest, for supersteps; None: not known."""

    def add(self, key: FiringKey) -> None:
        self._of.setdefault(key.node, {})[key] = None
        if isinstance(self.clock, LogicalClock):
            self._mask |= self.clock.bit[key.node]
        self._first = None

    def remove(self, key: FiringKey) -> None:
        keys = self._of[key.node]
        del keys[key]
        if not keys and isinstance(self.clock, LogicalClock):
            self._mask &= ~self.clock.bit[key.node]
        self._first = None

    def blocker(self, key: FiringKey) -> FiringKey | None:
        """One that is before the given one; None: there is none."""
        if isinstance(self.clock, StepClock):
            first = self._earliest()
            return first if first is not None and self.before(first, key) else None
        names = self.clock.names
        mask = self._mask & self.clock.comes[key.node]
        while mask:
            low = mask & -mask
            for other in self._of[names[low.bit_length() - 1]]:
                if other != key and self.before(other, key):
                    return other
            mask ^= low
        return None

    def _earliest(self) -> FiringKey | None:
        if self._first is None:
            self._first = min((k for keys in self._of.values() for k in keys), key=lambda k: (k.epoch, k.time), default=None)
        return self._first
