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


class Ticking:
    """How time passes along the edges of a graph, and who can still reach whom."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.steps = spec.clock == "superstep"
        self.around = {START: (), **dict.fromkeys(spec.names, ()), **dict(spec.loops)}
        self.begins = {(u, v): d for u, v, d in spec.back}
        always = [*spec.edges, *((s, b.target) for b in spec.barriers for s in b.sources)]
        routed = [(u, v) for u, vs in spec.route.items() for v in vs]
        self.onward = {n: sorted({v for u, v in always + routed if u == n and v != END}) for n in self.around}
        self._found: dict[Firing, dict[str, Time]] = {}

    def first(self, n: str) -> Time:
        return (0,) if self.steps else tuple(0 for _ in self.around[n])

    def along(self, u: str, v: str, t: Time, round_of: int | None) -> Time:
        """`round_of`: the depth of the loop whose next round the token begins."""
        if self.steps:
            return (t[0] + 1,)
        into, out_of = self.around[v], self.around[u]
        now: list[int] = []
        for depth, loop in enumerate(into):
            together = out_of[:depth + 1] == into[:depth + 1]
            if round_of is not None and depth == round_of:
                now.append(t[depth] + 1)
            elif together and (round_of is None or depth < round_of):
                now.append(t[depth])
            else:
                now.append(0)
            assert loop
        return tuple(now)

    def arrivals(self, n: str, s: Time) -> dict[str, Time]:
        """The earliest time at each node of what n sends at s, by searching on from there."""
        if (n, s) not in self._found:
            best: dict[str, Time] = {}
            todo = [(n, s)]
            while todo:
                u, t = todo.pop()
                for v in self.onward[u]:
                    at = self.along(u, v, t, self.begins.get((u, v)))
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
    """One run. `done`: task -> (place in the fold, the tasks that it saw in their order)."""

    def __init__(self, spec: GraphSpec, route: Router, limit: int) -> None:
        self.spec, self.route, self.limit = spec, route, limit
        self.time = Ticking(spec)
        self.tokens: list[tuple[Firing, Any]] = []
        """(where and when, None or the Send's (place of its sender, number))."""
        self.marks: list[tuple[int, str, Time]] = []
        self.running: dict[Task, tuple[Any, tuple[Task, ...]]] = {}
        self.done: dict[Task, tuple[Any, tuple[Task, ...]]] = {}

    def go(self, choose: Choose) -> dict[Task, tuple[Any, tuple[Task, ...]]] | None:
        """What was done; None: it went on beyond the limit."""
        self.send((START, self.time.first(START), 0), (0,), ())
        while True:
            self.start()
            if not self.running:
                assert not self.waiting(), f"nothing can fire: {self.waiting()}"
                return self.done
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
                self.marks.append((k, u, self.time.along(u, b.target, t, self.time.begins.get((u, b.target)))))

    def full(self) -> dict[int, Firing]:
        out: dict[int, Firing] = {}
        for k, b in enumerate(self.spec.barriers):
            firsts = [min((t for j, u, t in self.marks if (j, u) == (k, s)), default=None) for s in b.sources]
            known = [t for t in firsts if t is not None]
            if len(known) == len(firsts):
                out[k] = (b.target, max(known))
        return out

    def waiting(self) -> set[Firing]:
        return {f for f, _ in self.tokens} | set(self.full().values())

    def start(self) -> None:
        waiting = self.waiting()
        live = waiting | {(n, t) for n, t, _ in self.running}
        for firing in sorted(waiting):
            if any(self.time.before(other, firing) for other in live if other != firing):
                continue
            assert not any(x[:2] == firing for x in [*self.done, *self.running]), f"{firing} fires twice"
            seen = sorted((place, x) for x, (place, _) in self.done.items() if self.time.before(x[:2], firing))
            rank = max((place[0] for place, _ in seen), default=0) + 1
            full = [k for k, f in self.full().items() if f == firing]
            plain = bool(full) or any(f == firing and origin is None for f, origin in self.tokens)
            sends = sorted(origin for f, origin in self.tokens if f == firing and origin is not None)
            for i, origin in enumerate([None] * plain + sends):
                self.running[(*firing, i)] = self.place(rank, firing[0], i, origin), tuple(x for _, x in seen)
            self.tokens = [x for x in self.tokens if x[0] != firing]
            self.marks = [m for m in self.marks if m[0] not in full or m[2] > firing[1]]

    def place(self, rank: int, n: str, i: int, origin: Any) -> Any:
        if self.time.steps:
            return (rank, 0, n, ()) if origin is None else (rank, 1, "", origin)
        return rank, self.spec.names.index(n), i

    def starved(self) -> set[int]:
        return {k for k, _, _ in self.marks}
