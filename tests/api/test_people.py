"""Questions, answers, edits, forks, cancelling: what people do to a run."""
from __future__ import annotations

from typing import Any

import pytest

from ledgergraph.consumers import Command, interrupt
from ledgergraph.schemas.errors import (
    FingerprintMismatch,
    GraphError,
    InvalidInput,
    QuestionError,
    RunEnded,
    RunNotFound,
    ThreadBusy,
    UnknownField,
    UnknownNode,
)
from ledgergraph.schemas.events.question import QuestionAnswered
from ledgergraph.schemas.events.run import RunAdopted
from ledgergraph.schemas.ids import StreamId
from tests.api.conftest import Compile, State, graph, says

T: dict[str, Any] = {"configurable": {"thread_id": "t"}}


def asks(*questions: str) -> Any:
    return lambda s: {"log": ["".join(interrupt(q) for q in questions)]}


def gate() -> Any:
    return graph({"a": says("a"), "q": asks("?"), "z": says("z")}, "^a aq qz")


def test_parallel_questions_are_answered_by_their_ids(compiled: Compile) -> None:
    app = compiled(graph({"p": asks("p?"), "q": asks("q1?", "q2?"), "r": says("r")}, "^p ^q ^r"))
    asked = {i.value: i.id for i in app.invoke({}, T)["__interrupt__"]}
    assert set(asked) == {"p?", "q1?"}
    with pytest.raises(QuestionError, match="2 open questions"):
        app.invoke(Command(resume="x"), T)
    with pytest.raises(QuestionError, match="0000000000000000000000ff"):
        app.invoke(Command(resume={"0000000000000000000000ff": 1}), T)
    out = app.invoke(Command(resume={asked["p?"]: "P", asked["q1?"]: "Q"}), T)
    assert [i.value for i in out["__interrupt__"]] == ["q2?"]
    with pytest.raises(QuestionError, match="answered"):
        app.invoke(Command(resume={asked["p?"]: "again"}), T)
    with pytest.raises(QuestionError, match="not open"):
        app.answer(asked["p?"], "again")
    with pytest.raises(ThreadBusy, match="waiting"):
        app.invoke({"n": 1}, T)
    assert app.invoke(Command(resume="2"), T)["log"] == ["P", "Q2", "r"]
    with pytest.raises(RunEnded):
        app.invoke(None, T)


def test_a_question_without_a_run_and_a_command_without_an_answer(compiled: Compile) -> None:
    app = compiled(gate())
    with pytest.raises(RunNotFound, match="Start one with an input"):
        app.invoke(Command(resume=1), T)
    with pytest.raises(InvalidInput, match="resume="):
        app.invoke(Command(update={}), T)
    with pytest.raises(RunNotFound):
        app.invoke(None, T)


def test_an_answer_records_who_why_and_what_was_shown(compiled: Compile) -> None:
    app = compiled(gate())
    question = app.invoke({}, T)["__interrupt__"][0].id
    shown = app.history.load(StreamId("thread:t")).state.current.questions[question].asked.shown
    with pytest.raises(QuestionError, match="not what is asked"):
        app.answer(question, "yes", shown="0" * 64)
    app.answer(question, "yes", actor="person:eve", why="looked at it", shown=shown)
    assert app.invoke(None, T)["log"] == ["a", "yes", "z"]
    (answered,) = [e for _, e in app.history.events(StreamId("thread:t")) if isinstance(e, QuestionAnswered)]
    assert (answered.why, answered.shown) == ("looked at it", shown)


def test_an_edit_supersedes_the_question_and_is_seen(compiled: Compile) -> None:
    app = compiled(gate())
    question = app.invoke({}, T)["__interrupt__"][0].id
    app.update_state(T, {"log": ["edit"]})
    with pytest.raises(QuestionError, match="superseded"):
        app.invoke(Command(resume={question: 1}), T)
    out = app.invoke(None, T)
    assert out["log"] == ["a", "edit"]
    assert out["__interrupt__"][0].id != question
    assert app.invoke(Command(resume="Q"), T)["log"] == ["a", "edit", "Q", "z"]


def test_an_edit_as_a_node_goes_on_after_it(compiled: Compile) -> None:
    app = compiled(gate())
    app.invoke({}, T)
    app.update_state(T, {"log": ["as q"]}, as_node="q")
    assert app.get_state(T).next == ("z",)
    assert app.invoke(None, T)["log"] == ["a", "as q", "z"]


