"""A small graph that the command line is tested with: two checks in parallel, a question, a way back, and ways to go wrong."""
from __future__ import annotations

from decimal import Decimal
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from ledgergraph.consumers import END, START, NodeContext, StateGraph


class Trade(TypedDict, total=False):
    ticker: str
    amount: Decimal
    checks: Annotated[list[str], add]
    mode: Literal["", "fails", "spins", "holds"]
    gate: str
    """A file: `fails` until it is there; `holds` until it can be read (a named pipe)."""
    answer: dict[str, Any]
    status: str


def limits(state: Trade) -> dict[str, Any]:
    return {"checks": [f"{state['ticker']} within limits"]}


def sanctions(state: Trade, ctx: NodeContext) -> dict[str, Any]:
    if state.get("mode") == "holds":
        Path(state["gate"]).read_text()
    if state.get("mode") == "fails" and not Path(state["gate"]).exists():
        raise LookupError(f"the list {state['gate']!r} is not there")
    hits = ctx.effect("screen", lambda: 0, request={"ticker": state["ticker"]}, on_unknown="retry")
    return {"checks": [f"{hits} hits"]}


def approve(state: Trade, ctx: NodeContext) -> dict[str, Any]:
    if state.get("mode") == "spins":
        return {"answer": {"again": True}}
    return {"answer": ctx.interrupt({"question": f"Buy {state['ticker']}?", "checks": state["checks"]})}


def after(state: Trade) -> Literal["limits", "settle"]:
    return "limits" if state["answer"].get("again") else "settle"


def settle(state: Trade) -> dict[str, Any]:
    return {"status": "bought" if state["answer"].get("yes") else "refused"}


def build(version: str = "1") -> StateGraph:
    b = StateGraph(Trade, name="desk", version=version)
    for node in (limits, sanctions, approve, settle):
        b.add_node(node)
    b.add_edge(START, "limits").add_edge(START, "sanctions")
    b.add_edge("limits", "approve").add_edge("sanctions", "approve")
    b.add_conditional_edges("approve", after)
    return b.add_edge("settle", END)


graph = build()
newer = build("2")
unreachable = build().add_node("forgotten", limits)
nothing = 3
