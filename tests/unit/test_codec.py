"""Values come back as they went, or are refused with the path to what cannot be stored."""
from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from ledgergraph.schemas import codec, registry
from ledgergraph.schemas.errors import DecodeError, GraphError, UnstorableValue


@registry.register
@dataclass(frozen=True)
class Position:
    ticker: str
    weight: Decimal
    tags: tuple[str, ...] = ()


@registry.register
class Note(BaseModel):
    model_config = ConfigDict(extra="allow")
    text: str = ""
    at: datetime | None = None


@registry.register
class Point(NamedTuple):
    x: int
    y: Any = None


@registry.register
class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Book:
    class Kind(enum.IntEnum):
        ONE = 1


registry.register(Book.Kind)


@registry.register
class Word(enum.StrEnum):
    YES = "yes"


@registry.register
class Flags(enum.Flag):
    A = 1
    B = 2


def same(a: Any, b: Any) -> bool:
    """Equal, of one type at every depth; NaN equals NaN, and -0.0 is not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, datetime | time):
        return a == b and a.fold == b.fold and repr(a.tzinfo) == repr(b.tzinfo)
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b, strict=True))
    if isinstance(a, Position):
        return same([a.ticker, a.weight, a.tags], [b.ticker, b.weight, b.tags])
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


zones = st.sampled_from([None, UTC, ZoneInfo("America/New_York"), ZoneInfo("UTC"), timezone(timedelta(hours=5, minutes=30)),
                         timezone(timedelta(hours=-3), "BRT"), timezone(timedelta(microseconds=1))])
scalars = (st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.dates() | st.uuids()
           | st.timedeltas() | st.datetimes(timezones=zones) | st.times() | st.complex_numbers(allow_nan=False)
           | st.sampled_from([Side.BUY, Book.Kind.ONE, Word.YES, Flags.A | Flags.B, bytearray(b"x"), "\ud800", -0.0, 2**63, -(2**64), 10**4000]))
keys = st.text() | st.integers() | st.tuples(st.integers(), st.text()) | st.just("$") | st.dates() | st.just(Side.SELL)
values = st.recursive(scalars, lambda inner: (
    st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4) | st.lists(inner, max_size=3).map(tuple)
    | st.sets(st.integers() | st.text(), max_size=4) | st.frozensets(st.decimals(allow_nan=False), max_size=3)
    | st.builds(Position, st.text(), st.decimals(), st.just(("a",))) | st.builds(Point, st.integers(), inner)), max_leaves=12)


@given(values)
@settings(max_examples=400, deadline=None)
def test_any_value_comes_back(value: Any) -> None:
    data = codec.encode(value)
    assert same(codec.decode(data), value)
    assert codec.encode(codec.decode(data)) == data


def test_plain_json_stays_plain() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": "é"}}
    assert orjson.loads(codec.encode(value)) == value


def test_sets_have_one_order_of_bytes() -> None:
    assert codec.encode({"b", "a", "c"}) == codec.encode({"c", "b", "a"})


def test_models_come_back_with_what_was_set_and_with_extras() -> None:
    note = Note(text="t", more=[1])  # type: ignore[call-arg]
    back = codec.decode(codec.encode(note))
    assert back == note
    assert back.model_fields_set == {"text", "more"}
    assert back.model_extra == {"more": [1]}


def test_no_constructor_runs() -> None:
    made: list[str] = []

    @registry.register
    @dataclass
    class Loud:
        n: int

        def __post_init__(self) -> None:
            made.append("made")
    data = codec.encode(Loud(1))
    assert codec.decode(data).n == 1
    assert made == ["made"]


def test_a_field_that_is_new_gets_its_default_and_one_that_is_gone_is_an_error() -> None:
    @dataclass
    class Old:
        a: int

    @dataclass
    class New:
        a: int
        b: list[int] = field(default_factory=list)
    registry.register(Old, "test:Changed")
    stored = codec.encode(Old(1))
    New.__qualname__, New.__module__ = Old.__qualname__, Old.__module__
    registry.register(New, "test:Changed")
    assert codec.decode(stored) == New(1, [])
    gone = stored.replace(b'"a":1', b'"z":1')
    with pytest.raises(DecodeError, match="stored with z"):
        codec.decode(gone)


class Plain:
    pass


class MyStr(str):
    __slots__ = ()


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(("value", "path", "kind"), [
    ({"rows": [1, object()]}, "x['rows'][1]", "object"),
    ({"a": {"b": lambda: 0}}, "x['a']['b']", "function"),
    (Plain(), "x", "Plain"),
    ([MyStr("s")], "x[0]", "MyStr"),
    ((1, {2: Plain()}), "x[1][2]", "Plain"),
    (Position("a", Decimal(1), (Plain(),)), "x.tags[0]", "Plain"),  # type: ignore[arg-type]
    (pl.DataFrame({"a": [1]}), "x", "DataFrame"),
    (iter([1]), "x", "iterator"),
    (LOOP, "[0][0]", "nested"),
])
def test_what_cannot_come_back_is_refused_by_its_path(value: Any, path: str, kind: str) -> None:
    with pytest.raises(UnstorableValue) as e:
        codec.encode(value, place="node 'n'", path="x")
    assert path in str(e.value)
    assert kind in str(e.value)
    assert str(e.value).startswith("node 'n'")


def test_an_unregistered_class_is_refused_and_unknown_bytes_are_not_imported() -> None:
    @dataclass
    class Unregistered:
        n: int
    with pytest.raises(UnstorableValue, match="register"):
        codec.encode(Unregistered(1))
    with pytest.raises(DecodeError, match="os:system"):
        codec.decode(b'{"$":"object","c":"os:system","v":{}}')
    with pytest.raises(DecodeError, match="newer"):
        codec.decode(b'{"$":"from-the-future","v":1}')


def test_a_name_belongs_to_one_class() -> None:
    @dataclass
    class Other:
        n: int
    with pytest.raises(GraphError, match="belongs to"):
        registry.register(Other, registry.name_of(Position))
    with pytest.raises(GraphError, match="cannot be registered"):
        registry.register(Plain)


def test_exact_kinds_once_each() -> None:
    for value in (date(2020, 2, 29), UUID(int=1), time(1, 2, 3, 4, ZoneInfo("Europe/Berlin")), datetime(2020, 10, 25, 2, 30, fold=1)):
        assert same(codec.decode(codec.encode(value)), value)
