"""The rules of scheduling as a program that only says what is right: it searches where the product compares, and looks at the whole
history at every step."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ledgergraph.projections.schedule import NOTHING, Sent
from ledgergraph.schemas.graph import END, START, GraphSpec
from tests.simulation.random_graphs import Router, Task

Time = tuple[int, ...]
Firing = tuple[str, Time]
Choose = Callable[[Sequence[Task]], Task]
Done = dict[Task, tuple[Any, tuple[Task, ...]]]
"""Task -> (place in the fold, the tasks that it saw in their order)."""
NO_CAP = 1 << 30


class Ticking:
    """How time passes along the edges of a graph, and who can still reach whom."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.steps = spec.clock == "superstep"
        self.around = {START: (), **dict.fromkeys(spec.names, ()), **dict(spec.loops)}
        self.begins = {(u, v): d for u, v, d in spec.back}
        always = [*spec.edges, *((s, b.target) for b in spec.barriers for s in b.sources)]
        routed = [(r.source, v) for r in spec.routes for v in r.targets]
        capped = [(n.name, n.on_cap) for n in spec.nodes if n.on_cap]
        self.onward = {n: sorted({v for u, v in always + routed + capped if u == n and v != END}) for n in self.around}
        self._found: dict[Firing, dict[str, Time]] = {}

    def first(self, n: str) -> Time:
        return (0,) if self.steps else tuple(0 for _ in self.around[n])

    def along(self, u: str, v: str, t: Time, round_of: int | None) -> Time:
        """`round_of`: the depth of the loop whose next round the token begins."""
        if self.steps:
            return (t[0] + 1,)
        into, out_of = self.around[v], self.around[u]
        now: list[int] = []
        for depth in range(len(into)):
            together = out_of[:depth + 1] == into[:depth + 1]
            if round_of is not None and depth == round_of:
                now.append(t[depth] + 1)
            elif together and (round_of is None or depth < round_of):
                now.append(t[depth])
            else:
                now.append(0)
        return tuple(now)

    def alone(self, u: str, v: str, t: Time) -> Time:
        """At v, of the only token that u sends."""
        return self.along(u, v, t, self.begins.get((u, v)))

    def arrivals(self, n: str, s: Time) -> dict[str, Time]:
        """The earliest time at each node of what n sends at s, by searching on from there."""
        if (n, s) not in self._found:
            best: dict[str, Time] = {}
            todo = [(n, s)]
            while todo:
                u, t = todo.pop()
                for v in self.onward[u]:
                    at = self.alone(u, v, t)
                    if v not in best or at < best[v]:
                        best[v] = at
                        todo.append((v, at))
            self._found[n, s] = best
        return self._found[n, s]

    def before(self, a: Firing, b: Firing) -> bool:
        if self.steps:
            return a[1] < b[1]
        at = self.arrivals(*a).get(b[0])
        return at is not None and at <= b[1]


