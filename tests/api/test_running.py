"""Runs: what fires, what is seen, what fails, what goes on."""
from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from ledgergraph.consumers import END, START, Command, GraphRecursionError, RetryPolicy, Send, StateGraph
from ledgergraph.schemas.errors import BarrierStarved, ConflictingUpdates, RunEnded, RunFailed, ThreadBusy
from ledgergraph.schemas.events.task import TaskFailed, TaskRefused
from ledgergraph.schemas.ids import StreamId
from tests.api.conftest import Compile, State, graph, says

T = {"configurable": {"thread_id": "t"}}


@dataclass
class AsDataclass:
    log: Annotated[list[str], add] = field(default_factory=list)
    n: Annotated[int, add] = 0


class AsModel(BaseModel):
    log: Annotated[list[str], add] = Field(default_factory=list)
    n: Annotated[int, add] = 0


@pytest.mark.parametrize("cls", [State, AsDataclass, AsModel])
def test_every_kind_of_state_runs_alike(compiled: Compile, cls: Any) -> None:
    def node(s: Any) -> dict[str, Any]:
        seen = s["log"] if isinstance(s, dict) else s.log
        return {"log": [f"saw {len(seen)}"], "n": 1}
    b = StateGraph(cls).add_node("a", node).add_node("b", node).add_edge(START, "a").add_edge("a", "b")
    out = compiled(b).invoke({"log": ["in"]}, T)
    assert {k: out[k] for k in ("log", "n")} == {"log": ["in", "saw 1", "saw 2"], "n": 2}


def test_sends_run_beside_each_other_and_fold_in_their_order(compiled: Compile) -> None:
    together = threading.Barrier(5)
    b = graph({"p": says("p"), "w": lambda s: (together.wait(10), {"log": [s["k"]]})[1], "j": says("j")}, "^p wj")
    b.add_conditional_edges("p", lambda s: [Send("w", {"k": str(i)}) for i in range(5)], ["w"])
    assert compiled(b).invoke({}, T)["log"] == ["p", "0", "1", "2", "3", "4", "j"]


def test_a_command_updates_and_goes(compiled: Compile) -> None:
    def r(s: State) -> Command[Literal["a", "b"]]:
        return Command(update={"log": ["r"]}, goto="b")
    assert compiled(graph({"r": r, "a": says("a"), "b": says("b")}, "^r")).invoke({}, T)["log"] == ["r", "b"]


def test_start_may_choose(compiled: Compile) -> None:
    b = graph("ab")
    b.add_conditional_edges(START, lambda s: "b" if s["n"] else "a", ["a", "b"])
    app = compiled(b)
    assert app.invoke({"n": 1}, thread_id="one")["log"] == ["b"]
    assert app.invoke({"n": 0}, thread_id="none")["log"] == ["a"]


def test_a_second_run_goes_on_from_the_threads_state(compiled: Compile) -> None:
    app = compiled(graph({"a": says("a", n=1)}, "^a"))
    app.invoke({}, T)
    out = app.invoke({"log": ["again"]}, T)
    assert out["log"] == ["a", "again", "a"]
    assert out["n"] == 2


def test_a_starved_barrier_is_said_or_proceeds(compiled: Compile) -> None:
    def barrier(on_missing: Any) -> StateGraph:
        b = graph("rabc", "^r")
        b.add_conditional_edges("r", lambda s: "a", ["a", "b"])
        return b.add_edge(["a", "b"], "c", on_missing=on_missing)
    with pytest.raises(BarrierStarved, match="'c' waits for b"):
        compiled(barrier("error")).invoke({}, thread_id="error")
    assert compiled(barrier("proceed")).invoke({}, thread_id="proceed")["log"] == ["r", "a", "c"]


def looping(stop: int, **options: Any) -> StateGraph:
    b = StateGraph(State).add_node("a", says("a", n=1), **options).add_node("z", says("z")).add_edge(START, "a")
    return b.add_conditional_edges("a", lambda s: "a" if s["n"] < stop else END, ["a", END])


