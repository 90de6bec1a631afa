"""The graphs that both sides run: the same nodes, edges and values, written once against either API."""
from __future__ import annotations

import random
import time
from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict


class State(TypedDict):
    n: Annotated[int, add]
    items: Annotated[list[Any], add]


def one(step: int) -> Any:
    return 1


def finding(step: int) -> str:
    """A line or two (200 characters) that a database cannot compress away."""
    return random.Random(step).randbytes(100).hex()


def loop(api: Any, steps: int, item: Callable[[int], Any] = one, schema: Any = State) -> Any:
    """One node, that many times; a list grows by an item a step."""
    b = api.StateGraph(schema)
    b.add_node("step", lambda s: {"n": 1, "items": [item(s["n"])]})
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
    b = api.StateGraph(State)
    for name, units in {"a": 1, "b": 1, "c": 1, "slow": 3, "join": 0}.items():
        b.add_node(name, napping(units * second))
    for u, v in ((api.START, "a"), ("a", "b"), ("b", "c"), (api.START, "slow")):
        b.add_edge(u, v)
    b.add_edge(["c", "slow"], "join")  # a barrier: with two edges supersteps fire it twice
    return b


def napping(length_s: float) -> Callable[[Any], dict[str, int]]:
    def nap(s: Any) -> dict[str, int]:
        time.sleep(length_s)
        return {"n": 1}
    return nap
