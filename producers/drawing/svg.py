"""A graph as an SVG picture that stands alone: no script, no font, no address outside of it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from ledgergraph.producers.drawing.layout import Edge, Layout, lay_out, shown
from ledgergraph.producers.drawing.marks import COLOUR, NodeMark
from ledgergraph.schemas.graph import END, START, GraphSpec

CHAR, LINE = 7.4, 38.0
"""Width of a character and height of a box, pixels."""
GAP_X, GAP_Y, EDGE = 28.0, 46.0, 24.0
NAME_MAX = 34
STYLE = """
  svg { font: 13px system-ui, sans-serif; background: #ffffff; color: #111827 }
  .box { fill: #f8fafc; stroke: #64748b; stroke-width: 1.4 } .end { fill: #e2e8f0 } text { fill: #111827 }
  .edge { fill: none; stroke: #64748b; stroke-width: 1.4 } .route { stroke-dasharray: 5 4 } .barrier { stroke-width: 2.8 }
  .round { stroke: #7c3aed } .note { fill: #475569; font-size: 11px } .tip { fill: #64748b }
  @media (prefers-color-scheme: dark) {
    svg { background: #0f172a } text { fill: #e5e7eb } .box { fill: #1e293b; stroke: #94a3b8 } .end { fill: #334155 }
    .edge { stroke: #94a3b8 } .round { stroke: #c4b5fd } .note { fill: #cbd5e1 } .tip { fill: #94a3b8 }
  }
"""


class Box(NamedTuple):
    """Centre and width of a node."""

    x: float
    y: float
    width: float


def svg(spec: GraphSpec, marks: Mapping[str, NodeMark] | None = None) -> str:
    """Top to bottom. Routes are dashed, barriers thick; edges that begin a round go up at the right side."""
    layout = lay_out(spec, bending=True)
    boxes, width = _placed(layout, marks)
    backs = [e for e in layout.edges if e.begins_round]
    right = width + 18.0 * len(backs) + 2 * EDGE
    height = max(b.y for b in boxes.values()) + LINE + 3 * EDGE
    lanes = {e: width + EDGE + 18.0 * i for i, e in enumerate(backs)}
    parts = [_back(e, boxes, lanes[e]) if e in lanes else _edge(e, [boxes[n] for n in (e.source, *layout.bends.get(e, ()), e.target)])
             for e in layout.edges]
    parts += [_node(n, boxes[n], (marks or {}).get(n)) for n in boxes if n in (START, END) or n in spec.node]
    title = escape(f"{spec.name}: {len(spec.nodes)} nodes, {spec.clock} time")
    legend = "solid: always, dashed: a route may, thick: barrier, purple: begins the next round"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" width="{right:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {right:.0f} {height:.0f}"><title>{title}</title><style>{STYLE}</style>'
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            '<path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>'
            + "".join(parts) + f'<text class="note" x="{EDGE:.0f}" y="{height - EDGE:.0f}">{legend}</text></svg>')


def _short(name: str) -> str:
    text = shown(name)
    return text if len(text) <= NAME_MAX else text[:NAME_MAX - 1] + "…"


def _placed(layout: Layout, marks: Mapping[str, NodeMark] | None) -> tuple[dict[str, Box], float]:
    """The boxes, and how wide all of it is."""
    def wide(n: str) -> float:
        if n.startswith("\0"):
            return 8.0
        mark = (marks or {}).get(n)
        return max(len(_short(n)), len(mark.text) if mark else 0, 5) * CHAR + 24
    widths = [sum(wide(n) for n in layer) + GAP_X * (len(layer) - 1) for layer in layout.layers]
    total = max(*widths, 470.0) + 2 * EDGE
    boxes: dict[str, Box] = {}
    for i, layer in enumerate(layout.layers):
        x = (total - widths[i]) / 2
        for n in layer:
            boxes[n] = Box(x + wide(n) / 2, EDGE + LINE / 2 + i * (LINE + GAP_Y), wide(n))
            x += wide(n) + GAP_X
    return boxes, total


def _node(name: str, b: Box, mark: NodeMark | None) -> str:
    end = " end" if name in (START, END) else ""
    stroke = f' style="stroke:{COLOUR[mark.status]};stroke-width:3"' if mark else ""
    x, y = b.x - b.width / 2, b.y - LINE / 2
    up = 4 if mark is None else -3
    text = f'<text x="{b.x:.1f}" y="{b.y + up:.1f}" text-anchor="middle">{escape(_short(name))}</text>'
    if mark is not None:
        text += f'<text class="note" x="{b.x:.1f}" y="{b.y + 13:.1f}" text-anchor="middle">{escape(mark.text)}</text>'
    radius = LINE / 2 if end else 7
    return (f'<g><title>{escape(shown(name))}</title><rect class="box{end}" x="{x:.1f}" y="{y:.1f}" width="{b.width:.1f}" '
            f'height="{LINE:.0f}" rx="{radius:.0f}"{stroke}/>{text}</g>')


def _edge(e: Edge, passed: Sequence[Box]) -> str:
    """From box to box, through the bends between them."""
    path = ""
    for i, (a, b) in enumerate(pairwise(passed)):
        y1, y2 = a.y + LINE / 2, b.y - LINE / 2
        bend = (y2 - y1) / 2
        start = f"M{a.x:.1f} {y1:.1f}" if i == 0 else f"L{a.x:.1f} {y1:.1f}"
        path += f"{start}C{a.x:.1f} {y1 + bend:.1f} {b.x:.1f} {y2 - bend:.1f} {b.x:.1f} {y2:.1f}"
    return f'<path class="edge {e.kind}" d="{path}" marker-end="url(#tip)"/>'


def _back(e: Edge, boxes: Mapping[str, Box], lane: float) -> str:
    """Up at the right side, on a lane of its own."""
    a, b = boxes[e.source], boxes[e.target]
    x1, x2 = a.x + a.width / 2, b.x + b.width / 2
    under, over = a.y + LINE / 2 + 12, b.y - LINE / 2 - 12
    path = f"M{x1:.1f} {a.y:.1f}H{x1 + 8:.1f}V{under:.1f}H{lane:.1f}V{over:.1f}H{x2 + 8:.1f}V{b.y:.1f}H{x2 + 1:.1f}"
    return f'<path class="edge {e.kind} round" d="{path}" marker-end="url(#tip)"/>'
