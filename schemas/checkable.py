"""Types as pydantic checks them. Before Python 3.12 it refuses `typing.TypedDict`, which people's states are full of; here they
become the same TypedDict of typing_extensions, at any depth."""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import types
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import Field


def checkable(t: Any, outer: tuple[Any, ...] = ()) -> Any:
    """The type with every TypedDict in it replaced. One that holds itself is checked as a dict there."""
    if typing_extensions.is_typeddict(t):
        return dict[str, Any] if t in outer else _typed_dict(t, (*outer, t))
    if t is Decimal:
        return Annotated[Decimal, Field(allow_inf_nan=True)]  # a Decimal is any Decimal, as a float is any float
    origin, args = get_origin(t), get_args(t)
    if not args or origin is Literal:
        return t
    if origin is Annotated:
        return Annotated[(checkable(args[0], outer), *args[1:])]
    if any(isinstance(a, list) for a in args):
        return t
    inner = tuple(checkable(a, outer) for a in args)
    if all(a is b for a, b in zip(args, inner, strict=True)):
        return t
    if origin in (Union, types.UnionType):
        return Union[inner]  # noqa: UP007  # built from values
    return t.copy_with(inner) if hasattr(t, "copy_with") else origin[inner]


def _typed_dict(t: Any, outer: tuple[Any, ...]) -> Any:
    fields = {k: checkable(_bare(v), outer) for k, v in get_type_hints(t, include_extras=True).items()}
    kinds = {k: v if k in t.__required_keys__ else typing_extensions.NotRequired[v] for k, v in fields.items()}
    # Made from values, which checkers do not read.
    make: Any = typing_extensions.TypedDict
    return make(t.__name__, kinds)


def _bare(t: Any) -> Any:
    """Without Required and NotRequired."""
    return get_args(t)[0] if get_origin(t) in (typing_extensions.Required, typing_extensions.NotRequired) else t
