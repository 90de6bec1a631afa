"""A graph as Mermaid text, for documents that render it."""
from __future__ import annotations

from collections.abc import Mapping

from ledgergraph.producers.drawing.layout import Edge, edges_of, shown
from ledgergraph.producers.drawing.marks import COLOUR, NodeMark
from ledgergraph.schemas.graph import END, START, GraphSpec


def mermaid(spec: GraphSpec, marks: Mapping[str, NodeMark] | None = None) -> str:
    """Single edges are arrows, routes dotted, barriers thick; an edge that begins a round says so."""
    ids = {n: f"n{i}" for i, n in enumerate((START, *spec.names, END))}
    lines = ["flowchart TD", f"  {ids[START]}([START])"]
    lines += [f'  {ids[n]}["{_escaped(_label(n, marks))}"]' for n in spec.names]
    lines += [f"  {ids[END]}([END])", *(f"  {_edge(e, ids)}" for e in edges_of(spec))]
    for status, colour in COLOUR.items():
        named = [ids[n] for n, m in (marks or {}).items() if m.status == status]
        if named:
            lines += [f"  classDef {status} stroke:{colour},stroke-width:3px", f"  class {','.join(named)} {status}"]
    return "\n".join(lines)


def _label(name: str, marks: Mapping[str, NodeMark] | None) -> str:
    mark = (marks or {}).get(name)
    return shown(name) if mark is None else f"{shown(name)}\n{mark.text}"


def _edge(e: Edge, ids: Mapping[str, str]) -> str:
    arrow = {"edge": "-->", "route": "-.->", "barrier": "==>"}[e.kind]
    label = "|next round|" if e.begins_round else ""
    return f"{ids[e.source]} {arrow}{label} {ids[e.target]}"


def _escaped(text: str) -> str:
    """As Mermaid's own entities, so that no name can end its label."""
    plain = "".join(c if c.isalnum() or c in " _-.,:\n·○▶✗✓" else f"#{ord(c)};" for c in text)
    return plain.replace("\n", "<br/>")
