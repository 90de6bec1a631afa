"""Where nodes and edges stand: layers from START downwards, each node after all that leads to it but by edges that begin a round."""
from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

from ledgergraph.schemas import digraph, loops
from ledgergraph.schemas.graph import END, START, GraphSpec

Kind = Literal["edge", "route", "barrier"]
SWEEPS = 4
"""Passes that order each layer by where its neighbours stand."""


class Edge(NamedTuple):
    source: str
    target: str
    kind: Kind
    begins_round: bool


class Layout(NamedTuple):
    layers: list[list[str]]
    """START first, END last; with the bends of edges that pass layers, where these were asked for."""
    edges: list[Edge]
    bends: dict[Edge, list[str]]
    """What each long edge passes, a name of its own in each layer between its ends."""


def edges_of(spec: GraphSpec) -> list[Edge]:
    """Every edge once, routes to END among them."""
    back = loops.find(spec).back
    found: dict[tuple[str, str], Kind] = dict.fromkeys(spec.edges, "edge")
    for b in spec.barriers:
        found.update({(s, b.target): "barrier" for s in b.sources})
    for u, vs in spec.route.items():
        for v in vs:
            found.setdefault((u, v), "route")
    return [Edge(u, v, kind, (u, v) in back) for (u, v), kind in found.items()]


def lay_out(spec: GraphSpec, *, bending: bool = False) -> Layout:
    """`bending`: long edges get places in the layers that they pass, so that no node stands in their way."""
    edges = edges_of(spec)
    names = [START, *spec.names, END]
    forward = digraph.successors(names, {(e.source, e.target) for e in edges if not e.begins_round})
    depth = dict.fromkeys(names, 0)
    for part in digraph.in_order(names, forward):
        for u in part:
            for v in forward[u]:
                if v not in part:
                    depth[v] = max(depth[v], depth[u] + 1)
    _pull_down(depth, edges)
    last = max(depth.values()) if any(e.target == END for e in edges) else max(depth.values()) + 1
    depth[END] = max(last, max(d for n, d in depth.items() if n != END) + 1)
    layers: list[list[str]] = [[] for _ in range(depth[END] + 1)]
    for n in names:
        layers[depth[n]].append(n)
    bends = {e: [f"\0{e.source}>{e.target}@{d}" for d in range(depth[e.source] + 1, depth[e.target])]
             for e in edges if bending and not e.begins_round and depth[e.target] - depth[e.source] > 1}
    for e, passed in bends.items():
        for d, name in enumerate(passed, depth[e.source] + 1):
            layers[d].append(name)
    steps = [pair for e in edges if not e.begins_round for pair in pairwise([e.source, *bends.get(e, ()), e.target])]
    return Layout(_untangled([layer for layer in layers if layer], steps), edges, bends)


def _pull_down(depth: dict[str, int], edges: list[Edge]) -> None:
    """A node that only a new round leads to stands right above what it leads to, not beside START."""
    entered = {e.target for e in edges if not e.begins_round}
    for n in [n for n in depth if n not in entered and n != START]:
        below = [depth[e.target] for e in edges if e.source == n and not e.begins_round]
        depth[n] = max(1, min(below, default=1) - 1)


def _untangled(layers: list[list[str]], steps: list[tuple[str, str]]) -> list[list[str]]:
    """Each layer in the order of the means of its neighbours' places: fewer crossings (Sugiyama et al. 1981)."""
    near: dict[str, list[str]] = {}
    for u, v in steps:
        near.setdefault(u, []).append(v)
        near.setdefault(v, []).append(u)
    for sweep in range(SWEEPS):
        place = {n: (i + 0.5) / len(layer) for layer in layers for i, n in enumerate(layer)}
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            means = {n: sum(place[m] for m in near[n]) / len(near[n]) if near.get(n) else place[n] for n in layer}
            layer.sort(key=means.__getitem__)
            place.update({n: (i + 0.5) / len(layer) for i, n in enumerate(layer)})
    return layers


def shown(name: str) -> str:
    return {START: "START", END: "END"}.get(name, name)
