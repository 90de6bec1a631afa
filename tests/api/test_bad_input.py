"""What is refused, how it is said, and that nothing of it is stored."""
from __future__ import annotations

from typing import Any

import pytest

from ledgergraph.consumers import START, Command, InvalidUpdateError, Send, StateGraph
from ledgergraph.consumers.graph import StateGraph as Written
from ledgergraph.eventstore.store import Append
from ledgergraph.schemas.envelope import NO_HASH, Chain, NewEvent, content_digest
from ledgergraph.schemas.errors import (
    GraphError,
    IdempotencyConflict,
    InvalidAsOf,
    InvalidStoreUrl,
    InvalidThreadId,
    InvalidValue,
    NewerLog,
    UndeclaredTarget,
    UnknownField,
    UnknownNode,
    UnstorableValue,
    WrongExpectedVersion,
)
from ledgergraph.schemas.ids import StreamId
from tests.api.conftest import Compile, State, graph, says

T = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize(("update", "error", "words"), [
    ({"unknown": 1}, UnknownField, ["node 'bad'", "'unknown'", "Known fields: log, n, x"]),
    ({"n": "1"}, InvalidValue, ["node 'bad'", "n is not int", "without conversion"]),
    ({"log": [1]}, InvalidValue, ["node 'bad'", "log[0]", "str"]),
    ({"x": None}, InvalidValue, ["node 'bad'", "x is not str"]),
    (["log"], InvalidUpdateError, ["node 'bad'", "mapping"]),
    (Command(update={"n": 1.5}), InvalidValue, ["n is not int"]),
])
def test_a_wrong_update_is_refused_and_nothing_of_it_is_stored(compiled: Compile, update: Any, error: type[Exception], words: list[str]) -> None:
    app = compiled(graph({"bad": lambda s: update}).add_edge(START, "bad"))
    with pytest.raises(error) as e:
        app.invoke({"log": ["in"]}, T)
    assert [w for w in words if w not in str(e.value)] == []
    assert app.get_state(T).values == {"log": ["in"], "n": 0}


def test_wrong_input_starts_nothing(compiled: Compile) -> None:
    app = compiled(graph("a", "^a"))
    for given, error in (({"zz": 1}, UnknownField), ({"n": "x"}, InvalidValue), ([1], InvalidUpdateError)):
        with pytest.raises(error, match="the input"):
            app.invoke(given, T)
    assert app.store.runs() == []
    assert app.get_state(T).values == {}


def test_a_value_that_cannot_be_stored_is_named_by_its_path(compiled: Compile) -> None:
    class Loose(State):
        any: Any
    b = StateGraph(Loose).add_node("bad", lambda s: {"any": {"rows": [1, object()]}}).add_edge(START, "bad")
    with pytest.raises(UnstorableValue, match=r"node 'bad': any\['rows'\]\[1\] holds a object"):
        compiled(b).invoke({}, T)


def test_targets_must_exist_and_be_declared(compiled: Compile) -> None:
    def routed(answer: Any, **more: Any) -> Written:
        return graph("ab", "^a").add_conditional_edges("a", lambda s: answer, ["b"])
    for answer in ("zzz", Send("zzz", {})):
        with pytest.raises(UnknownNode, match="the route after 'a': there is no node 'zzz'. Known: a, b"):
            compiled(routed(answer)).invoke({}, thread_id=str(type(answer)))
    with pytest.raises(UnstorableValue, match="the Send of node 'a' to 'b'"):
        compiled(routed(Send("b", object()))).invoke({}, thread_id="send")
    with pytest.raises(UndeclaredTarget, match=r"Command\[Literal\['b', ...\]\].*destinations=\('b', ...\)"):
        compiled(graph({"a": lambda s: Command(goto="b"), "b": says("b")}, "^a")).invoke({}, thread_id="goto")
    with pytest.raises(UnknownNode, match="nope"):
        compiled(graph("a", "^a").add_edge("a", "nope"))


