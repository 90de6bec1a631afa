"""A TypedDict, a dataclass and a pydantic model are the same state."""
from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from decimal import Decimal
from operator import add
from typing import Annotated, Any, NotRequired

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from ledgergraph.schemas import reducers
from ledgergraph.schemas.errors import GraphError, InvalidUpdateError, InvalidValue, UnknownField, UnstorableValue
from ledgergraph.schemas.state import StateSchema


class Row(TypedDict):
    name: str
    price: NotRequired[Decimal]


class AsDict(TypedDict):
    rows: Annotated[list[Row], add]
    n: Annotated[int, add]
    label: str
    seen: Annotated[set[str], reducers.union]


@dataclass
class AsDataclass:
    rows: Annotated[list[Row], add] = field(default_factory=list)
    n: Annotated[int, add] = 0
    label: str = field(default="")
    seen: Annotated[set[str], reducers.union] = field(default_factory=set)


class AsModel(BaseModel):
    rows: Annotated[list[Row], add] = Field(default_factory=list)
    n: Annotated[int, add] = 0
    label: str = ""
    seen: Annotated[set[str], reducers.union] = Field(default_factory=set)


ALL = [AsDict, AsDataclass, AsModel]


def put(current: dict[str, int], update: tuple[str, int]) -> dict[str, int]:
    return {**current, update[0]: update[1]}


class Scores(TypedDict):
    scores: Annotated[dict[str, int], put]
    names: Annotated[list[str], reducers.append]


