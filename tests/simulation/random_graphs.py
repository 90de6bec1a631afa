"""Random graphs, and pure routes over them: what a route answers depends on its task and on what that task saw, nothing else."""
from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ledgergraph.projections.schedule import Sent
from ledgergraph.schemas import loops
from ledgergraph.schemas.graph import END, START, BarrierSpec, GraphSpec, NodeSpec, RouteSpec

Task = tuple[str, tuple[int, ...], int]
"""Node, logical time, index."""
Router = Callable[[Task, Sequence[Task]], list[Sent]]


def read(spec: GraphSpec) -> GraphSpec:
    """The spec with its loops as they are read."""
    if spec.clock == "superstep":
        return spec
    found = loops.find(spec)
    return replace(spec, loops=tuple((n, found.nest[n]) for n in spec.names if found.nest[n]),
                   back=tuple((u, v, d) for (u, v), d in found.back.items()))


def any_graph(rng: random.Random, caps: bool = False) -> GraphSpec:
    """Cycles within cycles, choices, fan-outs and barriers, as they come; either clock. `caps`: with nodes that may fire so often
    only, and then stop the run or go elsewhere, and with barriers that may go on without a source."""
    names = [f"n{i}" for i in range(rng.randint(2, 8))]
    edges = [(START, n) for n in rng.sample(names, rng.randint(1, 2))]
    routes: list[RouteSpec] = []
    barriers: list[BarrierSpec] = []
    order = rng.sample(names, len(names))
    for i, n in enumerate(order):
        if order[i + 1:] and rng.random() < 0.7:
            edges += [(n, v) for v in rng.sample(order[i + 1:], rng.randint(1, min(3, len(order) - i - 1)))]
        if rng.random() < 0.5:
            routes.append(RouteSpec(n, (*rng.sample(names, rng.randint(1, min(3, len(names)))), END)))
        if i > 1 and rng.random() < 0.25:
            barriers.append(BarrierSpec(tuple(rng.sample(order[:i], rng.randint(2, min(3, i)))), n,
                                        "proceed" if caps and rng.random() < 0.6 else "error"))
    clock = "superstep" if rng.random() < 0.2 else "logical"
    return read(GraphSpec("random", "1", tuple(_node(rng, n, names, caps) for n in names), tuple(dict.fromkeys(edges)), tuple(routes),
                          tuple(dict.fromkeys(barriers)), clock=clock))


def _node(rng: random.Random, name: str, names: Sequence[str], caps: bool) -> NodeSpec:
    if not caps or rng.random() < 0.6:
        return NodeSpec(name)
    return NodeSpec(name, max_visits=rng.randint(1, 3), on_cap=rng.choice([None, END, *names]))


def router(spec: GraphSpec, seed: int, stay: float = 0.6) -> Router:
    """Fewer targets the more a task has seen, so that most runs end."""
    def route(task: Task, seen: Sequence[Task]) -> list[Sent]:
        h = hashlib.sha256(repr((seed, task, tuple(seen))).encode()).digest()
        out: list[Sent] = []
        for i, v in enumerate(spec.route.get(task[0], ())):
            if v != END and h[i % 30] < 255 * stay / (1 + len(seen) / 10):
                out += [Sent(v, h[i]) if h[16 + i] < 70 else Sent(v)] * (2 if h[8 + i] < 30 else 1)
        return out
    return route


def shown(spec: GraphSpec) -> str:
    """A graph in a failure's message."""
    parts: list[Any] = [spec.clock, spec.names, spec.edges, [(r.source, r.targets) for r in spec.routes],
                        [(b.sources, b.target, b.on_missing) for b in spec.barriers],
                        [(n.name, n.max_visits, n.on_cap) for n in spec.nodes if n.max_visits]]
    return repr(parts)