def test_graphs_that_cannot_be_written_down() -> None:
    b = graph("a", "^a")
    for wrong in (lambda: b.add_node("a", says("a")), lambda: b.add_node("__end__", says("e")), lambda: b.add_node("x"),
                  lambda: b.add_node("y", 5), lambda: b.add_edge("__end__", "a"), lambda: b.add_node("z", lambda a, b, c: {})):
        with pytest.raises(GraphError):
            wrong()
    with pytest.raises(GraphError, match="declare its targets"):
        graph("ab", "^a").add_conditional_edges("a", lambda s: "b").compile(schedule="logical")


@pytest.mark.parametrize("bad", ["", " ", "x" * 201, "a\u200bb", "a\nb", " a", "\ud800", "e\u0301", 5])
def test_thread_ids_that_are_none(compiled: Compile, bad: Any) -> None:
    with pytest.raises(InvalidThreadId, match="thread id"):
        compiled(graph("a", "^a")).invoke({}, thread_id=bad)


@pytest.mark.parametrize("good", ["x" * 200, "Fonds Zürich/2010 #1", "线程"])
def test_thread_ids_that_are_some(compiled: Compile, good: str) -> None:
    app = compiled(graph("a", "^a"))
    assert app.invoke({}, thread_id=good)["log"] == ["a"]
    assert app.get_state(thread_id=good).values["log"] == ["a"]


@pytest.mark.parametrize("bad", ["2999-01-01", "2010-06-30T10:00:00", "nonsense", "2010-13-01", 5])
def test_as_of_that_cannot_be_used(compiled: Compile, bad: Any) -> None:
    with pytest.raises(InvalidAsOf, match="with its zone that is not in the future"):
        compiled(graph("a", "^a")).invoke({}, T, as_of=bad)


def test_a_date_is_the_end_of_that_day_in_the_market(compiled: Compile) -> None:
    app = compiled(graph({"a": lambda s, ctx: {"log": [ctx.as_of.isoformat()]}}, "^a"))
    assert app.invoke({}, T, as_of="2010-06-30")["log"] == ["2010-06-30T23:59:59.999999-04:00"]


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "nonsense", "postgresql://u:secret@h/d", "sqlite:///x.db?mode=ro"])
def test_urls_that_name_no_log(url: str) -> None:
    with pytest.raises(InvalidStoreUrl, match="does not name a log") as e:
        _ = graph("a", "^a").compile(url).store
    assert "secret" not in str(e.value)


def test_the_same_key_with_other_content_and_a_wrong_version(compiled: Compile) -> None:
    app = compiled(graph("a", "^a"))
    stream = StreamId("thread:raw")

    def append(payload: bytes, version: int, key: str) -> Any:
        events = [NewEvent("test.event", payload, key=key)]
        chain = Chain(stream, version, NO_HASH if version == 0 else b"\1" * 32)
        stored = chain.extend(events, app.store.now())
        return app.store.append([Append(stream, version, NO_HASH if version == 0 else b"\1" * 32, stored, key, content_digest(events))])[0]
    assert append(b"{}", 0, "k").version == 1
    assert append(b"{}", 0, "k").duplicate
    conflict = append(b"[]", 0, "k")
    assert isinstance(conflict, IdempotencyConflict)
    assert conflict.recorded != conflict.offered
    wrong = append(b"{}", 7, "other")
    assert isinstance(wrong, WrongExpectedVersion)
    assert (wrong.expected, wrong.actual) == (7, 1)
    app.close()


def test_an_event_of_a_newer_version_is_not_guessed_at(compiled: Compile) -> None:
    app = compiled(graph("a", "^a"))
    app.invoke({}, T)
    stream = StreamId("thread:t")
    head = app.store.head(stream)
    newer = Chain(stream, head.version, head.hash, head.recorded_at).extend([NewEvent("run.completed", b"{}", 99)], app.store.now())
    app.store.append([Append(stream, head.version, head.hash, newer, "", b"")])
    with pytest.raises(NewerLog, match="Upgrade ledgergraph"):
        app.get_state(T)
    app.close()