def test_a_run_at_its_cap_names_the_cycle_and_can_go_on(compiled: Compile) -> None:
    app = compiled(looping(20), max_steps=5)
    with pytest.raises(GraphRecursionError, match=r"max_steps = 5 before node 'a', on the cycle a -> a \(visits: a 5x\)"):
        app.invoke({"n": 0}, T)
    assert app.get_state(T).metadata["status"] == "capped"
    with pytest.raises(ThreadBusy, match="capped"):
        app.invoke({"n": 0}, T)
    assert app.invoke(None, T, max_steps=100)["n"] == 20


def test_a_node_at_its_cap_parks_or_goes_elsewhere(compiled: Compile) -> None:
    app = compiled(looping(5, max_visits=3))
    with pytest.raises(GraphRecursionError, match="max_visits = 3"):
        app.invoke({"n": 0}, T)
    assert app.invoke(None, T)["n"] == 5
    assert compiled(looping(9, max_visits=3, on_cap="z")).invoke({"n": 0}, thread_id="u")["log"] == ["a", "a", "a", "z"]


def test_a_failed_attempt_is_tried_again(compiled: Compile) -> None:
    calls: list[int] = []

    def flaky(s: State) -> dict[str, Any]:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("no")
        return {"log": ["ok"]}
    app = compiled(graph({"f": flaky}, "^f", retry_policy=RetryPolicy(max_attempts=5, initial_interval=0.001)))
    assert app.invoke({}, T)["log"] == ["ok"]
    failed = [e for _, e in app.history.events(StreamId("thread:t")) if isinstance(e, TaskFailed)]
    assert [(e.attempt, e.kind, e.retry_at is not None) for e in failed] == [(1, "ConnectionError", True), (2, "ConnectionError", True)]


def test_a_node_that_takes_too_long_fails_and_its_late_result_is_a_fact(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    release, recorded = threading.Event(), threading.Event()
    app = compiled(graph({"slow": lambda s: (release.wait(10), {"log": ["late"]})[1]}, timeout=0.05).add_edge(START, "slow"))
    with pytest.raises(TimeoutError, match="node 'slow' took longer than its timeout of 0.05 s"):
        app.invoke({}, T)
    append = app.store.append

    def appended(batch: Any) -> Any:
        done = append(batch)
        recorded.set()
        return done
    monkeypatch.setattr(app.store, "append", appended)
    release.set()
    assert recorded.wait(10)
    refused = [e for _, e in app.history.events(StreamId("thread:t")) if isinstance(e, TaskRefused)]
    assert len(refused) == 1
    assert app.get_state(T).values["log"] == []


def test_a_late_result_is_refused_while_its_run_goes_on(compiled: Compile) -> None:
    first, late, go = [True], threading.Event(), threading.Event()

    def slow(s: State) -> dict[str, Any]:
        if first and first.pop():
            late.wait(10)
            go.set()
            return {"log": ["late"]}
        late.set()
        go.wait(10)
        return {"log": ["in time"]}
    b = graph({"slow": slow, "z": says("z")}, timeout=0.2, retry_policy=RetryPolicy(max_attempts=9, retry_on=TimeoutError, initial_interval=0.001))
    app = compiled(b.add_edge(START, "slow").add_edge("slow", "z"))
    assert app.invoke({}, T)["log"] == ["in time", "z"]
    assert any(isinstance(e, TaskRefused) for _, e in app.history.events(StreamId("thread:t")))


def test_an_async_node_that_takes_too_long_fails(compiled: Compile) -> None:
    async def slow(s: State) -> None:
        await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="slow"):
        compiled(graph({"slow": slow}, timeout=0.05).add_edge(START, "slow")).invoke({}, T)


