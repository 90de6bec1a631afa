"""A firing's name, and the completed firings of a run: which of them another one sees.

Whom a firing sees is found by walking its predecessors backwards: at each, its last firing that is early enough; where that is
the last that could matter, everything before it was seen by it, and the walk stops there.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

from ledgergraph.schemas.clock import LogicalClock, StepClock
from ledgergraph.schemas.graph import START
from ledgergraph.schemas.ids import Time


class FiringKey(NamedTuple):
    """A node at a logical time. It fires at most once."""

    node: str
    epoch: int
    time: Time


class Done:
    """The completed firings of a run."""

    def __init__(self, clock: LogicalClock | StepClock) -> None:
        self.clock = clock
        self.rank: dict[FiringKey, int] = {}
        self._of: dict[str, list[tuple[int, Time]]] = {}
        """(epoch, time) of each node's firings, in order."""
        self._at_step: dict[tuple[int, Time], list[FiringKey]] = {}
        self._steps: list[tuple[int, Time]] = []
        self._ends: dict[FiringKey, None] = {}
        self._epoch_ends: tuple[FiringKey, ...] = ()

    def __contains__(self, key: FiringKey) -> bool:
        return key in self.rank

    def add(self, key: FiringKey, rank: int, sources: tuple[FiringKey, ...]) -> None:
        """`sources`: what it saw."""
        if key not in self.rank:
            insort(self._of.setdefault(key.node, []), key[1:])
            if isinstance(self.clock, StepClock):
                self._add_step(key)
            for s in sources:
                self._ends.pop(s, None)
            self._ends[key] = None
        self.rank[key] = rank

    def _add_step(self, key: FiringKey) -> None:
        step = key[1:]
        if step not in self._at_step:
            self._at_step[step] = []
            insort(self._steps, step)
        self._at_step[step].append(key)

    def begin_epoch(self) -> None:
        """What follows sees all that is done by now."""
        self._epoch_ends = tuple(self._ends)

    def ends(self) -> tuple[FiringKey, ...]:
        """Those that no other one has seen."""
        return tuple(self._ends)

    def before(self, a: FiringKey, b: FiringKey) -> bool:
        """Whether b waits for a and sees its update."""
        if a.epoch != b.epoch:
            return a.epoch < b.epoch
        return self.clock.before(a.node, a.time, b.node, b.time)

    def visits(self, key: FiringKey) -> int:
        """How many firings of its own node it sees."""
        # Of one node, a later firing's tokens arrive later: those that are before `key` are the first ones.
        return bisect_left(self._of.get(key.node, ()), True, key=lambda x: not self.before(FiringKey(key.node, *x), key))

    def sources(self, key: FiringKey) -> tuple[FiringKey, ...]:
        """Those that it sees and that no other one that it sees has seen."""
        if isinstance(self.clock, StepClock):
            at = bisect_left(self._steps, key[1:])
            return tuple(self._at_step[self._steps[at - 1]]) if at else ()
        return self._walk(self.clock, key) or self._epoch_ends

    def _walk(self, clock: LogicalClock, key: FiringKey) -> tuple[FiringKey, ...]:
        exact: dict[FiringKey, None] = {}
        others: dict[FiringKey, None] = {}
        seen: set[tuple[str, Time]] = set()
        todo: list[tuple[str, Time]] = [(key.node, key.time)]
        while todo:
            v, t = todo.pop()
            for u in clock.sources[v]:
                latest = clock.bound(u, v, t) if u != START else None
                if latest is None or (u, latest) in seen:
                    continue
                seen.add((u, latest))
                last = self._last(u, key.epoch, latest)
                if last and last[0].time == latest:
                    exact[last[0]] = None
                else:
                    todo.append((u, latest))
                    others.update(dict.fromkeys(last[:1]))
                others.update(dict.fromkeys(last[1:]))
        found = exact | others
        if len(found) < 2:
            return tuple(found)
        nodes = 0
        for c in found:
            nodes |= clock.bit[c.node]
        # Of branches that do not lead to one another, none has to be compared.
        return tuple(c for c in found if not clock.leads[c.node] & nodes or not any(c is not d and self.before(c, d) for d in found))

    def _last(self, node: str, epoch: int, latest: Time) -> list[FiringKey]:
        """The last firing of a node by then, and earlier ones that it has not seen."""
        fired = self._of.get(node, ())
        i = bisect_right(fired, (epoch, latest)) - 1
        out: list[FiringKey] = []
        while i >= 0 and fired[i][0] == epoch:
            k = FiringKey(node, *fired[i])
            if out and self.before(k, out[0]):
                break
            out.append(k)
            i -= 1
        return out