class NaiveRun:
    """One run. It may be gone on with after it stopped at a cap."""

    def __init__(self, spec: GraphSpec, route: Router, limit: int, max_steps: int = NO_CAP) -> None:
        self.spec, self.route, self.limit, self.max_steps = spec, route, limit, max_steps
        self.visits_allowed = 1
        self.time = Ticking(spec)
        self.tokens: list[tuple[Firing, Any]] = []
        """(where and when, None or the Send's (place of its sender, number))."""
        self.marks: list[tuple[int, str, Time]] = []
        self.running: Done = {}
        self.done: Done = {}
        self.redirected: set[Firing] = set()
        self.proceeded: list[int] = []

    def begin(self) -> None:
        self.send((START, self.time.first(START), 0), (0,), ())

    def go(self, choose: Choose) -> Done | None:
        """What is done when nothing can start any more; None: it went on beyond the limit."""
        if not self.done:
            self.begin()
        while True:
            while self.start():
                pass
            if not self.running and not self.proceed():
                assert self.capped() or not self.waiting(), f"nothing can fire: {self.waiting()}"
                return self.done
            if self.running:
                task = choose(sorted(self.running))
                place, seen = self.done[task] = self.running.pop(task)
                if len(self.done) >= self.limit:
                    return None
                self.send(task, place, seen)

    def send(self, task: Task, place: Any, seen: Sequence[Task]) -> None:
        u, t, _ = task
        sent = [Sent(v) for x, v in self.spec.edges if x == u and v != END] + [s for s in self.route(task, seen) if s.node != END]
        rounds = [self.time.begins[u, s.node] for s in sent if (u, s.node) in self.time.begins]
        for k, s in enumerate(sent):
            at = self.time.along(u, s.node, t, min(rounds) if (u, s.node) in self.time.begins else None)
            self.tokens.append(((s.node, at), None if s.payload is NOTHING else (place, k)))
        for k, b in enumerate(self.spec.barriers):
            if u in b.sources:
                self.marks.append((k, u, self.time.alone(u, b.target, t)))

    def first_marks(self, k: int) -> list[Time]:
        """When the barrier's sources first came, of those that did."""
        at = [[t for j, u, t in self.marks if (j, u) == (k, s)] for s in dict.fromkeys(self.spec.barriers[k].sources)]
        return [min(ts) for ts in at if ts]

    def full(self) -> dict[int, Firing]:
        out: dict[int, Firing] = {}
        for k, b in enumerate(self.spec.barriers):
            firsts = self.first_marks(k)
            if len(firsts) == len(set(b.sources)):
                out[k] = (b.target, max(firsts))
        return out

    def waiting(self) -> set[Firing]:
        return {f for f, _ in self.tokens} | set(self.full().values())

    def free(self) -> list[Firing]:
        """The waiting firings that nothing live is before."""
        waiting = self.waiting()
        live = waiting | {(n, t) for n, t, _ in self.running}
        return [f for f in sorted(waiting) if not any(self.time.before(other, f) for other in live if other != f)]

    def sees(self, firing: Firing) -> list[tuple[Any, Task]]:
        return sorted((place, x) for x, (place, _) in self.done.items() if self.time.before(x[:2], firing))

    def start(self) -> bool:
        """Starts what is free. True where a cap sent a firing elsewhere, so that more may be free."""
        moved = False
        for firing in self.free():
            assert not any(x[:2] == firing for x in [*self.done, *self.running]), f"{firing} fires twice"
            cap = self.cap_of(firing)
            elsewhere = self.spec.node[firing[0]].on_cap if cap == "max_visits" else None
            if cap is None:
                self.fire(firing)
            elif elsewhere:
                self.take(firing)
                self.redirected.add(firing)
                if elsewhere != END:
                    self.tokens.append(((elsewhere, self.time.alone(firing[0], elsewhere, firing[1])), None))
                moved = True
        return moved

    def cap_of(self, firing: Firing) -> str | None:
        seen = self.sees(firing)
        visits = len({x[:2] for _, x in seen if x[0] == firing[0]}) + 1
        most = self.spec.node[firing[0]].max_visits
        if 1 + max((place[0] for place, _ in seen), default=0) > self.max_steps:
            return "max_steps"
        return "max_visits" if most is not None and visits > most * self.visits_allowed else None

    def capped(self) -> set[Firing]:
        """What is held back by a cap alone."""
        return {f for f in self.free() if self.cap_of(f)}

    def fire(self, firing: Firing) -> None:
        seen = self.sees(firing)
        rank = max((place[0] for place, _ in seen), default=0) + 1
        plain = firing in self.full().values() or any(f == firing and origin is None for f, origin in self.tokens)
        sends = sorted(origin for f, origin in self.tokens if f == firing and origin is not None)
        for i, origin in enumerate([None] * plain + sends):
            self.running[(*firing, i)] = self.place(rank, firing[0], i, origin), tuple(x for _, x in seen)
        self.take(firing)

    def take(self, firing: Firing) -> None:
        """The firing's tokens, and the marks of its barriers up to then."""
        full = [k for k, f in self.full().items() if f == firing]
        self.tokens = [x for x in self.tokens if x[0] != firing]
        self.marks = [m for m in self.marks if m[0] not in full or m[2] > firing[1]]

    def proceed(self) -> bool:
        """Where nothing is live, the first starved barrier goes on with what came, if it may. Whether it did."""
        starved = sorted(self.starved())
        if self.waiting() or not starved or self.spec.barriers[starved[0]].on_missing != "proceed":
            return False
        k, target = starved[0], self.spec.barriers[starved[0]].target
        at = max(self.first_marks(k))
        self.proceeded.append(k)
        self.marks = [m for m in self.marks if m[0] != k or m[2] > at]
        if not any(x[:2] == (target, at) for x in self.done) and (target, at) not in self.redirected:
            self.tokens.append(((target, at), None))
        return True

    def place(self, rank: int, n: str, i: int, origin: Any) -> Any:
        if self.time.steps:
            return (rank, 0, n, ()) if origin is None else (rank, 1, "", origin)
        return rank, self.spec.names.index(n), i

    def starved(self) -> set[int]:
        return {k for k, _, _ in self.marks}
