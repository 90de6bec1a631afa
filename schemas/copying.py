"""Copies of values: state is never shared between nodes, or between a node and the log."""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

T = TypeVar("T")
IMMUTABLE = frozenset({str, int, float, bool, type(None), bytes, Decimal, date, datetime, time, timedelta, UUID, complex})


def fresh(value: T) -> T:
    """A copy that shares nothing that can change. What cannot change is returned as it is."""
    return _fresh(value)  # type: ignore[no-any-return]


def _fresh(v: Any) -> Any:
    t = type(v)
    if t in IMMUTABLE:
        return v
    if t is list:
        return [x if type(x) in IMMUTABLE else _fresh(x) for x in v]
    if t is dict:
        return {k: x if type(x) in IMMUTABLE else _fresh(x) for k, x in v.items()}
    if t is tuple:
        return tuple(_fresh(x) for x in v)
    if t is set:
        return set(v)
    return copy.deepcopy(v)
