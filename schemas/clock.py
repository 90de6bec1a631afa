"""Logical time: when a token arrives, and which firings come before which.

A time is one counter per loop around a node, outermost first (Murray et al., Naiad: a timely dataflow system, SOSP 2013). An
edge that begins a round counts its loop up, an edge into a loop starts a counter at 0, an edge out of one drops it.
(n, s) is before (m, t) when a token that starts at n at time s can still reach m at a time not after t.
"""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol

from ledgergraph.schemas import digraph
from ledgergraph.schemas.graph import START, GraphSpec
from ledgergraph.schemas.ids import Time
from ledgergraph.schemas.loops import targets

INF = 1 << 62
"""A counter that no loop reaches: `any` in a bound."""


class Clock(Protocol):
    """How a graph counts time."""

    def start(self, n: str) -> Time:
        """Of a token from outside."""
        ...

    def along(self, u: str, v: str, t: Time) -> Time:
        """At v, of a token that u sends at time t."""
        ...

    def sent(self, u: str, to: set[str], t: Time) -> dict[str, Time]:
        """The times of the tokens of one decision."""
        ...

    def before(self, n: str, s: Time, m: str, t: Time) -> bool:
        """Whether m at t waits for n at s and sees its update."""
        ...

    def place(self, rank: int, n: str, index: int, origin: Any) -> tuple[Any, ...]:
        """Where an update stands in the fold. `origin`: of the Send that its task came from; None: it came from none."""
        ...