def test_wrong_edits_are_refused(compiled: Compile) -> None:
    app = compiled(gate())
    app.invoke({}, T)
    before = app.get_state(T)
    with pytest.raises(UnknownField, match="update_state"):
        app.update_state(T, {"zz": 1})
    with pytest.raises(UnknownNode, match="as_node"):
        app.update_state(T, {"n": 1}, as_node="nobody")
    assert app.get_state(T) == before


def test_a_cancelled_run_frees_its_thread(compiled: Compile) -> None:
    app = compiled(gate())
    app.invoke({}, T)
    app.cancel(T, reason="no")
    assert app.get_state(T).metadata["status"] == "cancelled"
    with pytest.raises(RunEnded):
        app.cancel(T)
    with pytest.raises(QuestionError):
        app.invoke(Command(resume=1), T)
    assert app.invoke({"n": 2}, T)["n"] == 2


def test_a_fork_asks_again_under_ids_of_its_own(compiled: Compile) -> None:
    app = compiled(gate())
    first = app.invoke({}, T)
    app.invoke(Command(resume="one"), T)
    parked = next(s for s in app.get_state_history(T) if s.next == ("q",) and "q" not in str(s.values["log"]))
    branch = app.fork(parked.config, why="what if")
    out = app.invoke(None, branch)
    assert out["__interrupt__"][0].id != first["__interrupt__"][0].id
    assert app.invoke(Command(resume="two"), T)["log"] == ["a", "two", "z"]
    runs = {r.run: r.status for r in app.store.runs()}
    assert sorted(runs.values()) == ["completed", "completed"]


def test_history_is_newest_first_and_every_version_can_be_seen(compiled: Compile) -> None:
    app = compiled(graph("abc", "^a ab bc"))
    app.invoke({}, T)
    history = list(app.get_state_history(T))
    assert [s.values["log"] for s in history] == [["a", "b", "c"], ["a", "b"], ["a"], []]
    assert [s.next for s in history] == [(), ("c",), ("b",), ("a",)]
    for s in history:
        assert app.get_state(s.config).values == s.values
        assert app.get_state(T, version=s.metadata["version"]).values == s.values
    assert len(list(app.get_state_history(T, limit=2))) == 2
    with pytest.raises(InvalidInput, match="thread:a@12"):
        app.get_state({"configurable": {"thread_id": "t", "checkpoint_id": "nonsense"}})


def test_streams_in_every_mode(compiled: Compile) -> None:
    def talks(s: State, ctx: Any) -> dict[str, Any]:
        ctx.stream("hello")
        return {"log": ["c"]}
    app = compiled(graph({"c": talks, "q": asks("?")}, "^c cq"))
    chunks = list(app.stream({}, T, stream_mode=["values", "updates", "custom"]))
    assert chunks[0] == ("values", {"log": [], "n": 0})
    assert ("custom", "hello") in chunks
    assert ("updates", {"c": {"log": ["c"]}}) in chunks
    assert chunks[-1][1]["__interrupt__"][0].value == "?"
    assert list(app.stream(Command(resume="z"), T)) == [{"q": {"log": ["z"]}}]
    with pytest.raises(InvalidInput, match="Known: values, updates, custom"):
        list(app.stream({}, thread_id="u", stream_mode="debug"))


def test_another_version_takes_a_run_over_only_where_a_person_says_so(compiled: Compile) -> None:
    app = compiled(gate())
    app.invoke({}, T)
    newer = graph({"a": says("a"), "q": asks("?"), "z": says("new z")}, "^a aq qz", max_visits=9).compile(app.store)
    with pytest.raises(FingerprintMismatch, match="--adopt"):
        newer.invoke(Command(resume="Q"), T)
    newer.adopt(T, why="the cap was forgotten", actor="person:eve")
    assert newer.invoke(Command(resume="Q"), T)["log"] == ["a", "Q", "new z"]
    (adopted,) = [e for _, e in app.history.events(StreamId("thread:t")) if isinstance(e, RunAdopted)]
    assert adopted.reason == "the cap was forgotten"


def test_a_version_of_another_shape_cannot_take_a_run_over(compiled: Compile) -> None:
    app = compiled(gate())
    app.invoke({}, T)
    other = graph({"a": says("a"), "q": asks("?"), "z": says("z")}, "^a aq qz az").compile(app.store)
    with pytest.raises(GraphError, match="its edges differ"):
        other.adopt(T, why="try")
