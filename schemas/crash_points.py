"""Places by name at which a test lets the process die: at every step between a claim and its commit.

LEDGERGRAPH_CRASH_AT=name:n ends the process without a word when it comes to the place for the n-th time. Nothing else reads it.
"""
from __future__ import annotations

import os

VARIABLE = "LEDGERGRAPH_CRASH_AT"
POINTS = ("offered", "committing", "committed", "claimed", "ran", "intended", "called", "recorded")
"""offered: decided, not handed to the store; committing: within the store's transaction; committed: durable; claimed: the node is
about to run; ran: it has run, nothing of it is stored; intended, called, recorded: an effect's intent is stored, its call was made, its
result is stored."""
EXIT = 137
"""As a killed process is reported."""


def _armed() -> dict[str, int]:
    name, _, n = os.environ.get(VARIABLE, "").partition(":")
    return {name: int(n or 1)} if name else {}


ARMED = _armed()


def reach(name: str) -> None:
    """Does nothing, but where this very point was asked for."""
    if ARMED and name in ARMED:
        ARMED[name] -= 1
        if ARMED[name] == 0:
            os._exit(EXIT)
