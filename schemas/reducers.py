"""Reducers: how an update is folded into a field. Pure functions of (current, update) that never change what they are given,
found by name: the name is what a graph's spec and every log hold."""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import builtins
import hashlib
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from ledgergraph.schemas.errors import GraphError

Reducer = Callable[[Any, Any], Any]
F = TypeVar("F", bound=Reducer)
_BY_NAME: dict[str, Reducer] = {}


@overload
def reducer(fn: F) -> F: ...


@overload
def reducer(fn: None = None, *, name: str | None = None) -> Callable[[F], F]: ...


def reducer(fn: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Registers a function of (current, update) under a name (by default module:qualname). A decorator, with or without arguments."""
    def register(f: F) -> F:
        check(f)
        _BY_NAME[name or _default_name(f)] = f
        return f
    return register if fn is None else register(fn)


def get(name: str) -> Reducer:
    """The reducer of a stored name. Raises GraphError where nobody registered it in this process."""
    found = _BY_NAME.get(name)
    if found is None and name.startswith("merge_by_key:"):
        return merge_by_key(name.partition(":")[2])
    if found is None:
        raise GraphError(f"the reducer {name!r} is not known here. Import the module of the graph that declares it, or register the "
                         "function that took its place: reducer(name=...).")
    return found


def name_of(fn: Reducer) -> str:
    """The name that a spec stores for it; from then on `get` finds it. Raises GraphError for what takes other than two arguments."""
    if fn in _NAMES:
        return _NAMES[fn]
    name = next((n for n, f in _BY_NAME.items() if f is fn), None)
    if name is None:
        check(fn)
        name = _default_name(fn)
        _BY_NAME[name] = fn
    return name


def check(fn: Any) -> None:
    """Raises GraphError where the function cannot be called as fn(current, update)."""
    if not callable(fn):
        raise GraphError(f"{fn!r} is no reducer: give a function of (current, update).")
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) > 2 or any(p.kind is p.KEYWORD_ONLY for p in needed) or (len(positional) < 2 and not takes_any):
        raise GraphError(f"the reducer {getattr(fn, '__qualname__', fn)!r} takes ({', '.join(p.name for p in parameters)}). "
                         "A reducer takes (current, update).")


def _default_name(fn: Any) -> str:
    """module:qualname; for what has no name of its own (a lambda, a function inside another), also a digest of its code."""
    qualname = getattr(fn, "__qualname__", type(fn).__qualname__)
    module = getattr(fn, "__module__", None) or "builtins"
    code = getattr(fn, "__code__", None)
    if code is None or ("<" not in qualname):
        return f"{module}:{qualname}"
    cells = [repr(c.cell_contents) for c in fn.__closure__ or ()]
    said = repr((code.co_code, code.co_consts, code.co_names, cells, fn.__defaults__))
    return f"{module}:{qualname}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"


# The ones that everybody needs


@reducer(name="append")
def append(current: list[Any], update: Any) -> list[Any]:
    """The list with one more item."""
    return [*current, update]


@reducer(name="union")
def union(current: Any, update: Iterable[Any]) -> Any:
    """The set with more members; of lists, those that are not there yet, in order."""
    if isinstance(current, list):
        return [*current, *(x for x in dict.fromkeys(update) if x not in current)]
    return current | frozenset(update)


@reducer(name="merge")
def merge(current: Mapping[Any, Any], update: Mapping[Any, Any]) -> dict[Any, Any]:
    """The mapping with the update's entries over its own."""
    return {**current, **update}


@reducer(name="max")
def max(current: Any, update: Any) -> Any:
    return builtins.max(current, update)


@reducer(name="min")
def min(current: Any, update: Any) -> Any:
    return builtins.min(current, update)


@reducer(name="keep_latest")
def keep_latest(current: Any, update: Any) -> Any:
    """The update that stands last in the fold: parallel writes are no conflict."""
    return update


def merge_by_key(key: str) -> Reducer:
    """For lists of mappings: an item takes the place of the one with the same value under `key`, else it comes last."""
    name = f"merge_by_key:{key}"

    def merge_items(current: list[Any], update: list[Any]) -> list[Any]:
        items = {item[key]: item for item in current}
        return list({**items, **{item[key]: item for item in update}}.values())
    return _BY_NAME.setdefault(name, merge_items)


_BY_NAME["add"] = operator.add
_BY_NAME["or"] = operator.or_
_NAMES: dict[Reducer, str] = {operator.add: "add", operator.iadd: "add", operator.or_: "or", builtins.max: "max", builtins.min: "min"}
