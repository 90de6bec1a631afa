"""Drawings of a graph: in the terminal, as Mermaid, as SVG; of a run, with its status on it."""
from ledgergraph.producers.drawing.marks import NodeMark
from ledgergraph.producers.drawing.mermaid import mermaid
from ledgergraph.producers.drawing.svg import svg
from ledgergraph.producers.drawing.terminal import terminal

__all__ = ["NodeMark", "mermaid", "svg", "terminal"]