@pytest.mark.parametrize("cls", ALL)
def test_the_fields_are_the_same(cls: type) -> None:
    fields = StateSchema.of(cls).fields
    assert {n: (f.kind.rpartition(".")[2], f.reducer) for n, f in fields.items()} == {
        "rows": ("Row]", "add"), "n": ("int", "add"), "label": ("str", None), "seen": ("set[str]", "union")}
    assert fields["rows"].initial == "list"


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("bad", "error", "said"), [
    ({"unknown": 1}, UnknownField, "Known fields: rows, n, label, seen"),
    ({"label": 5}, InvalidValue, "label is not str"),
    ({"n": True}, InvalidValue, "n is not int"),
    ({"n": "1"}, InvalidValue, "n is not int"),
    ({"rows": ({"name": "a"},)}, InvalidValue, "it is a tuple"),
    ({"rows": [{"name": "a", "price": 1.5}]}, InvalidValue, "rows[0]['price']"),
    ({"rows": [{"price": Decimal(1)}]}, InvalidValue, "rows[0]['name']"),
    ([("label", "x")], InvalidUpdateError, "not a list"),
])
def test_a_wrong_update_is_refused_by_its_name_and_place(cls: type, bad: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as e:
        StateSchema.of(cls).check(bad, place="node 'bad'")
    assert "node 'bad'" in str(e.value)
    assert said in str(e.value)


@pytest.mark.parametrize("cls", ALL)
def test_a_right_update_is_returned_as_it_is(cls: type) -> None:
    rows = [{"name": "a", "price": Decimal("1.0")}]
    checked = StateSchema.of(cls).check({"rows": rows, "n": 2}, place="p")
    assert checked["rows"] is rows


@pytest.mark.parametrize("cls", ALL)
def test_what_a_node_does_to_its_state_stays_with_it(cls: type) -> None:
    kept = {"rows": [{"name": "a"}], "n": 1, "label": "x", "seen": {"k"}}
    own = StateSchema.of(cls).view(kept)
    rows = own["rows"] if isinstance(own, dict) else own.rows
    rows[0]["name"] = "changed"
    rows.append({"name": "b"})
    assert kept["rows"] == [{"name": "a"}]


def test_instances_are_updates_of_what_they_set() -> None:
    assert StateSchema.of(AsModel).check(AsModel(label="x"), place="p") == {"label": "x"}
    assert StateSchema.of(AsDataclass).check(AsDataclass(label="x"), place="p") == {"label": "x"}


def test_the_state_behaves_as_a_dict() -> None:
    kept: dict[str, Any] = {"rows": [{"name": "a"}], "n": 1, "label": "x", "seen": {"k"}}
    schema = StateSchema.of(AsDict)
    for use in (lambda s: dict(s), lambda s: {**s}, lambda s: s.copy(), lambda s: copy.deepcopy(s), lambda s: s | {},
                lambda s: dict(s.items()), lambda s: {k: s[k] for k in s}, lambda s: {k: s.get(k) for k in s}):
        got = use(schema.view(kept))
        assert got == kept
        got["rows"].append("mine")
    own = schema.view(kept)
    own["rows"].append("mine")
    assert own["rows"][-1] == own.pop("rows")[-1] == "mine"
    assert "rows" not in own
    assert own.get("rows") is None
    assert list(own.values()) == [1, "x", {"k"}]
    assert own.setdefault("more", 1) == 1
    assert kept["rows"] == [{"name": "a"}]
    assert json.loads(json.dumps(schema.view({"rows": [1]}))) == {"rows": [1]}


def test_what_cannot_be_stored_is_named_by_its_path() -> None:
    class Loose(TypedDict):
        rows: list[Any]
    with pytest.raises(UnstorableValue, match=r"rows\[1\]\['f'\]"):
        StateSchema.of(Loose).encode_update({"rows": [1, {"f": object()}]}, place="node 'n'")


def test_reducers_may_take_another_type_than_the_field() -> None:
    schema = StateSchema.of(Scores)
    assert schema.check({"scores": ("a", 1), "names": "one"}, place="p")
    with pytest.raises(InvalidValue, match="scores"):
        schema.check({"scores": {"a": 1}}, place="p")
    with pytest.raises(InvalidValue, match="names"):
        schema.check({"names": ["one"]}, place="p")


def test_json_becomes_what_the_types_say() -> None:
    class Typed(TypedDict):
        cap: Decimal
        names: list[str]
    schema = StateSchema.of(Typed)
    assert schema.from_json({"cap": "0.15", "names": ["a"], "odd": 1}) == {"cap": Decimal("0.15"), "names": ["a"], "odd": 1}


@pytest.mark.parametrize("bad", [dict, int, "text", list[int]])
def test_other_classes_are_no_state(bad: Any) -> None:
    with pytest.raises(GraphError, match="TypedDict, a dataclass or a pydantic model"):
        StateSchema.of(bad)


@pytest.mark.parametrize("fold", [lambda a: a, lambda a, b, c: a, lambda a, *, b: a])
def test_a_reducer_takes_two(fold: Any) -> None:
    with pytest.raises(GraphError, match="takes"):
        reducers.name_of(fold)


def test_two_lambdas_are_two_reducers_and_one_is_found_again() -> None:
    first, second = (lambda a, b: a), (lambda a, b: b)
    assert reducers.name_of(first) != reducers.name_of(second)
    assert reducers.get(reducers.name_of(first)) is first
    with pytest.raises(GraphError, match="not known here"):
        reducers.get("somebody:else")


def test_the_reducers_that_come_with_it() -> None:
    by_key = reducers.merge_by_key("id")
    assert by_key([{"id": 1, "v": 1}, {"id": 2, "v": 1}], [{"id": 1, "v": 2}, {"id": 3, "v": 1}]) == [
        {"id": 1, "v": 2}, {"id": 2, "v": 1}, {"id": 3, "v": 1}]
    assert reducers.union([1, 2], [2, 3, 3]) == [1, 2, 3]
    assert reducers.union({1}, [2]) == {1, 2}
    assert reducers.merge({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert (reducers.max(1, 2), reducers.min(1, 2), reducers.keep_latest(1, 2), reducers.append([1], 2)) == (2, 1, 2, [1, 2])
