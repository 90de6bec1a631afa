"""Which classes stored values may name. Bytes of the log never cause an import: a name that is not here is an error."""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel

from ledgergraph.schemas.errors import GraphError

T = TypeVar("T", bound=type)
_BY_NAME: dict[str, type] = {}
_NAMES: dict[type, str] = {}


def register(cls: T, name: str | None = None) -> T:
    """Lets values of the class be stored, under this name for ever (by default module:qualname). Also a decorator. Raises
    GraphError where another class has the name, or where the class is of no kind that can be stored field by field."""
    if not is_storable_class(cls):
        raise GraphError(f"{cls!r} cannot be registered: only dataclasses, pydantic models, NamedTuples and Enums are stored by their "
                         "fields. Make it one of these.")
    name = name or f"{cls.__module__}:{cls.__qualname__}"
    known = _BY_NAME.get(name)
    if known is not None and known is not cls and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise GraphError(f"the name {name!r} belongs to {known!r}; {cls!r} needs another one: register(cls, name='...').")
    _BY_NAME[name] = cls
    _NAMES[cls] = name
    return cls


def registered(name: str) -> type | None:
    """The class of a stored name; None: nobody registered it in this process."""
    return _BY_NAME.get(name)


def name_of(cls: type) -> str | None:
    """The name that its values are stored under; None: it is not registered."""
    return _NAMES.get(cls)


def is_storable_class(cls: Any) -> bool:
    if not isinstance(cls, type):
        return False
    return dataclasses.is_dataclass(cls) or issubclass(cls, BaseModel | enum.Enum) or is_named_tuple(cls)


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def register_annotations(schema: type) -> None:
    """Registers every class that can be stored and that the schema's annotations name, at any depth."""
    seen: set[Any] = set()
    todo: list[Any] = list(_hints(schema))
    while todo:
        t = todo.pop()
        if id(t) in seen:
            continue
        seen.add(id(t))
        todo += get_args(t)
        if is_storable_class(t) and t not in _NAMES:
            register(t)
        if isinstance(t, type):
            todo += _hints(t)


def _hints(cls: type) -> Iterator[Any]:
    if cls.__module__ in ("builtins", "datetime", "decimal", "uuid"):
        return
    try:
        yield from get_type_hints(cls, include_extras=True).values()
    except Exception:
        # Annotations may name what only a type checker imports: such a class registers its parts itself.
        return
