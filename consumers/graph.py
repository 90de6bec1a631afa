"""StateGraph: how a graph is written down. `compile` makes it an application over a log."""
from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from ledgergraph.consumers.binding import Binding, Durability, Schedule
from ledgergraph.consumers.node import Action, BoundNode, Route, bind, path_targets, wants_context
from ledgergraph.consumers.retry import RetryPolicy
from ledgergraph.eventstore.store import EventStore
from ledgergraph.schemas.errors import GraphError
from ledgergraph.schemas.graph import END, START, BarrierSpec, NodeSpec, OnError, OnMissing
from ledgergraph.schemas.state import StateSchema

if TYPE_CHECKING:
    from ledgergraph.consumers.app import App


class StateGraph:
    """Nodes over a typed state. `state_schema`: a TypedDict, dataclass or pydantic model whose fields may carry a reducer:
    `Annotated[list[str], operator.add]`. `name` and `version` are part of what every run of it records."""

    def __init__(self, state_schema: type, *, name: str = "graph", version: str = "1") -> None:
        self.schema = StateSchema.of(state_schema)
        self.name, self.version = name, version
        self.nodes: dict[str, BoundNode] = {}
        self.specs: dict[str, NodeSpec] = {}
        self.edges: list[tuple[str, str]] = []
        self.barriers: list[BarrierSpec] = []
        self.routes: list[Route] = []

    def add_node(self, node: str | Action, action: Action | None = None, *, retry_policy: RetryPolicy | None = None,
                 timeout: float | timedelta | None = None, destinations: Sequence[str] | Mapping[str, str] | None = None,
                 defer: bool = False, max_visits: int | None = None, on_cap: str | None = None, on_error: OnError = "stop",
                 queue: str = "default", writes: Sequence[str] | None = None) -> Self:
        """A node: `f(state)` or `f(state, ctx)`, sync or async, that returns an update, a Command or None.

        timeout: seconds an attempt may take. destinations: where its Commands may go. max_visits: firings after which it
        is capped; on_cap: where the graph goes instead. on_error="continue": a failure is a value that joins see past.
        defer: accepted; every join waits already."""
        name, action = (node, action) if isinstance(node, str) else (getattr(node, "__name__", type(node).__name__), node)
        if action is None:
            raise GraphError(f"node {name!r} has no function. Write add_node({name!r}, function).")
        if name in self.nodes or name in (START, END) or not name.strip():
            raise GraphError(f"node {name!r} cannot be added: that name is {'taken' if name in self.nodes else 'reserved'}. "
                             "Choose another one.")
        self.nodes[name] = bind(name, action, retry_policy, list(destinations) if destinations is not None else None)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        self.specs[name] = NodeSpec(name, retry_policy.spec() if retry_policy else None, seconds, max_visits, on_cap, on_error,
                                    queue, tuple(writes) if writes is not None else None)
        return self

    def add_edge(self, start_key: str | Sequence[str], end_key: str, *, on_missing: OnMissing = "error") -> Self:
        """From a list: a strict barrier, which waits for every source. `on_missing`: what happens when one can no longer come."""
        if isinstance(start_key, str):
            self._check_edge(start_key, end_key)
            if (start_key, end_key) not in self.edges:
                self.edges.append((start_key, end_key))
        else:
            for s in start_key:
                self._check_edge(s, end_key)
            self.barriers.append(BarrierSpec(tuple(start_key), end_key, on_missing))
        return self

    def _check_edge(self, start: str, end: str) -> None:
        if start == END or end == START:
            raise GraphError(f"edge {start!r} -> {end!r}: nothing comes after END or before START. Turn it round.")

    def add_conditional_edges(self, source: str, path: Action, path_map: Mapping[Hashable, str] | Sequence[str] | None = None) -> Self:
        """After `source`, `path(state)` names where to go: a node, END, a Send, or a list of them. `path_map` maps its answers to
        nodes, or lists the nodes; without it, its `Literal` return annotation declares them."""
        if isinstance(path_map, Mapping):
            mapping: Mapping[Any, str] | None = dict(path_map)
            targets: tuple[str, ...] | None = tuple(dict.fromkeys(path_map.values()))
        else:
            mapping, targets = None, tuple(path_map) if path_map is not None else path_targets(path)
        self.routes.append(Route(source, path, mapping, targets, wants_context(path, f"the route after {source!r}")))
        return self

    def add_sequence(self, nodes: Sequence[Action | tuple[str, Action]]) -> Self:
        """The nodes one after another, with edges between them."""
        names: list[str] = []
        for node in nodes:
            given = cast(tuple[str, Action], node) if isinstance(node, tuple) else (getattr(node, "__name__", type(node).__name__), node)
            name, action = given
            self.add_node(name, action)
            names.append(name)
        for u, v in pairwise(names):
            self.add_edge(u, v)
        return self

    def set_entry_point(self, key: str) -> Self:
        return self.add_edge(START, key)

    def set_finish_point(self, key: str) -> Self:
        return self.add_edge(key, END)

    def set_conditional_entry_point(self, path: Action, path_map: Mapping[Hashable, str] | Sequence[str] | None = None) -> Self:
        return self.add_conditional_edges(START, path, path_map)

    def compile(self, log: str | Path | EventStore | None = None, *, durability: Durability = "sync", schedule: Schedule = "auto",
                rounds: Sequence[tuple[str, str]] = (), max_steps: int | None = None, max_concurrency: int = 128,
                name: str | None = None) -> App:
        """An application. log: `sqlite:///file`, `postgresql+psycopg://…`, an open store, or None for memory. durability:
        `sync` stores an update before what follows runs; `pipelined` while it runs. schedule: the clock; `auto` is logical
        time, and supersteps where a route did not declare its targets. rounds: edges that begin a loop's next round, where
        the graph is read otherwise than meant. max_steps: the cap of a run, in ranks."""
        from ledgergraph.consumers.app import App
        binding = Binding.of(self, schedule, tuple(rounds), max_steps, name)
        return App(binding, log, durability, max_concurrency)
