"""Progress of a run in a terminal: a line for each node as it finishes."""
from __future__ import annotations

import time
from typing import Any

from rich.console import Console

from ledgergraph.consumers.app import App

SHOWN_MAX = 4
"""Fields of an update that are named."""


def follow(app: App, input: Any, *, quiet: bool, console: Console | None = None, **options: Any) -> dict[str, Any]:
    """Runs it and returns the state; each node's end is a line unless quiet."""
    if quiet:
        return app.invoke(input, **options)
    out = console or Console(stderr=True, highlight=False)
    began = time.monotonic()
    state: dict[str, Any] = {}
    interrupts: Any = ()
    for mode, chunk in app.stream(input, stream_mode=["updates", "values"], **options):
        if "__interrupt__" in chunk:
            interrupts = chunk["__interrupt__"]
        elif mode == "values":
            state = chunk
        else:
            for node, update in chunk.items():
                fields = listed(list(update or ()))
                out.print(f"[dim]{time.monotonic() - began:6.2f} s[/]  [green]✓[/] {node}  [dim]{fields}[/]")
    if interrupts:
        state = {**state, "__interrupt__": interrupts}
    return state


def listed(fields: list[str]) -> str:
    """What a node wrote, in a few words."""
    more = len(fields) - SHOWN_MAX
    return (", ".join(fields[:SHOWN_MAX]) or "nothing") + (f" and {more} more" if more > 0 else "")
