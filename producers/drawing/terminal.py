"""A graph in the terminal: a line for each node, layer by layer, and where it goes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from ledgergraph.producers.drawing.layout import Edge, lay_out, shown
from ledgergraph.producers.drawing.marks import STYLE, NodeMark
from ledgergraph.schemas.graph import END, START, GraphSpec

NAME_MAX = 28
"""Columns that a name takes before what follows moves right."""


def terminal(spec: GraphSpec, marks: Mapping[str, NodeMark] | None = None) -> Text:
    """Nodes of one layer can run beside each other: they hang on one line. `->` always goes there, `?` may (a route), `=>` is a
    barrier; a target with ↺ begins the next round of a loop."""
    layout = lay_out(spec)
    out: dict[str, list[Edge]] = {}
    for e in layout.edges:
        out.setdefault(e.source, []).append(e)
    width = min(NAME_MAX, max((len(n) for n in spec.names), default=5))
    lines = [_head(spec)]
    for layer in layout.layers:
        lines.append(Text("  │", style="dim")) if len(lines) > 1 else None
        for i, n in enumerate(layer):
            lines.append(_line(n, _stem(i, len(layer)), width, out.get(n, ()), (marks or {}).get(n)))
    return Text("\n").join(lines)


def _head(spec: GraphSpec) -> Text:
    clock = "logical time" if spec.clock == "logical" else f"supersteps ({spec.clock_reason or 'asked for'})"
    return Text.assemble((spec.name, "bold"), f"  {len(spec.nodes)} nodes, {clock}, fingerprint {spec.fingerprint[:12]}")


def _stem(i: int, of: int) -> str:
    if of == 1:
        return "  "
    return "  ├─" if i < of - 1 else "  └─"


def _line(name: str, stem: str, width: int, edges: Sequence[Edge], mark: NodeMark | None) -> Text:
    symbol = "◇" if any(e.kind == "route" for e in edges) else "●"
    symbol = "○" if name in (START, END) else symbol
    text = Text.assemble((stem, "dim"), (f"{symbol} ", STYLE[mark.status] if mark else ""), (shown(name).ljust(width + 4 - len(stem)), "bold"))
    if mark is not None:
        text.append(f"  {mark.text:<14}", style=STYLE[mark.status])
    for kind, arrow in (("edge", "->"), ("barrier", "=>"), ("route", "?")):
        to = [shown(e.target) + (" ↺" if e.begins_round else "") for e in edges if e.kind == kind]
        if to:
            text.append(f"  {arrow} ", style="cyan")
            text.append((" | " if kind == "route" else ", ").join(to))
    return text
