"""The log and the graphs of a command, given back when it ends."""
from __future__ import annotations

from typing import Protocol, TypeVar

import click

from ledgergraph.consumers.app import App
from ledgergraph.eventstore.store import EventStore
from ledgergraph.producers import bootstrap


class Closeable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closeable)


def until_the_end(thing: C) -> C:
    """The thing, closed when the command ends, however it ends."""
    click.get_current_context().call_on_close(thing.close)
    return thing


def open_log(given: str | None, must_exist: bool = True) -> EventStore:
    """The open log. Raises InvalidInput where it must exist and does not."""
    return until_the_end(bootstrap.open_log(given, must_exist))


def open_graph(name: str, store: EventStore) -> App:
    """The graph of that name or at `module:attribute` over the log. Raises GraphError."""
    return until_the_end(bootstrap.find_graph(name, store))
