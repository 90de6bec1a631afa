"""The graphs that both sides run: the same nodes, edges and values, written once against either API."""
from __future__ import annotations

import time
from operator import add
from typing import Annotated, Any, TypedDict


class State(TypedDict):
    n: Annotated[int, add]
    items: Annotated[list[Any], add]


def loop(api: Any, steps: int, item: Any = 1) -> Any:
    """One node, that many times; a list grows by an item a step."""
    b = api.StateGraph(State)
    b.add_node("step", lambda s: {"n": 1, "items": [item]})
    b.add_edge(api.START, "step")
    b.add_conditional_edges("step", lambda s: "step" if s["n"] < steps else api.END, {"step": "step", api.END: api.END})
    return b


def chain(api: Any, nodes: int) -> Any:
    """That many nodes in a row."""
    b = api.StateGraph(State)
    for i in range(nodes):
        b.add_node(f"n{i}", lambda s: {"n": 1})
        b.add_edge(f"n{i - 1}" if i else api.START, f"n{i}")
    return b


def fan_out(api: Any, width: int) -> Any:
    """One node, that many beside each other, a strict barrier, one node."""
    b = api.StateGraph(State)
    b.add_node("plan", lambda s: {"n": 1})
    b.add_node("join", lambda s: {"n": 1})
    b.add_edge(api.START, "plan")
    for i in range(width):
        b.add_node(f"n{i}", lambda s: {"n": 1, "items": [1]})
        b.add_edge("plan", f"n{i}")
    b.add_edge([f"n{i}" for i in range(width)], "join")
    return b


def diamond(api: Any, second: float) -> Any:
    """A branch of three nodes of one `second` each beside a branch of one node of three: supersteps take five."""
    def nap(seconds: float) -> Any:
        return lambda s: (time.sleep(seconds), {"n": 1})[1]
    b = api.StateGraph(State)
    for name, seconds in {"a": 1, "b": 1, "c": 1, "slow": 3, "join": 0}.items():
        b.add_node(name, nap(seconds * second))
    for u, v in ((api.START, "a"), ("a", "b"), ("b", "c"), (api.START, "slow"), ("c", "join"), ("slow", "join")):
        b.add_edge(u, v)
    return b
