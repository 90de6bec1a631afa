"""The program that is killed: a run with parallel branches, a loop, Sends, retries, and effects that leave a line each.

    python killed.py LOG SIDE_FILE DURABILITY

Starts the run or goes on with it. Tells each version of the stream on standard output as soon as it is stored.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from operator import add
from typing import Annotated, Any, Literal, TypedDict

from ledgergraph.consumers import START, NodeContext, RetryPolicy, Send, StateGraph
from ledgergraph.consumers.app import App
from ledgergraph.consumers.binding import Durability
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import Append, EventStore, Outcome
from ledgergraph.schemas.errors import RunFailed

THREAD = "killed"
ROUNDS = 4
DEAD = 9
"""Exit code: a task lost its workers too often, and the run stopped; going on tries it again."""


class Work(TypedDict):
    side: str
    """The file that effects write to."""
    round: int
    done: Annotated[list[str], add]
    ids: Annotated[list[str], add]
    """Drawn by the context: other ones in every run."""


def call(state: Work, ctx: NodeContext, name: str) -> str:
    """An effect that leaves a line with its key and attempt."""
    def make(key: str) -> str:
        line = f"{key} {ctx.attempt}\n".encode()
        file = os.open(state["side"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            assert os.write(file, line) == len(line)
        finally:
            os.close(file)
        return f"{name} {state['round']}"
    result: str = ctx.effect(name, make, request={"name": name, "round": state["round"]}, on_unknown="retry")
    return result


def worker(name: str) -> Callable[[Work, NodeContext], dict[str, Any]]:
    def node(state: Work, ctx: NodeContext) -> dict[str, Any]:
        return {"done": [call(state, ctx, f"{name} first"), call(state, ctx, f"{name} second")], "ids": [str(ctx.uuid())]}
    return node


def flaky(state: Work, ctx: NodeContext) -> dict[str, Any]:
    """Fails once, after its effect."""
    told = call(state, ctx, "flaky")
    if ctx.attempt == 1:
        raise ConnectionError("the first attempt fails")
    return {"done": [told]}


async def waits(state: Work) -> dict[str, Any]:
    return {"done": [f"async {state['round']}"]}


def join(state: Work) -> dict[str, Any]:
    return {"round": state["round"] + 1, "done": [f"join {state['round']}"]}


def spread(state: Work) -> list[Send]:
    return [Send("item", {"n": n, "round": state["round"], "side": state["side"]}) for n in range(3)]


def item(state: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
    return {"done": [call(Work(side=state["side"], round=state["round"], done=[], ids=[]), ctx, f"item {state['n']}")]}


def collect(state: Work) -> dict[str, Any]:
    return {"done": [f"collect {len(state['done'])}"]}


def again(state: Work) -> Literal["plan", "__end__"]:
    return "plan" if state["round"] < ROUNDS else "__end__"


def build() -> StateGraph:
    b = StateGraph(Work, name="killed", version="1")
    b.add_node("plan", lambda state: {"done": [f"plan {state['round']}"]})
    b.add_node("short", worker("short")).add_node("long", worker("long")).add_node("longer", worker("longer"))
    b.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    b.add_node("waits", waits).add_node("join", join).add_node("item", item).add_node("collect", collect)
    b.add_edge(START, "plan").add_edge("long", "longer")
    for name in ("short", "long", "flaky", "waits"):
        b.add_edge("plan", name)
    for name in ("short", "longer", "flaky", "waits"):
        b.add_edge(name, "join")
    b.add_conditional_edges("join", spread, ["item"])
    b.add_edge("item", "collect")
    b.add_conditional_edges("collect", again)
    return b


def telling(store: EventStore) -> EventStore:
    """The store, which tells of every append that it made."""
    append = store.append

    def told(batch: Sequence[Append]) -> list[Outcome]:
        outcomes = append(batch)
        for a in batch:
            os.write(1, f"{a.events[-1].version}\n".encode())
        return outcomes
    store.append = told  # type: ignore[method-assign]
    return store


def go(app: App, side: str) -> dict[str, Any]:
    """The state at the end, from wherever the log stands."""
    status = app.get_state(thread_id=THREAD).metadata.get("status")
    if status is None:
        return app.invoke({"side": side, "round": 0}, thread_id=THREAD)
    return app.get_state(thread_id=THREAD).values if status == "completed" else app.invoke(None, thread_id=THREAD)


def main(log: str, side: str, durability: Durability) -> int:
    try:
        go(build().compile(telling(open_store(log)), durability=durability), side)
    except RunFailed as e:
        sys.stderr.write(f"{e}\n")
        return DEAD
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "pipelined" if sys.argv[3] == "pipelined" else "sync"))
