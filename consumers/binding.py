"""A compiled graph: its spec as data, and the code that the spec's names are bound to."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from ledgergraph.consumers.code import fingerprint
from ledgergraph.consumers.command import Send
from ledgergraph.consumers.node import BoundNode, Route, goto_list
from ledgergraph.projections import thread_end
from ledgergraph.schemas import loops, reducers
from ledgergraph.schemas.errors import GraphError, UndeclaredTarget, UnknownNode
from ledgergraph.schemas.graph import END, START, BarrierSpec, ClockName, FieldSpec, GraphSpec, NodeSpec, RouteSpec
from ledgergraph.schemas.state import StateSchema

Durability = Literal["sync", "pipelined"]
Schedule = Literal["auto", "logical", "superstep"]


class Written(Protocol):
    """A graph as it was written down: what a StateGraph has collected."""

    name: str
    version: str
    schema: StateSchema
    nodes: dict[str, BoundNode]
    specs: dict[str, NodeSpec]
    edges: list[tuple[str, str]]
    barriers: list[BarrierSpec]
    routes: list[Route]


@dataclass(frozen=True)
class Binding:
    spec: GraphSpec
    schema: StateSchema
    nodes: Mapping[str, BoundNode]
    routes: Mapping[str, tuple[Route, ...]]

    @classmethod
    def of(cls, b: Written, schedule: Schedule, rounds: tuple[tuple[str, str], ...], max_steps: int | None,
           name: str | None) -> Binding:
        """Raises GraphError where the graph cannot run: names that are no nodes, no way in."""
        routes: dict[str, tuple[Route, ...]] = {}
        for r in b.routes:
            routes[r.source] = (*routes.get(r.source, ()), r)
        specs = route_specs(b)
        clock, reason = clock_of(schedule, specs)
        spec = GraphSpec(name or b.name, b.version, tuple(b.specs.values()), tuple(b.edges), specs, tuple(b.barriers),
                         tuple(FieldSpec(f.name, f.kind, f.reducer, f.initial) for f in b.schema.fields.values()),
                         clock, reason, rounds, max_steps)
        check_names(spec)
        if clock == "logical":
            found = loops.find(spec)
            spec = replace(spec, loops=tuple((n, found.nest[n]) for n in spec.names if found.nest[n]),
                           back=tuple((u, v, d) for (u, v), d in found.back.items()))
        return cls(spec, b.schema, dict(b.nodes), routes)

    @cached_property
    def kept_as(self) -> str:
        """Fingerprint of snapshots of its threads."""
        names = sorted(f.reducer for f in self.spec.fields if f.reducer)
        return thread_end.fingerprint(self.spec.fingerprint, [fingerprint(reducers.get(n)) for n in names])

    def decide(self, source: str, state: Any, context: Any, goto: Any = ()) -> list[Any]:
        """Where a node goes beside its static edges, as events store it: its Command's goto, then its routes' answers.
        Raises UnknownNode or UndeclaredTarget."""
        out = [self._target(source, t, self._destinations(source), f"Command(goto=...) of node {source!r}") for t in goto_list(goto)]
        for r in self.routes.get(source, ()):
            answer = r.path(state, context) if r.wants_context else r.path(state)
            for t in goto_list(answer):
                out.append(self._routed(r, t))
        return [t for t in out if t != END]

    def _destinations(self, source: str) -> tuple[str, ...] | None:
        return self.nodes[source].destinations

    def _routed(self, r: Route, t: Any) -> Any:
        if r.mapping is not None and not isinstance(t, Send):
            if t not in r.mapping:
                raise UnknownNode(str(t), f"the route after {r.source!r}", [str(k) for k in r.mapping])
            t = r.mapping[t]
        return self._target(r.source, t, r.targets, f"the route after {r.source!r}")

    def _target(self, source: str, t: Any, declared: tuple[str, ...] | None, place: str) -> Any:
        name = t.node if isinstance(t, Send) else t
        if not isinstance(name, str) or (name not in self.nodes and (name != END or isinstance(t, Send))):
            raise UnknownNode(str(name), place, list(self.nodes))
        if declared is not None and name not in declared and name != END and self.spec.clock == "logical":
            raise UndeclaredTarget(source, name, declared)
        return [t.node, t.arg] if isinstance(t, Send) else t


def route_specs(b: Written) -> tuple[RouteSpec, ...]:
    anywhere = (*b.nodes, END)
    out = [RouteSpec(r.source, r.targets if r.targets is not None else anywhere, r.targets is not None) for r in b.routes]
    return (*out, *(RouteSpec(n.name, n.destinations) for n in b.nodes.values() if n.destinations))


def clock_of(schedule: Schedule, routes: tuple[RouteSpec, ...]) -> tuple[ClockName, str]:
    """The clock, and why it is not the one by default."""
    open_ = [r.source for r in routes if not r.declared]
    if schedule == "superstep":
        return "superstep", "asked for"
    if open_ and schedule == "logical":
        raise GraphError(f"the route after {open_[0]!r} does not declare its targets, which logical time needs. Annotate it as "
                         "-> Literal['a', 'b'], or give path_map, or compile with schedule='superstep'.")
    if open_:
        return "superstep", f"the route after {open_[0]!r} could go anywhere: annotate it as -> Literal[...] or give path_map"
    return "logical", ""


def check_names(spec: GraphSpec) -> None:
    known = list(spec.names)
    places = [(u, f"edge {u!r} -> {v!r}") for u, v in spec.edges if u != START]
    places += [(v, f"edge {u!r} -> {v!r}") for u, v in spec.edges if v != END]
    places += [(r.source, f"the route after {r.source!r}") for r in spec.routes if r.source != START]
    places += [(t, f"the route after {r.source!r}") for r in spec.routes for t in r.targets if t != END]
    places += [(n, f"the barrier before {b.target!r}") for b in spec.barriers for n in (*b.sources, b.target) if n != START]
    places += [(n.on_cap, f"on_cap of {n.name!r}") for n in spec.nodes if n.on_cap and n.on_cap != END]
    for name, place in places:
        if name not in spec.node:
            raise UnknownNode(name, place, known)
    if not any(u == START for u, _ in spec.edges) and not any(r.source == START for r in spec.routes):
        raise GraphError(f"graph {spec.name!r} has no way in. Add add_edge(START, ...).")