class LogicalClock:
    """Dataflow time."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.names = (START, *spec.names)
        self.nest: dict[str, tuple[str, ...]] = dict.fromkeys(self.names, ())
        self.nest.update(spec.loops)
        self.back = {(u, v): d for u, v, d in spec.back}
        self.order = spec.order
        self.bit = {n: 1 << i for i, n in enumerate(self.names)}
        self._earliest: dict[tuple[str, str], Time | None] = {}
        self._tables: dict[tuple[str, str], dict[str, Time]] = {}
        self._shared: dict[tuple[str, str], int] = {}

    @cached_property
    def onward(self) -> dict[str, tuple[str, ...]]:
        return {n: targets(self.spec, n) for n in self.names}

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """Who may send a token to each node."""
        return digraph.reversed_(self.names, self.onward)

    @cached_property
    def leads(self) -> dict[str, int]:
        """What each node's tokens may lead to, as a bit set: itself only where it lies on a cycle."""
        reach = digraph.reached(self.names, self.onward)
        return {n: _union(reach[v] for v in self.onward[n]) for n in self.names}

    @cached_property
    def comes(self) -> dict[str, int]:
        """Whose tokens may lead to each node."""
        reach = digraph.reached(self.names, self.sources)
        return {n: _union(reach[u] for u in self.sources[n]) for n in self.names}

    def start(self, n: str) -> Time:
        return (0,) * len(self.nest[n])

    def shared(self, u: str, v: str) -> int:
        """How many loops u and v are both in."""
        known = self._shared.get((u, v))
        if known is None:
            a, b = self.nest[u], self.nest[v]
            known = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            self._shared[u, v] = known
        return known

    def along(self, u: str, v: str, t: Time) -> Time:
        return self._along(u, v, t, self.back.get((u, v)))

    def _along(self, u: str, v: str, t: Time, depth: int | None) -> Time:
        """`depth`: of the loop that it begins a round of."""
        deep = len(self.nest[v])
        if depth is None:
            keep = self.shared(u, v)
            return t if keep == deep == len(t) else (*t[:keep], *(0,) * (deep - keep))
        return (*t[:depth], t[depth] + 1, *(0,) * (deep - depth - 1))

    def sent(self, u: str, to: set[str], t: Time) -> dict[str, Time]:
        """What one decision goes back to is one round, of the outermost loop among its targets."""
        backs = [self.back[u, v] for v in to if (u, v) in self.back]
        if not backs:
            return {v: self._along(u, v, t, None) for v in to}
        depth = min(backs)
        return {v: self._along(u, v, t, depth if (u, v) in self.back else None) for v in to}

    def before(self, n: str, s: Time, m: str, t: Time) -> bool:
        if not self.leads[n] & self.bit[m]:
            return False
        if not t:
            return True
        first = self.earliest(n, s, m)
        return first is not None and first <= t

    def earliest(self, n: str, s: Time, m: str) -> Time | None:
        """The earliest time at which work of n at time s can still bring a token to m; None: never. The counters of shared loops
        go on from s, up to the first that moves; what follows it starts anew."""
        if (n, m) not in self._earliest:
            self._earliest[n, m] = self._least(n, m)
        t = self._earliest[n, m]
        if t is None:
            return None
        common = self.shared(n, m)
        for i in range(common):
            if t[i]:
                return (*s[:i], s[i] + t[i], *t[i + 1:])
        return (*s[:common], *t[common:])

    def _least(self, n: str, m: str) -> Time | None:
        """The earliest arrival at m of what n sends at time 0, 0, ..."""
        if not self.leads[n] & self.bit[m]:
            return None
        if not self.nest[m]:
            return ()
        loop = self.nest[m][0]
        if (n, loop) not in self._tables:
            self._tables[n, loop] = self._table(n, loop)
        return self._tables[n, loop][m]

    def _table(self, n: str, loop: str) -> dict[str, Time]:
        """The same for each node of an outermost loop. (Dijkstra's algorithm over times, with corrections, since the times of two
        nodes are of different lengths.)"""
        inside = self._members[loop]
        best: dict[str, Time] = {}
        todo = [(self.along(n, v, self.start(n)), v) for v in self.onward[n] if v in inside]
        if n not in inside:
            came = self.leads[n] | self.bit[n]
            todo = [(self.start(v), v) for v in sorted(inside) if any(u not in inside and came & self.bit[u] for u in self.sources[v])]
        heapq.heapify(todo)
        while todo:
            t, v = heapq.heappop(todo)
            if v not in best or t < best[v]:
                best[v] = t
                for w in self.onward[v]:
                    if w in inside:
                        heapq.heappush(todo, (self.along(v, w, t), w))
        return best

    @cached_property
    def _members(self) -> dict[str, set[str]]:
        out: dict[str, set[str]] = {}
        for n, loops in self.nest.items():
            if loops:
                out.setdefault(loops[0], set()).add(n)
        return out

    def bound(self, u: str, v: str, t: Time) -> Time | None:
        """The latest time at u whose token along the edge to v is there not after t; INF where any will do. None: no time is."""
        depth = self.back.get((u, v))
        if depth is None:
            keep = self.shared(u, v)
            return (*t[:keep], *(INF,) * (len(self.nest[u]) - keep))
        head = list(t[:depth + 1])
        while head and head[-1] == 0:
            head.pop()
        if not head:
            return None
        if head[-1] < INF:
            head[-1] -= 1
        return (*head, *(INF,) * (len(self.nest[u]) - len(head)))

    def place(self, rank: int, n: str, index: int, origin: Any) -> tuple[Any, ...]:
        return rank, self.order[n], index


class StepClock:
    """Superstep time: every edge is one step, and a step sees all steps before it. Folds as LangGraph does: by name, then Sends
    in the order in which they were sent."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec

    def start(self, n: str) -> Time:
        return (0,)

    def along(self, u: str, v: str, t: Time) -> Time:
        return (t[0] + 1,)

    def sent(self, u: str, to: set[str], t: Time) -> dict[str, Time]:
        return dict.fromkeys(to, (t[0] + 1,))

    def before(self, n: str, s: Time, m: str, t: Time) -> bool:
        return s < t

    def place(self, rank: int, n: str, index: int, origin: Any) -> tuple[Any, ...]:
        return (rank, 0, n, ()) if origin is None else (rank, 1, "", origin)


KEPT_MAX = 256
_KEPT: dict[str, LogicalClock | StepClock] = {}


def clock_for(spec: GraphSpec) -> LogicalClock | StepClock:
    """The spec's clock; kept, since what it works out once serves every run of the graph."""
    kept = _KEPT.get(spec.fingerprint)
    if kept is None:
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.clear()
        kept = _KEPT[spec.fingerprint] = LogicalClock(spec) if spec.clock == "logical" else StepClock(spec)
    return kept


def _union(masks: Iterable[int]) -> int:
    out = 0
    for m in masks:
        out |= m
    return out


__all__ = ["INF", "Clock", "LogicalClock", "Mapping", "StepClock", "clock_for"]
