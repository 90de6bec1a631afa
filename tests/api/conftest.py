"""Graphs over a log of each kind; after each test the log must be whole, and its rows those that it is folded to."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from ledgergraph.consumers.app import App
from ledgergraph.consumers.graph import StateGraph
from ledgergraph.eventstore import chain
from ledgergraph.projections.rebuild import rows_from_log


class State(TypedDict):
    log: Annotated[list[str], add]
    n: Annotated[int, add]
    x: str


def says(name: str, **update: Any) -> Callable[[Any], dict[str, Any]]:
    """A node that adds its name to the log, and more."""
    return lambda s: {"log": [name], **update}


def graph(nodes: dict[str, Any] | str, edges: str = "", **options: Any) -> StateGraph:
    """Nodes by name (letters alone say their names), edges as pairs of letters; ^ is START."""
    b = StateGraph(State)
    for name, action in nodes.items() if isinstance(nodes, dict) else ((n, says(n)) for n in nodes):
        b.add_node(name, action, **options)
    for e in edges.split():
        b.add_edge("__start__" if e[0] == "^" else e[0], e[1])
    return b


Compile = Callable[..., App]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Compile]:
    """Compiles a graph over a new log of each kind."""
    apps: list[App] = []
    database = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def compile_(b: StateGraph, **options: Any) -> App:
        if request.param == "postgres":
            url = database
        else:
            url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/log-{len(apps)}.db"
        app = b.compile(url, **options)
        apps.append(app)
        return app
    yield compile_
    for app in apps:
        if app.opened:
            assert_whole(app)
        app.close()


def assert_whole(app: App) -> None:
    """The chain is right, and what is folded from the log is what stands in the rows."""
    chain.verify(app.store)
    wanted = rows_from_log(app.store)
    assert set(app.store.runs(limit=10_000)) == set(wanted.put_runs)
    assert set(app.store.tasks()) == set(wanted.put_tasks)
    assert set(app.store.questions()) == set(wanted.put_questions)