def test_one_failing_branch_lets_the_others_finish_and_the_run_goes_on_later(compiled: Compile) -> None:
    broken, failed, ran = [True], threading.Event(), []

    def bad(s: State) -> dict[str, Any]:
        ran.append("bad")
        if broken[0]:
            failed.set()
            raise ValueError("broken")
        return {"log": ["bad ok"]}

    def other(s: State) -> dict[str, Any]:
        ran.append("other")
        failed.wait(10)
        return {"log": ["other"]}
    b = graph({"bad": bad, "other": other, "j": says("j")})
    for n in ("bad", "other"):
        b.add_edge(START, n).add_edge(n, "j")
    app = compiled(b)
    with pytest.raises(ValueError, match="broken"):
        app.invoke({}, T)
    assert app.get_state(T).values["log"] == ["other"]
    with pytest.raises(ThreadBusy, match="failed"):
        app.invoke({}, T)
    broken[0] = False
    assert app.invoke(None, T)["log"] == ["bad ok", "other", "j"]
    assert sorted(ran) == ["bad", "bad", "other"]
    with pytest.raises(RunEnded):
        app.invoke(None, T)


def test_a_failure_may_be_a_value_that_joins_see(compiled: Compile) -> None:
    def bad(s: State) -> None:
        raise ValueError("x")
    b = graph({"o": says("o"), "j": lambda s, ctx: {"log": [f"{f.node} {f.kind} {f.message}" for f in ctx.failures]}}, "^o oj")
    b.add_node("bad", bad, on_error="continue").add_edge(START, "bad").add_edge("bad", "j")
    assert compiled(b).invoke({}, T)["log"] == ["o", "bad ValueError x"]


def test_parallel_writes_conflict_and_an_edit_settles_them(compiled: Compile) -> None:
    app = compiled(graph({n: says(n, x=n) for n in "ab"}, "^a ^b"))
    with pytest.raises(ConflictingUpdates, match="'x' has no reducer and was written by a and b"):
        app.invoke({}, T)
    assert app.get_state(T).metadata["conflicts"] == {"x": ["a", "b"]}
    app.update_state(T, {"x": "mine"})
    assert app.invoke(None, T)["x"] == "mine"


def test_async_and_sync_nodes_and_callers_mix(compiled: Compile) -> None:
    async def an(s: State) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"log": ["async"]}
    app = compiled(graph({"a": an, "b": says("sync")}, "^a ^b"))

    async def both() -> tuple[Any, list[Any]]:
        return await app.ainvoke({}, thread_id="one"), [c async for c in app.astream({}, thread_id="two")]
    out, chunks = asyncio.run(both())
    assert out["log"] == ["async", "sync"]
    assert sorted(next(iter(c)) for c in chunks) == ["a", "b"]
    assert app.invoke({}, thread_id="three")["log"] == ["async", "sync"]


def test_many_threads_run_many_runs(compiled: Compile) -> None:
    app = compiled(graph("abcde", "^a ab bc cd de"))
    with ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda i: app.invoke({}, thread_id=f"t{i}"), range(40)))
    assert all(o["log"] == list("abcde") for o in outs)


@pytest.mark.parametrize("durability", ["sync", "pipelined"])
def test_steps_are_written_ahead_but_nothing_is_seen_before_it_is_durable(compiled: Compile, durability: Any) -> None:
    b = graph({"a": says("a", n=1), "z": says("z")}, "^a")
    b.add_conditional_edges("a", lambda s: "a" if s["n"] < 60 else "z", ["a", "z"])
    app = compiled(b, durability=durability)
    for i, _ in enumerate(app.stream({"n": 0}, T), 1):
        assert app.get_state(T).values["n"] >= min(i, 60)
    assert app.get_state(T).values["log"][-1] == "z"


def test_an_error_of_another_process_is_told_by_what_the_log_holds(compiled: Compile) -> None:
    def bad(s: State) -> None:
        raise ValueError("x")
    app = compiled(graph({"bad": bad, "p": says("p")}, "^p"))
    app.invoke({}, thread_id="fine")
    failing = graph({"bad": bad}).add_edge(START, "bad").compile(app.store)
    with pytest.raises(ValueError, match="x"):
        failing.invoke({}, T)
    assert failing.get_state(T).tasks[0].error == "ValueError: x"
    assert issubclass(RunFailed, Exception)
