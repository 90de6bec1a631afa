"""Values to bytes and back, exactly. What cannot come back as it went is refused.

Bytes are JSON. What JSON has stays as it is (null, booleans, integers up to 63 bits, finite numbers, text, lists, objects with
text keys); everything else is {"$": tag, ...}. Classes are stored by the name that they are registered under
(schemas/registry.py) and restored field by field: no constructor runs, and nothing is imported because bytes say so.
"""
# Values of any type pass here: what is not known of them is the point.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
from __future__ import annotations

import base64
import dataclasses
import enum
import hashlib
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
from pydantic import BaseModel

from ledgergraph.schemas import registry
from ledgergraph.schemas.errors import DecodeError, UnstorableValue

INT_MAX = (1 << 63) - 1
DEPTH_MAX = 100
"""Levels of nesting: what orjson writes, with two levels for a tagged value."""
Tree = Any
"""What orjson writes and reads."""
PLAIN = frozenset({str, int, float, bool, type(None)})


class _Refused(Exception):
    def __init__(self, kind: str, remedy: str) -> None:
        self.kind, self.remedy = kind, remedy
        self.path: list[str] = []


def encode(value: Any, *, place: str = "value", path: str = "") -> bytes:
    """The value's bytes. Raises UnstorableValue, which names the place, and the path to the part that cannot be stored."""
    try:
        return orjson.dumps(_tree(value, 0))
    except _Refused as e:
        raise UnstorableValue(place, (path or "the value") + "".join(e.path), e.kind, e.remedy) from None


def decode(data: bytes) -> Any:
    """The value of its bytes. Raises DecodeError for a tag or class that is not known here."""
    tree = orjson.loads(data)
    return from_plain(tree) if b'"$"' in data else tree


def plain(value: Any) -> Tree:
    """The value as JSON has it. Raises UnstorableValue."""
    return orjson.loads(encode(value))


def from_plain(tree: Tree) -> Any:
    """The value of what orjson read, which is taken over: it may be changed in place."""
    t = type(tree)
    if t is dict:
        if "$" in tree:
            return _restored(tree)
        for k, v in tree.items():
            if type(v) is dict or type(v) is list:
                tree[k] = from_plain(v)
    elif t is list:
        for i, v in enumerate(tree):
            if type(v) is dict or type(v) is list:
                tree[i] = from_plain(v)
    return tree


