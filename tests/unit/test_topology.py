"""Each finding has a graph that shows it, and a twin that does not."""
from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from ledgergraph.consumers.rehearsal import rehearse_spec
from ledgergraph.producers.drawing import NodeMark, mermaid, svg, terminal
from ledgergraph.schemas import loops
from ledgergraph.schemas.graph import END, START, BarrierSpec, FieldSpec, GraphSpec, NodeSpec, RouteSpec
from ledgergraph.schemas.topology import check


def graph(nodes: str, edges: str, routes: dict[str, str] | None = None, **more: Any) -> GraphSpec:
    """nodes "a b", edges "^a ab b$" (^ START, $ END), routes {"b": "a$"}."""
    names = {"^": START, "$": END}
    specs = more.pop("specs", {})
    spec = GraphSpec("g", "1", tuple(specs.get(n, NodeSpec(n)) for n in nodes.split()),
                     tuple((names.get(e[0], e[0]), names.get(e[1], e[1])) for e in edges.split()),
                     tuple(RouteSpec(u, tuple(names.get(v, v) for v in vs)) for u, vs in (routes or {}).items()), **more)
    found = loops.find(spec)
    return replace(spec, loops=tuple(found.nest.items()), back=tuple((u, v, d) for (u, v), d in found.back.items()))


def codes(spec: GraphSpec) -> set[str]:
    return {f.code for f in check(spec)}


WRITES = {n: NodeSpec(n, writes=("x",)) for n in "ab"}
FIELDS = (FieldSpec("x", "int"),)


@pytest.mark.parametrize(("code", "bad", "good"), [
    ("unreachable", graph("a b", "^a a$ b$"), graph("a b", "^a ab b$")),
    ("route-to-nowhere", graph("a", "^a", {"a": "z"}), graph("a b", "^a", {"a": "b$"})),
    ("default-cap", graph("a", "^a", {"a": "a$"}), graph("a", "^a", {"a": "a$"}, max_steps=9)),
    ("default-cap", graph("a", "^a", {"a": "a$"}), graph("a", "^a", {"a": "a$"}, specs={"a": NodeSpec("a", max_visits=3)})),
    ("loop", graph("a b", "^a ab", {"b": "a$"}), graph("a b", "^a ab b$")),
    ("two-loops-at-once", graph("p d r", "^p pd dr", {"r": "pd$"}, rounds=(("r", "p"),)), graph("p d r", "^p pd dr", {"r": "p$"})),
    ("starving-barrier", graph("r a b c", "^r", {"r": "ab"}, barriers=(BarrierSpec(("a", "b"), "c"),)),
     graph("r a b c", "^r ra rb", barriers=(BarrierSpec(("a", "b"), "c"),))),
    ("parallel-writes", graph("a b", "^a ^b", specs=WRITES, fields=FIELDS), graph("a b", "^a ab", specs=WRITES, fields=FIELDS)),
    ("parallel-writes", graph("a b", "^a ^b", specs=WRITES, fields=FIELDS),
     graph("a b", "^a ^b", specs=WRITES, fields=(FieldSpec("x", "int", "add"),))),
    ("no-branch-no-cycle", graph("a b", "^a ab b$"), graph("a b", "^a ^b")),
])
def test_it_is_found_and_its_twin_is_not(code: str, bad: GraphSpec, good: GraphSpec) -> None:
    found = [f for f in check(bad) if f.code == code]
    assert found
    assert all(f.place and f.text and f.remedy for f in found)
    assert code not in codes(good)


def test_an_undeclared_route_says_which_clock_follows() -> None:
    spec = GraphSpec("g", "1", (NodeSpec("a"),), ((START, "a"),), (RouteSpec("a", ("a", END), False),), clock="superstep", max_steps=5)
    (finding,) = [f for f in check(spec) if f.code == "undeclared-route"]
    assert "supersteps" in finding.text
    assert "Literal" in finding.remedy


def test_a_thousand_nodes_are_checked_quickly() -> None:
    spec = GraphSpec("g", "1", tuple(NodeSpec(f"n{i}") for i in range(1000)),
                     ((START, "n0"), *((f"n{i}", f"n{i + 1}") for i in range(999))), (RouteSpec("n999", ("n0", END)),))
    began = time.perf_counter()
    assert codes(spec) == {"default-cap", "loop"}
    assert time.perf_counter() - began < 3


def test_the_rehearsal_takes_every_target_and_sees_what_starves() -> None:
    seen = rehearse_spec(graph("p a b j", "^p pa pb aj bj", {"j": "p$"}))
    assert seen.never == []
    assert seen.untaken == []
    assert "every node fired" in seen.text
    starving = rehearse_spec(graph("r a b c", "^r", {"r": "ab"}, barriers=(BarrierSpec(("a", "b"), "c"),)))
    assert starving.starved
    assert starving.never == ["c"]
    endless = rehearse_spec(graph("a b", "^a", {"a": "b", "b": "a"}))
    assert endless.endless


NASTY = 'a"]; <b>&\n%%{x}|'


def test_drawings_hold_every_node_and_escape_names() -> None:
    spec = GraphSpec("g <x>", "1", (NodeSpec(NASTY), NodeSpec("done")), ((START, NASTY), ("done", END)), (RouteSpec(NASTY, (NASTY, "done")),))
    marks = {NASTY: NodeMark("failed", 2), "done": NodeMark("waiting", 0)}
    picture = ElementTree.fromstring(svg(spec, marks))
    texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"START", "END", "done", "✗ failed 2x"} <= set(texts)
    assert "http" not in svg(spec, marks).replace("http://www.w3.org/2000/svg", "")
    text = mermaid(spec, marks)
    assert '"]; <b>' not in text
    assert "next round" in text
    shown = terminal(spec, marks).plain
    assert "↺" in shown
    assert "✗ failed 2x" in shown


def test_a_graph_of_one_node_and_one_of_two_hundred() -> None:
    assert terminal(graph("a", "^a a$")).plain.count("\n") >= 4
    many = GraphSpec("g", "1", tuple(NodeSpec(f"n{i}") for i in range(200)), tuple((START, f"n{i}") for i in range(200)))
    assert terminal(many).plain.count("\n") > 200
    ElementTree.fromstring(svg(many))
