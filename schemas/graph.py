"""A graph as data: what is hashed into a run's start, compared on replay, drawn and checked. No callables."""
from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import orjson

START = "__start__"
END = "__end__"
MAX_STEPS = 1_000
"""Ranks that a run may reach where neither graph nor call says otherwise."""

ClockName = Literal["logical", "superstep"]
OnMissing = Literal["error", "proceed"]
OnError = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of the state."""

    name: str
    kind: str
    """Its type, as text that is the same in every process."""
    reducer: str | None = None
    """The registered name of what folds updates into it; None: the last write, and parallel writes conflict."""
    initial: str | None = None
    """How it begins where nothing was written: `list`, `dict`, `int`, ...; None: it is absent."""


@dataclass(frozen=True, slots=True)
class RetrySpec:
    """When a failed attempt is tried again; times in seconds."""

    attempts_max: int = 3
    initial_s: float = 0.5
    factor: float = 2.0
    max_s: float = 128.0
    jitter: bool = True


@dataclass(frozen=True, slots=True)
class NodeSpec:
    name: str
    retry: RetrySpec | None = None
    timeout_s: float | None = None
    max_visits: int | None = None
    """Firings that a task may see of its own node, itself included."""
    on_cap: str | None = None
    """Where the graph goes instead of a firing over the cap; None: the run stops, resumable."""
    on_error: OnError = "stop"
    queue: str = "default"
    writes: tuple[str, ...] | None = None
    """The fields that it says it writes; None: it does not say."""


@dataclass(frozen=True, slots=True)
class RouteSpec:
    """Where a node's conditional edges and commands may go."""

    source: str
    targets: tuple[str, ...]
    """END among them where it may end there."""
    declared: bool = True
    """False: nobody said where it goes, so that it may go anywhere."""


@dataclass(frozen=True, slots=True)
class BarrierSpec:
    sources: tuple[str, ...]
    target: str
    on_missing: OnMissing = "error"


@dataclass(frozen=True)
class GraphSpec:
    name: str
    version: str
    """The one that its author gives it."""
    nodes: tuple[NodeSpec, ...]
    """In declared order, which is the order of updates of one rank."""
    edges: tuple[tuple[str, str], ...]
    """Always taken; START and END stand among them."""
    routes: tuple[RouteSpec, ...] = ()
    barriers: tuple[BarrierSpec, ...] = ()
    fields: tuple[FieldSpec, ...] = ()
    clock: ClockName = "logical"
    clock_reason: str = ""
    """Why it is not the clock that the author would get by default."""
    rounds: tuple[tuple[str, str], ...] = ()
    """Edges that the author says begin a round; empty: read by the rule."""
    max_steps: int | None = None
    """None: the default of MAX_STEPS."""
    loops: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(node, the loops around it, outermost first), as they were read when the graph was compiled."""
    back: tuple[tuple[str, str, int], ...] = ()
    """(u, v, depth of the loop whose next round this edge begins), as they were read."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What later versions add, by name: part of the fingerprint."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of everything above but `clock_reason`."""
        return hashlib.sha256(self.encoded).hexdigest()

    @cached_property
    def encoded(self) -> bytes:
        """The bytes that are stored once a graph, by their digest."""
        data = {k: v for k, v in asdict(self).items() if k != "clock_reason"}
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes)

    @cached_property
    def node(self) -> dict[str, NodeSpec]:
        return {n.name: n for n in self.nodes}

    @cached_property
    def order(self) -> dict[str, int]:
        """Each node's place in the declared order."""
        return {n: i for i, n in enumerate(self.names)}

    @cached_property
    def static(self) -> dict[str, tuple[str, ...]]:
        """Where each node's always-taken single edges go, END left out."""
        out: dict[str, list[str]] = {}
        for u, v in self.edges:
            if v != END:
                out.setdefault(u, []).append(v)
        return {u: tuple(dict.fromkeys(vs)) for u, vs in out.items()}

    @cached_property
    def route(self) -> dict[str, tuple[str, ...]]:
        """The declared route targets of each node, END among them; where a cap sends its firings is one."""
        out: dict[str, list[str]] = {}
        for r in self.routes:
            out.setdefault(r.source, []).extend(r.targets)
        for n in self.nodes:
            if n.on_cap:
                out.setdefault(n.name, []).append(n.on_cap)
        return {u: tuple(dict.fromkeys(vs)) for u, vs in out.items()}


def decode_spec(data: bytes) -> GraphSpec:
    """The spec out of its stored bytes."""
    raw = orjson.loads(data)

    def pairs(key: str) -> tuple[Any, ...]:
        rows: list[list[Any]] = raw[key]
        return tuple(tuple(map(_tupled, row)) for row in rows)
    return GraphSpec(
        name=raw["name"], version=raw["version"], edges=pairs("edges"), rounds=pairs("rounds"), loops=pairs("loops"),
        back=pairs("back"), clock=raw["clock"], max_steps=raw["max_steps"], extra=raw["extra"],
        nodes=tuple(_node(n) for n in raw["nodes"]), fields=tuple(FieldSpec(**f) for f in raw["fields"]),
        routes=tuple(RouteSpec(r["source"], tuple(r["targets"]), r["declared"]) for r in raw["routes"]),
        barriers=tuple(BarrierSpec(tuple(b["sources"]), b["target"], b["on_missing"]) for b in raw["barriers"]),
    )


def _tupled(x: Any) -> Any:
    return tuple(x) if type(x) is list else x  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _node(raw: dict[str, Any]) -> NodeSpec:
    retry, writes = raw.pop("retry"), raw.pop("writes")
    return NodeSpec(**raw, retry=RetrySpec(**retry) if retry else None, writes=None if writes is None else tuple(writes))
