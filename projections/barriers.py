"""Strict barriers: which marks their sources have left, and when each fires.

A barrier fires at the latest of its sources' first times and takes all marks up to then.
"""
from __future__ import annotations

from typing import NamedTuple

from ledgergraph.schemas.clock import Clock
from ledgergraph.schemas.graph import BarrierSpec, GraphSpec
from ledgergraph.schemas.ids import Time


class Moved(NamedTuple):
    """When a barrier fires has changed."""

    barrier: int
    target: str
    old: Time | None
    new: Time | None


class Barriers:
    def __init__(self, spec: GraphSpec) -> None:
        self.specs = spec.barriers
        self._of: dict[str, list[int]] = {}
        for k, b in enumerate(spec.barriers):
            for u in dict.fromkeys(b.sources):
                self._of.setdefault(u, []).append(k)
        self._needed = [len(set(b.sources)) for b in spec.barriers]
        self.clear()

    def clear(self) -> None:
        self._marks: list[dict[str, set[Time]]] = [{} for _ in self.specs]
        """Source -> the times at the target of what it sent."""
        self._full: list[Time | None] = [None] * len(self.specs)

    def mark(self, u: str, t: Time, clock: Clock) -> list[Moved]:
        """A task of u at time t is done."""
        out: list[Moved] = []
        for k in self._of.get(u, ()):
            self._marks[k].setdefault(u, set()).add(clock.along(u, self.specs[k].target, t))
            out += self._moved(k)
        return out

    def fired(self, node: str, t: Time) -> list[Moved]:
        """A firing took the marks of its barriers."""
        out: list[Moved] = []
        for k, at in enumerate(self._full):
            if at == t and self.specs[k].target == node:
                self._take(k, t)
                self._full[k] = None
                out += self._moved(k)
        return out

    def starved(self) -> list[tuple[BarrierSpec, list[str]]]:
        """Those that have some of their sources, and which they miss."""
        return [(b, [u for u in b.sources if u not in marks]) for b, marks in zip(self.specs, self._marks, strict=True) if marks]

    def proceed(self, barrier: BarrierSpec) -> Time:
        """Takes the marks of a starved barrier; the time at which it fires with them."""
        k = self.specs.index(barrier)
        t = max(min(times) for times in self._marks[k].values())
        self._take(k, t)
        return t

    def _take(self, k: int, t: Time) -> None:
        left = {u: {s for s in times if s > t} for u, times in self._marks[k].items()}
        self._marks[k] = {u: times for u, times in left.items() if times}

    def _moved(self, k: int) -> list[Moved]:
        old, marks = self._full[k], self._marks[k]
        new = max(map(min, marks.values())) if len(marks) == self._needed[k] else None
        self._full[k] = new
        return [Moved(k, self.specs[k].target, old, new)] if new != old else []
