"""The product's schedule against the naive one, and against the design's own model where that is beside this checkout.

LEDGERGRAPH_SEED and LEDGERGRAPH_GRAPHS choose the seed and how many graphs; failures print both.
"""
from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ledgergraph.projections.schedule import Sent
from ledgergraph.schemas import loops
from ledgergraph.schemas.clock import LogicalClock
from ledgergraph.schemas.graph import BarrierSpec, GraphSpec, NodeSpec, RouteSpec
from tests.simulation.driven import Driven, key
from tests.simulation.naive import NaiveRun
from tests.simulation.random_graphs import any_graph, read, router, shown

SEED = int(os.environ.get("LEDGERGRAPH_SEED", "1"))
GRAPHS = int(os.environ.get("LEDGERGRAPH_GRAPHS", "24000"))
CHUNKS = 12
LIMIT = 150
SHARED = Path(__file__).parents[3] / "shared"


def shared(name: str) -> ModuleType:
    """A program beside the project, not imported where it is not there."""
    path = SHARED / f"{name}.py"
    if not path.exists():
        pytest.skip(f"../shared/{name}.py is not beside this checkout: the comparison with it did not run")
    if name not in sys.modules:
        if name != "schedule_model":
            shared("schedule_model")  # the others import it
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec
        assert spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_interleaving_is_the_naive_run(chunk: int) -> None:
    compared = again = 0
    for i in range(chunk, GRAPHS // 3, CHUNKS):
        rng = random.Random(f"{SEED}/{i}")
        spec = any_graph(rng)
        route = router(spec, i)
        wanted = NaiveRun(spec, route, LIMIT)
        expected = wanted.go(rng.choice)
        driven = Driven(spec, route, rng, LIMIT)
        found = driven.go()
        if expected is None:
            continue
        assert found == expected, f"seed {SEED}, graph {i}: {shown(spec)}"
        starved = {spec.barriers.index(b) for b, _ in driven.schedule.starved()}
        assert starved == wanted.starved(), f"seed {SEED}, graph {i}: {shown(spec)}"
        keys = {key(x) for x in expected}
        ends = {k for k in keys if not any(driven.schedule.before(k, j) for j in keys if j != k)}
        assert set(driven.schedule.ends()) == ends, f"seed {SEED}, graph {i}: {shown(spec)}"
        compared += 1
        again += any(any(t) for _, t, _ in expected)
    print(f"seed {SEED}, chunk {chunk}: {compared} graphs alike, {again} went round a loop")
    assert compared > GRAPHS // 3 / CHUNKS / 2


def spec_of(g: Any, clock: str) -> GraphSpec:
    """A graph of the model as ours."""
    return read(GraphSpec("model", "1", tuple(map(NodeSpec, g.nodes)), tuple((u, v) for u, vs in g.static.items() for v in vs),
                          tuple(RouteSpec(u, tuple(vs)) for u, vs in g.routes.items()),
                          tuple(BarrierSpec(tuple(s), c) for s, c in g.barriers), clock=clock))  # type: ignore[arg-type]


def ours(route: Any) -> Any:
    """A route of the model as ours."""
    return lambda task, seen: [Sent(t[1], 1) if isinstance(t, tuple) else Sent(t) for t in route(task, tuple(seen))]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_graph_of_the_model(chunk: int) -> None:
    model = shared("schedule_model")
    for i in range(chunk, GRAPHS // 3, CHUNKS):
        rng = random.Random(f"{SEED}/model/{i}")
        g = model.any_graph(rng)
        clock = "superstep" if i % 5 == 0 else "logical"
        route = model.router(g, i, 0.6)
        found = Driven(spec_of(g, clock), ours(route), rng, 200).go()
        expected = model.Run(g, model.StepClock(g) if clock == "superstep" else model.Clock(g), route).go(rng.choice)
        if "capped" not in expected:
            assert found == expected["done"], f"seed {SEED}, graph {i}: {g}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_graphs_of_known_rounds_of_the_model(chunk: int) -> None:
    model = shared("schedule_model")
    for i in range(chunk, GRAPHS // 3, CHUNKS):
        rng = random.Random(f"{SEED}/rounds/{i}")
        g, route, wanted = model.retried(rng) if i % 3 == 0 else model.Program(rng).case()
        if wanted.total() > 150:
            continue
        found = Driven(spec_of(g, "logical"), ours(route), rng, 10_000, crashes=0.01).go()
        assert found is not None
        counted: dict[str, int] = {}
        for n, _, _ in found:
            counted[n] = counted.get(n, 0) + 1
        assert counted == dict(wanted), f"seed {SEED}, graph {i}: {g}"


def test_loops_and_times_are_read_as_the_model_reads_them() -> None:
    model = shared("schedule_model")
    for i in range(600):
        rng = random.Random(f"{SEED}/loops/{i}")
        g = model.any_graph(rng) if i % 3 else model.Program(rng).case()[0]
        spec, theirs = spec_of(g, "logical"), model.Clock(g)
        assert loops.find(spec) == (theirs.nest, theirs.back), f"seed {SEED}, graph {i}: {g}"
        clock = LogicalClock(spec)
        for u in clock.names:
            for v in spec.names:
                s, t = (tuple(rng.randint(0, 3) for _ in clock.nest[x]) for x in (u, v))
                assert clock.before(u, s, v, t) == theirs.before(u, s, v, t), f"seed {SEED}, graph {i}: {g}"
