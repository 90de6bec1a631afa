"""The loops of a graph: which edges begin a round, and which loops lie around a node.

A cycle (strongly connected component) is a loop with one counter. Its next round begins with what its decision sends back
inside: the node that leaves the loop, if it alone does (and the loops that remain without it can be left by a route) or if
every cycle passes through it. Where there is no such node, the edges back to the loop's heads begin the round. What remains
without these edges may hold inner loops. (Bourdoncle, Efficient chaotic iteration strategies with widenings, 1993, for the
nesting; the choice of the edges is our own, see infra/adr/0002.)
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledgergraph.schemas import digraph
from ledgergraph.schemas.digraph import Edges
from ledgergraph.schemas.errors import GraphError
from ledgergraph.schemas.graph import END, START, GraphSpec


class Loops(NamedTuple):
    nest: dict[str, tuple[str, ...]]
    """The loops around each node, outermost first."""
    back: dict[tuple[str, str], int]
    """Edge -> the depth of the loop whose next round it begins."""


def find(spec: GraphSpec) -> Loops:
    """The loops as the rule reads them, or as `spec.rounds` names their edges. Raises GraphError for a named edge that is on
    no cycle."""
    return _Reading(spec).read()


def targets(spec: GraphSpec, node: str) -> tuple[str, ...]:
    """Where a node may send tokens, END left out."""
    found = (*spec.static.get(node, ()), *(b.target for b in spec.barriers if node in b.sources), *spec.route.get(node, ()))
    return tuple(dict.fromkeys(v for v in found if v != END))


class _Reading:
    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        names = (START, *spec.names)
        known = set(names)
        self.every: Edges = {(u, v) for u in names for v in targets(spec, u) if v in known}
        self.always: Edges = {(u, v) for u, vs in spec.static.items() for v in vs}
        self.always |= {(u, b.target) for b in spec.barriers for u in b.sources}
        self.ends = {u for u, vs in spec.route.items() if END in vs}
        self.into: dict[str, set[str]] = {n: set() for n in names}
        self.onward: dict[str, set[str]] = {n: set() for n in names}
        for u, v in self.every:
            self.into[v].add(u)
            self.onward[u].add(v)
        self.nest: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
        self.back: dict[tuple[str, str], int] = {}

    def read(self) -> Loops:
        todo: list[tuple[Sequence[str], Edges]] = [(self.spec.names, self.every)]
        while todo:
            nodes, edges = todo.pop()
            after = digraph.successors(nodes, edges)
            inner = [self._loop(c, inside) for c in digraph.in_order(nodes, after) if (inside := digraph.within(c, after))]
            todo += inner[::-1]
        for e in self.spec.rounds:
            if tuple(e) not in self.back:
                raise GraphError(f"rounds names the edge {e[0]!r} -> {e[1]!r}, which begins no round: it is no edge on a cycle, or "
                                 "lies within a round that another named edge begins. `ledgergraph check` draws the loops.")
        return Loops(self.nest, self.back)

    def _loop(self, c: Sequence[str], inside: Edges) -> tuple[Sequence[str], Edges]:
        """Reads one cycle; what is left of it for inner loops."""
        first, order = self._heads(c, inside), self._first_pass(c, inside)
        again = self._again(first, order, inside)
        depth = len(self.nest[c[0]])
        self.back.update(dict.fromkeys(sorted(again), depth))
        for n in c:
            self.nest[n] = (*self.nest[n], f"{first[0]}/{depth}")
        return c, inside - again

    def _again(self, first: Sequence[str], order: Sequence[str], inside: Edges) -> Edges:
        """The edges that begin the cycle's next round."""
        named = {(u, v) for u, v in self.spec.rounds if (u, v) in inside}
        if named:
            return self._outermost(order, inside, named)
        by = self._decision(order, inside)
        if by is not None:
            return {(u, v) for u, v in inside if u == by}
        place, heads = {n: i for i, n in enumerate(order)}, set(first)
        return self._outermost(order, inside, {(u, v) for u, v in inside if v in heads and place[v] <= place[u]})

    def _heads(self, c: Sequence[str], inside: Edges) -> list[str]:
        """The nodes entered from outside that no other such node comes before by edges that are always taken."""
        members = set(c)
        entries = [n for n in c if self.into[n] - members] or [c[0]]
        after = digraph.successors(c, inside & self.always)
        leads = digraph.reached(c, after)
        comes = digraph.reached(c, digraph.reversed_(c, after))
        bit = {n: 1 << i for i, n in enumerate(c)}
        mask = sum(bit[n] for n in entries)

        def is_head(n: str) -> bool:
            earlier = comes[n] & mask & ~bit[n]
            return not earlier & ~leads[n] and not earlier & (bit[n] - 1)
        return [n for n in entries if is_head(n)]

    def _first_pass(self, c: Sequence[str], inside: Edges) -> list[str]:
        """The nodes of a cycle in the order in which work that enters it first comes to them."""
        out: list[str] = []
        todo: list[tuple[Sequence[str], Edges]] = [(c, inside)]
        while todo:
            part, edges = todo.pop()
            if len(part) == 1:
                out += part
                continue
            first = self._heads(part, edges)
            out += first
            heads = set(first)
            rest = [n for n in part if n not in heads]
            after = digraph.successors(rest, edges)
            todo += [(p, digraph.within(p, after)) for p in digraph.in_order(rest, after)][::-1]
        return out

    def _decision(self, c: Sequence[str], inside: Edges) -> str | None:
        """The node that leaves the loop: it alone (if any loops without it can be left, by a route), or a node that every
        cycle but a self-loop passes through. `c` in the order of the first pass; by choice the last."""
        members = set(c)
        leaving = [u for u in c if u in self.ends or self.onward[u] - members]
        candidates = set(leaving)
        for u in reversed(leaving):
            if u not in candidates:
                continue
            after = digraph.successors(c, {(a, b) for a, b in inside if a != u})
            cycles = [p for p in digraph.components(c, after) if len(p) > 1 or p[0] in after[p[0]]]
            longer = [p for p in cycles if len(p) > 1]
            if not longer or (len(leaving) == 1 and all(self._can_leave(p) for p in cycles)):
                return u
            # Whoever decides lies on every cycle, so on this one too.
            candidates &= set(digraph.short_cycle(longer[0], after))
        return None

    def _can_leave(self, part: Sequence[str]) -> bool:
        members = set(part)
        return any(u in self.ends or set(self.spec.route.get(u, ())) - members for u in part)

    def _outermost(self, c: Sequence[str], inside: Edges, edges: Edges) -> Edges:
        """Of several loops with one head those that lie in no other: an inner one is left from a single node of its."""
        bit = {n: 1 << i for i, n in enumerate(c)}
        onto = {n: sum(bit[v] for v in self.onward[n] if v in bit) for n in c}
        outside = {n for n in c if self.onward[n] - bit.keys()}
        while True:
            after = digraph.successors(c, inside - edges)
            leads, comes = digraph.reached(c, after), digraph.reached(c, digraph.reversed_(c, after))
            latches = sorted({u for u, _ in edges})
            aims = {u: _union(bit[v] for x, v in edges if x == u) for u in latches}
            body = {u: _union(leads[v] for x, v in edges if x == u) & comes[u] | bit[u] for u in latches}
            exits = {u: _union(bit[a] for a in c if bit[a] & body[u] and (a in outside or onto[a] & ~body[u])) for u in latches}

            inner = {(u, w) for u in latches for w in latches
                     if exits[u] & (exits[u] - 1) == 0 and not bit[w] & body[u] and not (aims[u] | exits[u]) & ~body[w]}
            outer = {u for u in latches if not any((u, w) in inner and (w, u) not in inner for w in latches)}
            if len(outer) in (0, len(latches)):
                return edges
            edges = {(u, v) for u, v in edges if u in outer}


def _union(masks: Iterable[int]) -> int:
    out = 0
    for m in masks:
        out |= m
    return out