def digest_of(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


# To a tree


def _tree(v: Any, depth: int) -> Tree:
    t = type(v)
    if t is str:
        return v if v.isascii() or _is_text(v) else {"$": "str", "v": _b64(v.encode("utf-8", "surrogatepass"))}
    if v is None or t is bool:
        return v
    if t is int:
        return v if -INT_MAX <= v <= INT_MAX else {"$": "int", "v": hex(v)}
    if t is float:
        return v if math.isfinite(v) else {"$": "float", "v": str(v)}
    if depth > DEPTH_MAX:
        raise _Refused("value that holds itself or is nested too deep", f"Keep it within {DEPTH_MAX} levels.")
    if t is dict:
        return _dict(v, depth)
    if t is list:
        return _list(v, depth)
    exact = _TO.get(t)
    return exact(v, depth + 1) if exact else _object(v, t, depth + 1)


def _is_text(v: str) -> bool:
    try:
        v.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list(v: Any, depth: int) -> list[Tree]:
    out: list[Tree] = []
    for i, x in enumerate(v):
        try:
            out.append(_tree(x, depth + 1))
        except _Refused as e:
            e.path.insert(0, f"[{i}]")
            raise
    return out


def _dict(v: dict[Any, Any], depth: int) -> Tree:
    if "$" in v or not all(type(k) is str and (k.isascii() or _is_text(k)) for k in v):
        return {"$": "dict", "v": [[_part(k, depth, f" key {k!r}"), _part(x, depth, f"[{k!r}]")] for k, x in v.items()]}
    return {k: x if type(x) is str and x.isascii() else _part(x, depth, f"[{k!r}]") for k, x in v.items()}


def _part(v: Any, depth: int, step: str) -> Tree:
    try:
        return _tree(v, depth + 1)
    except _Refused as e:
        e.path.insert(0, step)
        raise


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unordered(tag: str) -> Callable[[Any, int], Tree]:
    def to_tree(v: Any, depth: int) -> Tree:
        return {"$": tag, "v": sorted((_part(x, depth, f"{{{x!r}}}") for x in v), key=orjson.dumps)}
    return to_tree


def _zone(tz: tzinfo | None) -> Tree:
    if tz is None:
        return None
    if type(tz) is ZoneInfo and tz.key:
        return tz.key
    if type(tz) is timezone:
        offset = tz.utcoffset(None)
        name = tz.tzname(None)
        return [offset // timedelta(microseconds=1), None if name == timezone(offset).tzname(None) else name]
    raise _Refused(f"time with the zone {tz!r}", "Use zoneinfo.ZoneInfo(name) or datetime.timezone.")


def _moment(v: datetime | time) -> list[Tree]:
    return [v.replace(tzinfo=None).isoformat(), v.fold, _zone(v.tzinfo)]


_TO: dict[type, Callable[[Any, int], Tree]] = {
    tuple: lambda v, d: {"$": "tuple", "v": _list(v, d)},
    set: _unordered("set"),
    frozenset: _unordered("frozenset"),
    Decimal: lambda v, d: {"$": "decimal", "v": str(v)},
    datetime: lambda v, d: {"$": "datetime", "v": _moment(v)},
    date: lambda v, d: {"$": "date", "v": v.isoformat()},
    time: lambda v, d: {"$": "time", "v": _moment(v)},
    timedelta: lambda v, d: {"$": "timedelta", "v": [v.days, v.seconds, v.microseconds]},
    UUID: lambda v, d: {"$": "uuid", "v": v.hex},
    bytes: lambda v, d: {"$": "bytes", "v": _b64(v)},
    bytearray: lambda v, d: {"$": "bytearray", "v": _b64(v)},
    complex: lambda v, d: {"$": "complex", "v": [_tree(v.real, d), _tree(v.imag, d)]},
}


def _object(v: Any, t: type, depth: int) -> Tree:
    """A value of a registered class, by its fields."""
    if not registry.is_storable_class(t):
        raise _Refused(*_why_not(t))
    name = registry.name_of(t)
    if name is None:
        raise _Refused(f"{t.__qualname__} whose class is not registered",
                       "Name it in the state's annotations, or call ledgergraph.schemas.registry.register on it.")
    if isinstance(v, enum.Enum):
        return {"$": "enum", "c": name, "v": v.name if v.name in type(v).__members__ else [_part(v.value, depth, ".value")]}
    return {"$": "object", "c": name, "v": {k: _part(x, depth, f".{k}") for k, x in _fields(v, t).items()}} | _beside(v, depth)


def _fields(v: Any, t: type) -> dict[str, Any]:
    if isinstance(v, BaseModel):
        return dict(v.__dict__)
    if isinstance(v, tuple):
        return dict(zip(t._fields, v, strict=True))  # type: ignore[attr-defined]
    names = [f.name for f in dataclasses.fields(v)]
    extra = set(getattr(v, "__dict__", ())) - set(names)
    if extra:
        raise _Refused(f"{t.__qualname__} with attributes that are no fields ({', '.join(sorted(extra))})", "Declare them as fields.")
    return {n: getattr(v, n) for n in names if hasattr(v, n)}


def _beside(v: Any, depth: int) -> dict[str, Tree]:
    """What a pydantic model holds beside its fields."""
    if not isinstance(v, BaseModel):
        return {}
    extra, private = v.__pydantic_extra__, v.__pydantic_private__
    out: dict[str, Tree] = {"s": sorted(v.__pydantic_fields_set__)}
    if extra is not None:
        out["x"] = _part(extra, depth, "")
    if private is not None:
        out["p"] = _part(private, depth, "")
    return out


def _why_not(t: type) -> tuple[str, str]:
    module = t.__module__.partition(".")[0]
    name = t.__qualname__ if module == "builtins" else f"{t.__module__}.{t.__qualname__}"
    if module in ("numpy", "polars", "pandas", "pyarrow"):
        return name, "Return plain values (.item(), .tolist(), .to_dicts()), or a file's path and digest."
    kind = next((b for b in t.__mro__[1:] if b in PLAIN or b in _TO or b in (dict, list)), None)
    if kind is not None:
        return name, f"It is a {kind.__name__} of its own class: return {kind.__name__}(value)."
    if callable(getattr(t, "__next__", None)):
        return name, "Return a list of what it yields."
    return name, "Return plain values, or make it a dataclass and register it."


# From a tree


def _restored(tree: dict[str, Any]) -> Any:
    back = _FROM.get(tree["$"])
    if back is None:
        raise DecodeError(f"a value with the tag {tree['$']!r}", "it was written by a newer ledgergraph; upgrade")
    return back(tree)


def _class(tree: dict[str, Any]) -> type:
    cls = registry.registered(tree["c"])
    if cls is None:
        raise DecodeError(f"a value of the class {tree['c']!r}", "nobody registered it in this process: import the module of its graph, "
                          "or register the class that took its place under this name")
    return cls


def _enum(tree: dict[str, Any]) -> Any:
    cls, v = _class(tree), tree["v"]
    try:
        return cls[v] if isinstance(v, str) else cls(from_plain(v[0]))  # type: ignore[index]
    except (KeyError, ValueError):
        raise DecodeError(f"the member {v!r} of {tree['c']!r}", "the Enum has it no more: put it back") from None


def _instance(tree: dict[str, Any]) -> Any:
    cls, fields = _class(tree), {k: from_plain(v) for k, v in tree["v"].items()}
    if issubclass(cls, tuple):
        return _named_tuple(cls, fields, tree["c"])
    out: Any = object.__new__(cls)
    if isinstance(out, BaseModel):
        object.__setattr__(out, "__dict__", fields)
        object.__setattr__(out, "__pydantic_fields_set__", set(tree["s"]))
        object.__setattr__(out, "__pydantic_extra__", from_plain(tree["x"]) if "x" in tree else None)
        object.__setattr__(out, "__pydantic_private__", from_plain(tree["p"]) if "p" in tree else None)
        return out
    known = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    _refuse_unknown(fields.keys() - known.keys(), tree["c"])
    for name, f in known.items():
        if name in fields:
            object.__setattr__(out, name, fields[name])
        elif f.default is not dataclasses.MISSING:
            object.__setattr__(out, name, f.default)
        elif f.default_factory is not dataclasses.MISSING:
            object.__setattr__(out, name, f.default_factory())
    return out


def _named_tuple(cls: Any, fields: dict[str, Any], name: str) -> Any:
    _refuse_unknown(fields.keys() - set(cls._fields), name)
    values = {**cls._field_defaults, **fields}
    missing = [f for f in cls._fields if f not in values]
    if missing:
        raise DecodeError(f"a value of the class {name!r}", f"its fields {', '.join(missing)} were added without defaults; give them")
    return tuple.__new__(cls, [values[f] for f in cls._fields])


def _refuse_unknown(fields: set[str], name: str) -> None:
    if fields:
        raise DecodeError(f"a value of the class {name!r}", f"it was stored with {', '.join(sorted(fields))}, which the class has no more: "
                          "put the fields back")


def _tz(zone: Any) -> tzinfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    offset = timedelta(microseconds=zone[0])
    if zone[1] is not None:
        return timezone(offset, zone[1])
    return timezone(offset) if offset else timezone.utc


def _values(tree: dict[str, Any]) -> list[Any]:
    out: list[Any] = from_plain(tree["v"])
    return out


_FROM: dict[str, Callable[[dict[str, Any]], Any]] = {
    "str": lambda n: base64.b64decode(n["v"]).decode("utf-8", "surrogatepass"),
    "int": lambda n: int(n["v"], 16),
    "float": lambda n: float(n["v"]),
    "dict": lambda n: {from_plain(k): from_plain(v) for k, v in n["v"]},
    "tuple": lambda n: tuple(_values(n)),
    "set": lambda n: set(_values(n)),
    "frozenset": lambda n: frozenset(_values(n)),
    "decimal": lambda n: Decimal(n["v"]),
    "datetime": lambda n: datetime.fromisoformat(n["v"][0]).replace(fold=n["v"][1], tzinfo=_tz(n["v"][2])),
    "date": lambda n: date.fromisoformat(n["v"]),
    "time": lambda n: time.fromisoformat(n["v"][0]).replace(fold=n["v"][1], tzinfo=_tz(n["v"][2])),
    "timedelta": lambda n: timedelta(*n["v"]),
    "uuid": lambda n: UUID(n["v"]),
    "bytes": lambda n: base64.b64decode(n["v"]),
    "bytearray": lambda n: bytearray(base64.b64decode(n["v"])),
    "complex": lambda n: complex(*_values(n)),
    "enum": _enum,
    "object": _instance,
}
