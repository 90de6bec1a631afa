"""The graphs whose runs the golden logs hold. They stay as they are: a stored run replays on them, or shows where it does not."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from decimal import Decimal
from operator import add
from typing import Annotated, Any, Literal, TypedDict

from ledgergraph.consumers import END, START, NodeContext, RetryPolicy, Send, StateGraph

DYING = "GOLDEN_DIES"
"""Environment variable: the node `mortal` ends its process."""
HELD, LET_GO = threading.Event(), threading.Event()
"""The node `held` runs; it may end. Set before a replay."""


class Trip(TypedDict, total=False):
    """What most of them work on."""

    mode: str
    round: int
    price: Decimal
    notes: Annotated[list[str], add]
    answer: dict[str, Any]
    ids: Annotated[list[str], add]


def note(text: str) -> Callable[[Trip], dict[str, Any]]:
    return lambda state: {"notes": [text]}


# paths: branches of unequal length, a loop, Sends, a retry after a failed effect, a question


def flaky(state: Trip, ctx: NodeContext) -> dict[str, Any]:
    def call(key: str) -> Decimal:
        if ctx.attempt == 1:
            raise ConnectionError("the service is away")
        return Decimal("10.50")
    drawn = ctx.uuid()
    price = ctx.effect("price", call, request={"round": state["round"]}, on_unknown="retry")
    return {"price": price + state["round"], "ids": [str(drawn)]}


def after_join(state: Trip) -> Literal["begin", "spread"]:
    return "begin" if state["round"] < 2 else "spread"


def spread(state: Trip) -> list[Send]:
    return [Send("item", {"n": n}) for n in range(2)]


def item(state: dict[str, Any]) -> dict[str, Any]:
    return {"notes": [f"item {state['n']}"]}


def ask(state: Trip, ctx: NodeContext) -> dict[str, Any]:
    return {"answer": ctx.interrupt({"price": state["price"]})}


def paths(version: str = "1") -> StateGraph:
    b = StateGraph(Trip, name="paths", version=version)
    b.add_node("begin", lambda state: {"round": state.get("round", 0) + 1}).add_node("short", note("short")).add_node("long", note("long"))
    b.add_node("longer", note("longer")).add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    b.add_node("join", note("join")).add_node("spread", note("spread")).add_node("item", item).add_node("ask", ask)
    b.add_edge(START, "begin").add_edge("long", "longer")
    for name in ("short", "long", "flaky"):
        b.add_edge("begin", name)
    for name in ("short", "longer", "flaky"):
        b.add_edge(name, "join")
    b.add_conditional_edges("join", after_join)
    b.add_conditional_edges("spread", spread, ["item"])
    return b.add_edge("item", "ask").add_edge("ask", END)


# caps: a cap that redirects, a barrier that goes on without a source, a cap that stops, a node that fails, dies, or comes too late


def first(state: Trip) -> Literal["turn", "fails", "mortal", "held", "left"]:
    modes: dict[str, Literal["turn", "fails", "mortal", "held", "left"]] = {
        "turns": "turn", "spins": "turn", "fails": "fails", "dies": "mortal", "late": "held"}
    return modes.get(state["mode"], "left")


def turned(state: Trip) -> Literal["turn", "spin"]:
    return "turn" if state["mode"] == "turns" else "spin"


def fails(state: Trip) -> dict[str, Any]:
    raise LookupError("there is nothing")


def mortal(state: Trip) -> dict[str, Any]:
    if os.environ.get(DYING):
        os._exit(1)
    return {"notes": ["it lived"]}


def held(state: Trip) -> dict[str, Any]:
    HELD.set()
    LET_GO.wait()
    return {"notes": ["too late"]}


def caps() -> StateGraph:
    b = StateGraph(Trip, name="caps")
    b.add_node("turn", note("turn"), max_visits=2, on_cap="given_up").add_node("given_up", note("given up"))
    b.add_node("spin", note("spin")).add_node("fails", fails).add_node("mortal", mortal).add_node("held", held)
    b.add_node("left", note("left")).add_node("right", note("right")).add_node("both", note("both"))
    b.add_conditional_edges(START, first)
    b.add_conditional_edges("turn", turned)
    b.add_edge("spin", "spin").add_edge("right", END)
    return b.add_edge(["left", "right"], "both", on_missing="proceed")


# changed: the same graph, of which one node's code is another one than that which ran


def size(state: Trip) -> dict[str, Any]:
    return {"price": state["price"] * 3}


def changed(action: Callable[[Trip], dict[str, Any]] = size) -> StateGraph:
    b = StateGraph(Trip, name="changed")
    b.add_node("look", note("looked")).add_node("size", action).add_node("tell", lambda state: {"notes": [f"at {state['price']}"]})
    return b.add_edge(START, "look").add_edge("look", "size").add_edge("size", "tell").add_edge("tell", END)


GRAPHS: dict[str, Callable[[], StateGraph]] = {"paths": paths, "caps": caps, "changed": changed}
NEWER = "2"
"""Version of `paths` that adopted a run."""
