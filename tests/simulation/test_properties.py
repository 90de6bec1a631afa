"""What must hold of logical time, and what a step may cost."""
from __future__ import annotations

import random
import time
from itertools import product

from ledgergraph.projections.schedule import Schedule, Sent
from ledgergraph.schemas.clock import LogicalClock
from ledgergraph.schemas.graph import END, START, GraphSpec, NodeSpec, RouteSpec
from tests.simulation.random_graphs import any_graph, read, shown


def test_before_is_antisymmetric_and_transitive() -> None:
    for i in range(250):
        rng = random.Random(f"before/{i}")
        spec = any_graph(rng)
        if spec.clock == "superstep":
            continue
        clock = LogicalClock(spec)
        moments = [(n, t) for n in spec.names for t in product(range(2), repeat=len(clock.nest[n]))]
        rng.shuffle(moments)
        moments = moments[:14]
        before = {(a, b) for a in moments for b in moments if a != b and clock.before(*a, *b)}
        assert not any((b, a) in before for a, b in before), shown(spec)
        assert all((a, d) in before or a == d for a, b in before for c, d in before if b == c), shown(spec)


class Counting(LogicalClock):
    """Counts what is asked of it."""

    asked = 0

    def before(self, n: str, s: tuple[int, ...], m: str, t: tuple[int, ...]) -> bool:
        self.asked += 1
        return super().before(n, s, m, t)

    def bound(self, u: str, v: str, t: tuple[int, ...]) -> tuple[int, ...] | None:
        self.asked += 1
        return super().bound(u, v, t)


def test_a_step_costs_the_same_however_long_the_run() -> None:
    names = [f"w{i}" for i in range(5)]
    spec = read(GraphSpec("team", "1", tuple(map(NodeSpec, ["boss", *names])), ((START, "boss"), *((n, "boss") for n in names)),
                          (RouteSpec("boss", (*names, END)),)))
    clock = Counting(spec)
    schedule = Schedule(spec, clock)
    schedule.begin([])
    asked: dict[int, int] = {}
    for step in range(10_001):
        before = clock.asked
        (due,) = schedule.due()
        schedule.fire(due.key, due.rank, due.indexes)
        schedule.complete(due.key, 0, [Sent(names[step % 5])] if due.key.node == "boss" else [])
        asked[step] = clock.asked - before
    assert max(asked[s] for s in range(9_900, 10_001)) <= 1.2 * max(asked[s] for s in range(100, 201))


def test_a_graph_of_a_thousand_nodes_is_read_quickly() -> None:
    names = [f"n{i}" for i in range(1_000)]
    chain = [(START, "n0"), *((f"n{i}", f"n{i + 1}") for i in range(999))]
    shapes = {
        "chain": GraphSpec("g", "1", tuple(map(NodeSpec, names)), tuple(chain)),
        "cycle": GraphSpec("g", "1", tuple(map(NodeSpec, names)), tuple(chain), (RouteSpec("n999", ("n0", END)),)),
        "team": GraphSpec("g", "1", tuple(map(NodeSpec, names)), ((START, "n0"), *((n, "n0") for n in names[1:])),
                          (RouteSpec("n0", (*names[1:], END)),)),
    }
    for spec in shapes.values():
        began = time.perf_counter()
        clock = LogicalClock(read(spec))
        assert clock.leads
        assert clock.comes
        assert time.perf_counter() - began < 2
