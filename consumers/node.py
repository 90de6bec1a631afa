"""A node as it is called: its signature, where it may go, and the fingerprint of its code."""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ledgergraph.consumers.code import fingerprint
from ledgergraph.consumers.command import Command, Send
from ledgergraph.consumers.retry import RetryPolicy
from ledgergraph.schemas.errors import GraphError

Action = Callable[..., Any]


@dataclass(frozen=True)
class Route:
    """A conditional edge: `path` looks at the state and names targets, by way of `mapping` where there is one."""

    source: str
    path: Action
    mapping: Mapping[Any, str] | None
    targets: tuple[str, ...] | None
    """None: nobody declared them."""
    wants_context: bool


@dataclass(frozen=True)
class BoundNode:
    """A node's code, beside its NodeSpec."""

    name: str
    action: Action
    wants_context: bool
    is_async: bool
    retry: RetryPolicy | None
    destinations: tuple[str, ...]
    code: str
    """Fingerprint."""


def bind(name: str, action: Action, retry: RetryPolicy | None, destinations: Sequence[str] | None) -> BoundNode:
    if not callable(action):
        raise GraphError(f"node {name!r} is a {type(action).__name__}, not a function. Give f(state) or f(state, ctx).")
    declared = tuple(destinations) if destinations is not None else command_targets(action)
    return BoundNode(name, action, wants_context(action, f"node {name!r}"), is_async(action), retry, declared, fingerprint(action))


def is_async(action: Action) -> bool:
    inner = inspect.unwrap(_unpartial(action))
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))


def _unpartial(action: Any) -> Any:
    while isinstance(action, functools.partial):
        action = action.func
    return action


def wants_context(action: Action, what: str) -> bool:
    """True for f(state, ctx), False for f(state). Raises GraphError for anything else."""
    try:
        parameters = inspect.signature(action).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(needed) > 2 or keywords:
        names = ", ".join([p.name for p in needed] + keywords)
        raise GraphError(f"{what} takes ({names}). Write f(state) or f(state, ctx); give the rest defaults.")
    return len(needed) == 2


def command_targets(action: Action) -> tuple[str, ...]:
    """The targets of a return annotation Command[Literal[...]]."""
    found = [a for t in _parts(_returned(action)) if get_origin(t) is Command for a in get_args(t)]
    return tuple(dict.fromkeys(x for t in found for x in _literals(t)))


def path_targets(path: Action) -> tuple[str, ...] | None:
    """The targets of a route's Literal annotation (also in a list, beside Send); None where there is none."""
    names = tuple(dict.fromkeys(x for t in _parts(_returned(path)) for x in _literals(t)))
    return names or None


def _returned(action: Action) -> Any:
    try:
        return get_type_hints(_unpartial(action) if inspect.isroutine(_unpartial(action)) else type(action).__call__).get("return")
    except Exception:
        # Annotations may name what only a type checker imports: then nothing is declared.
        return getattr(action, "__annotations__", {}).get("return")


def _parts(annotation: Any) -> Iterator[Any]:
    """The annotation and what unions, lists and sequences hold."""
    yield annotation
    origin = get_origin(annotation)
    if origin is types.UnionType or str(origin) == "typing.Union" or (isinstance(origin, type) and issubclass(origin, Sequence)):
        for a in get_args(annotation):
            yield from _parts(a)


def _literals(annotation: Any) -> list[str]:
    for t in _parts(annotation):
        if get_origin(t) is Literal:
            return [x for x in get_args(t) if isinstance(x, str)]
    return []


def goto_list(goto: Any) -> list[str | Send]:
    """What a route or a Command names, as a list."""
    if goto is None:
        return []
    if isinstance(goto, str | Send):
        return [goto]
    return list(goto)
