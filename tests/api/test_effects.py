"""Effects: made once, whatever dies in between."""
from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledgergraph.consumers import RetryPolicy
from ledgergraph.consumers.replay import verify_run
from ledgergraph.schemas.errors import EffectMismatch
from ledgergraph.schemas.events.effect import EffectErred, EffectIntended, EffectSucceeded
from ledgergraph.schemas.ids import RunId, StreamId
from tests.api.conftest import Compile, State, graph, says

T = {"configurable": {"thread_id": "t"}}
AGAIN = RetryPolicy(max_attempts=3, initial_interval=0.001)


class Desk:
    """A child process over one log, killed and started again."""

    def __init__(self, url: str, side: Path) -> None:
        self.url, self.side = url, side
        side.touch()

    def start(self, where: str, on_unknown: str, what: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, str(Path(__file__).with_name("child.py")), self.url, str(self.side), where, on_unknown, what],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def kill_at(self, where: str, on_unknown: str) -> None:
        child = self.start(where, on_unknown, "start")
        assert child.stdout
        assert child.stdout.readline() == "HERE\n"
        assert "A live worker holds it" in self.say(on_unknown, "resume")
        assert "ThreadBusy" in self.say(on_unknown, "start")
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()

    def say(self, on_unknown: str, what: str) -> str:
        child = self.start("-", on_unknown, what)
        return child.communicate(timeout=60)[0].strip()

    @property
    def calls(self) -> list[str]:
        return self.side.read_text().splitlines()


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/log.db"
    return Desk(url, tmp_path / "side")


def test_a_recorded_result_is_not_asked_for_again(desk: Desk) -> None:
    desk.kill_at("node", "ask")
    assert desk.say("ask", "resume") == "['a', 'e1', 'z']"
    assert len(desk.calls) == 1


def test_an_unknown_effect_is_called_again_under_its_key(desk: Desk) -> None:
    desk.kill_at("call", "retry")
    assert desk.say("retry", "resume") == "['a', 'e1', 'z']"
    first, second = desk.calls
    assert first == second  # the key, and an id that the context gave


def test_an_unknown_effect_parks_until_a_person_says(desk: Desk) -> None:
    desk.kill_at("call", "ask")
    assert "Did effect 'buy' happen? Its intent is on the log, its outcome is not." in desk.say("ask", "resume")
    assert "waiting" in desk.say("ask", "start")
    assert desk.say("ask", "answer") == "['a', 'e7', 'z']"
    assert len(desk.calls) == 1


def test_a_later_attempt_gets_what_the_first_one_did(compiled: Compile) -> None:
    calls: list[str] = []
    seen: list[Any] = []

    def node(s: State, ctx: Any) -> dict[str, Any]:
        got = ctx.effect("buy", lambda key: calls.append(key) or {"id": key}, request={"q": 1})
        seen.append((got, ctx.now(), ctx.random(), ctx.uuid()))
        if len(seen) == 1:
            raise ConnectionError("after the effect")
        return {"log": [got["id"]]}
    app = compiled(graph({"e": node}, "^e", retry_policy=AGAIN))
    assert app.invoke({}, T)["log"] == calls
    assert seen[0] == seen[1]
    assert len(calls) == 1


def test_a_call_that_raised_is_made_again_under_the_same_key(compiled: Compile) -> None:
    calls: list[str] = []

    def call(key: str) -> int:
        calls.append(key)
        if len(calls) == 1:
            raise ConnectionError("no")
        return 5
    app = compiled(graph({"e": lambda s, ctx: {"n": ctx.effect("x", call)}}, "^e", retry_policy=AGAIN))
    assert app.invoke({}, T)["n"] == 5
    assert len(calls) == 2
    assert calls[0] == calls[1]
    kinds = [type(e) for _, e in app.history.events(StreamId("thread:t")) if type(e).__module__.endswith("effect")]
    assert kinds == [EffectIntended, EffectErred, EffectIntended, EffectSucceeded]


def test_another_request_under_the_same_key_is_an_error(compiled: Compile) -> None:
    asked: list[int] = []

    def node(s: State, ctx: Any) -> None:
        asked.append(1)
        ctx.effect("buy", lambda: 1, request=len(asked))
        raise ConnectionError("again")
    with pytest.raises(EffectMismatch, match="effect 'buy'"):
        compiled(graph({"e": node}, "^e", retry_policy=AGAIN)).invoke({}, T)


def test_effects_of_an_async_node_run_beside_each_other(compiled: Compile) -> None:
    async def node(s: State, ctx: Any) -> dict[str, Any]:
        met = asyncio.Barrier(3)

        async def call(i: int) -> int:
            await met.wait()
            return i
        return {"n": sum(await asyncio.gather(*(ctx.aeffect(f"r{i}", lambda i=i: call(i)) for i in range(3))))}
    assert compiled(graph({"e": node}, "^e")).invoke({}, T)["n"] == 3


def test_a_large_result_is_kept_beside_the_events(compiled: Compile) -> None:
    big = "x" * 2_000_000
    app = compiled(graph({"e": lambda s, ctx: {"x": ctx.effect("read", lambda: big)}, "z": says("z")}, "^e ez"))
    assert app.invoke({}, T)["x"] == big
    assert max(len(e.data) for e in app.store.read_stream(StreamId("thread:t"))) < 10_000
    assert app.get_state(T).values["x"] == big


def test_a_replay_takes_effects_from_the_record_and_names_code_that_differs(compiled: Compile) -> None:
    calls: list[int] = []

    def node(s: State, ctx: Any) -> dict[str, Any]:
        calls.append(ctx.effect("read", lambda: 5, on_unknown="retry"))
        return {"log": [f"{ctx.now()} {ctx.effect('more', lambda: 6)}"]}
    app = compiled(graph({"e": node, "z": says("z")}, "^e ez"))
    app.invoke({}, T)
    run = RunId(app.get_state(T).metadata["run"])
    found = verify_run(app.history, app.binding, run)
    assert found.ok
    assert (found.nodes, found.effects, found.fields) == (2, 2, 2)
    changed = graph({"e": node, "z": lambda s: {"log": ["another"]}}, "^e ez").compile(app.store)
    found = verify_run(app.history, changed.binding, run)
    (first,) = found.differences
    assert (first.node, first.field, first.type) == ("z", "log", "task.completed")
    assert first.recorded_code != first.loaded_code
    assert "another" in first.replayed
