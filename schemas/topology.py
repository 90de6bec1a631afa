"""What is wrong with a graph's shape, found without running a node."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Literal, NamedTuple

from ledgergraph.schemas import digraph, loops
from ledgergraph.schemas.graph import END, MAX_STEPS, START, GraphSpec
from ledgergraph.schemas.loops import Loops, targets

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """Something about a graph that its author should know."""

    code: str
    severity: Severity
    place: str
    text: str
    remedy: str


class _Shape:
    """A spec with what the checks look up."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.names = (START, *spec.names)
        known = set(spec.names)
        self.onward = {n: tuple(v for v in targets(spec, n) if v in known) for n in self.names}
        self.loops: Loops = loops.find(spec)
        self.bit = {n: 1 << i for i, n in enumerate(self.names)}
        self.reach = digraph.reached(self.names, self.onward)
        forward = {u: [v for v in vs if (u, v) not in self.loops.back] for u, vs in self.onward.items()}
        self.within_round = digraph.reached(self.names, forward)

    def leads(self, u: str, v: str) -> bool:
        return bool(self.reach[u] & self.bit[v])

    def members(self) -> dict[str, list[str]]:
        """The nodes of each loop, outer loops first."""
        out: dict[str, list[str]] = {}
        for depth in range(max((len(x) for x in self.loops.nest.values()), default=0)):
            for n in self.spec.names:
                if len(self.loops.nest[n]) > depth:
                    out.setdefault(self.loops.nest[n][depth], []).append(n)
        return out


def check(spec: GraphSpec) -> list[Finding]:
    """Errors first, then warnings, then notes."""
    shape = _Shape(spec)
    found = [f for rule in (_unreachable, _nowhere, _undeclared, _capped_by_default, _loops, _two_loops_at_once, _starving, _parallel_writes,
                            _plain) for f in rule(shape)]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda f: order[f.severity])


def _unreachable(s: _Shape) -> Iterator[Finding]:
    for n in s.spec.names:
        if not s.leads(START, n):
            yield Finding("unreachable", "error", n, "nothing leads to it: it never runs",
                          f"Add an edge or a declared route target to {n!r}, or remove it.")


def _nowhere(s: _Shape) -> Iterator[Finding]:
    for r in s.spec.routes:
        unknown = [t for t in r.targets if t not in s.bit and t != END]
        if unknown:
            yield Finding("route-to-nowhere", "error", r.source, f"its route may go to {', '.join(unknown)}, which is no node",
                          "Add the node, or correct the target.")
        if not r.targets:
            yield Finding("route-to-nowhere", "error", r.source, "its route declares no target, so that it can go nowhere",
                          "Name its targets in path_map or in a Literal annotation.")


def _undeclared(s: _Shape) -> Iterator[Finding]:
    for r in s.spec.routes:
        if not r.declared:
            clock = "so that the graph runs in supersteps" if s.spec.clock == "superstep" else "which logical time does not allow"
            yield Finding("undeclared-route", "warning", r.source, f"its route could go anywhere, {clock}",
                          "Annotate it as -> Literal['a', 'b'], or give path_map: then branches wait only for what they depend on.")


def _capped_by_default(s: _Shape) -> Iterator[Finding]:
    if s.spec.max_steps is not None:
        return
    for name, nodes in s.members().items():
        if not any(s.spec.node[n].max_visits for n in nodes):
            yield Finding("default-cap", "warning", ", ".join(nodes), f"only the default of {MAX_STEPS:,} steps caps this cycle ({name})",
                          "Give a node of it max_visits=, or compile with max_steps=.")


def _loops(s: _Shape) -> Iterator[Finding]:
    for name, nodes in s.members().items():
        depth = int(name.rpartition("/")[2])
        begins = [f"{u} -> {v}" for (u, v), d in s.loops.back.items() if d == depth and u in nodes and v in nodes]
        yield Finding("loop", "note", ", ".join(nodes), f"a loop{' inside another' if depth else ''}; a round begins with {', '.join(begins)}",
                      "If that is not what you mean, name the edges: compile(rounds=[(u, v), ...]).")


def _two_loops_at_once(s: _Shape) -> Iterator[Finding]:
    for u in s.spec.names:
        depths = {s.loops.back[u, v] for v in s.onward[u] if (u, v) in s.loops.back}
        if len(depths) > 1:
            yield Finding("two-loops-at-once", "warning", u, "one decision of it may go back in two loops at once",
                          "What it goes back to then is one round of the outer loop. Let it choose one, or split the decision.")


def _starving(s: _Shape) -> Iterator[Finding]:
    for b in s.spec.barriers:
        for a, c in combinations(b.sources, 2):
            router = next((r for r in s.spec.route if _are_alternatives(s, r, a, c)), None)
            if router is not None:
                yield Finding("starving-barrier", "warning", b.target, f"the barrier waits for {a} and {c}, which are alternatives of the route "
                              f"after {router}", "Use single edges (a join waits for every live branch), or on_missing='proceed'.")


def _are_alternatives(s: _Shape, router: str, a: str, c: str) -> bool:
    """Whether a and c are each reached only through the route, by different targets of it."""
    ways = [{t for t in s.spec.route[router] if t in s.bit and s.within_round[t] & s.bit[n]} for n in (a, c)]
    if not all(ways) or ways[0] & ways[1] or router in (a, c):
        return False
    routed = set(s.spec.route[router]) - set(s.spec.static.get(router, ()))
    without = {u: tuple(v for v in vs if u != router or v not in routed) for u, vs in s.onward.items()}
    left = digraph.reached(s.names, without)[START]
    return not left & s.bit[a] and not left & s.bit[c]


def _parallel_writes(s: _Shape) -> Iterator[Finding]:
    unreduced = {f.name for f in s.spec.fields if f.reducer is None}
    writers = [(n.name, set(n.writes) & unreduced) for n in s.spec.nodes if n.writes]
    for (u, ours), (v, theirs) in combinations(writers, 2):
        for field in sorted(ours & theirs):
            if not s.within_round[u] & s.bit[v] and not s.within_round[v] & s.bit[u]:
                yield Finding("parallel-writes", "warning", f"{u}, {v}", f"both write {field!r}, which has no reducer, and neither sees the other",
                              f"Give {field!r} a reducer (Annotated[..., reducer]), or put one node after the other.")


def _plain(s: _Shape) -> Iterator[Finding]:
    branches = any(len(vs) > 1 for vs in s.onward.values()) or s.spec.barriers or s.spec.routes
    if not branches and not s.loops.back and s.spec.names:
        yield Finding("no-branch-no-cycle", "note", s.spec.name, "it has no branch and no cycle",
                      "A plain function that calls the steps one after another may do; a graph adds a record of each step.")
