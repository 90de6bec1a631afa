"""How a node of a run stands, in a word, a symbol and a colour."""
from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["waiting", "ready", "running", "parked", "failed", "done"]


class NodeMark(NamedTuple):
    status: Status
    visits: int
    """Its firings that have an update."""

    @property
    def text(self) -> str:
        count = f" {self.visits}x" if self.visits else ""
        return f"{SYMBOL[self.status]} {self.status}{count}"


SYMBOL: dict[Status, str] = {"waiting": "·", "ready": "○", "running": "▶", "parked": "?", "failed": "✗", "done": "✓"}
COLOUR: dict[Status, str] = {"waiting": "#6b7280", "ready": "#2563eb", "running": "#7c3aed", "parked": "#b45309", "failed": "#b91c1c",
                             "done": "#15803d"}
STYLE: dict[Status, str] = {"waiting": "dim", "ready": "blue", "running": "magenta", "parked": "yellow", "failed": "red", "done": "green"}
