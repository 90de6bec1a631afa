"""The one place that finds graphs, opens logs, and puts the two together."""
from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

from ledgergraph.consumers.app import App
from ledgergraph.consumers.graph import StateGraph
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.schemas.errors import GraphError, InvalidInput

GROUP = "ledgergraph.graphs"
LOG_VARIABLE = "LEDGERGRAPH_LOG"
DEFAULT_LOG = "sqlite:///ledgergraph.db"


def log_url(given: str | None) -> str:
    """The log that is named by an option, else by the environment, else a file in this folder. A bare path is an SQLite file."""
    text = given or os.environ.get(LOG_VARIABLE) or DEFAULT_LOG
    return text if "://" in text else f"sqlite:///{text}"


def open_log(given: str | None, must_exist: bool = True) -> EventStore:
    """The open log. Raises InvalidInput where it must exist and does not."""
    url = log_url(given)
    path = Path(url.removeprefix("sqlite:///"))
    if must_exist and url.startswith("sqlite:///") and not path.exists():
        raise InvalidInput(f"there is no log at {path}. Name one with --log or {LOG_VARIABLE}, or make one with `ledgergraph run` "
                           "or `ledgergraph demo`.")
    return open_store(url)


def graph_names() -> list[str]:
    return sorted(e.name for e in entry_points(group=GROUP))


def find_graph(name: str, log: EventStore | str | None = None) -> App:
    """The graph of that name (entry point) or at `module:attribute`: a StateGraph, a compiled App, or a function that makes one,
    over the given log. Raises GraphError."""
    found = _load(name)
    for _ in range(2):
        if callable(found) and not isinstance(found, StateGraph | App):
            found = found()
    if isinstance(found, App):
        return App(found.binding, log, found.durability, found.concurrency)
    if isinstance(found, StateGraph):
        return found.compile(log)
    raise GraphError(f"{name!r} is a {type(found).__name__}, not a graph. Name a StateGraph, a compiled one, or a function that makes one.")


def _load(name: str) -> object:
    for e in entry_points(group=GROUP):
        if e.name == name:
            return e.load()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise GraphError(f"there is no graph {name!r}. Known: {', '.join(graph_names()) or 'none'}; or write module:attribute.")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as e:
        raise GraphError(f"graph {name!r}: module {module!r} cannot be imported ({e}). Run from its folder, or install it.") from e
    except AttributeError as e:
        raise GraphError(f"graph {name!r}: {e}. Look at the name after the colon.") from e
    return found
