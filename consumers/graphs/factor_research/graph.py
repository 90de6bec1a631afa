"""Factor research: from prices to a signal that a person approves.

    plan -> momentum, low_volatility, drawdown, short_reversal, long_reversal -> validate
            momentum, low_volatility -> momentum_over_volatility               -> validate
    validate -> no_signal | widen -> the factors again | construct
    construct -> risk -> decide -> narrate -> approve -> publish | reject
"""
from __future__ import annotations

from ledgergraph.consumers.command import END, START
from ledgergraph.consumers.graph import StateGraph
from ledgergraph.consumers.graphs.factor_research import nodes
from ledgergraph.consumers.graphs.factor_research.nodes import WIDEN_MAX, Research

NAME = "factor-research"
BASE = nodes.FACTORS[:-1]
"""Factors out of prices alone; the last one needs two of them."""


def build() -> StateGraph:
    """The graph, not compiled."""
    b = StateGraph(Research, name=NAME, version="1")
    b.add_node("plan", nodes.plan)
    for name in BASE:
        b.add_node(name, getattr(nodes, name), writes=["panels"])
        b.add_edge("plan", name)
        b.add_edge("widen", name)
        b.add_edge(name, "validate")
    b.add_node("momentum_over_volatility", nodes.momentum_over_volatility, writes=["panels"])
    b.add_edge("momentum", "momentum_over_volatility")
    b.add_edge("low_volatility", "momentum_over_volatility")
    b.add_edge("momentum_over_volatility", "validate")
    b.add_node("validate", nodes.validate)
    b.add_node("widen", nodes.widen, max_visits=WIDEN_MAX)
    b.add_node("no_signal", nodes.no_signal)
    for name, node in (("construct", nodes.construct), ("risk", nodes.measure), ("decide", nodes.decide),
                       ("narrate", nodes.narrate), ("approve", nodes.approve), ("publish", nodes.publish),
                       ("reject", nodes.reject)):
        b.add_node(name, node)
    b.add_edge(START, "plan")
    b.add_conditional_edges("validate", nodes.after_validation)
    for u, v in (("construct", "risk"), ("risk", "decide"), ("decide", "narrate"), ("narrate", "approve")):
        b.add_edge(u, v)
    b.add_conditional_edges("approve", nodes.after_approval)
    for last in ("no_signal", "publish", "reject"):
        b.add_edge(last, END)
    return b


graph = build()
