"""LangGraph on its own savers, in its safest mode. Importing it raises ImportError where LangGraph is not installed."""
from __future__ import annotations

import sqlite3
import warnings
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from stores import Stores, conninfo

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import langgraph.graph as api
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    try:
        from langgraph.channels import DeltaChannel
    except ImportError:  # of its beta; older and later versions may not have it
        DeltaChannel = None  # type: ignore[assignment, misc]

__all__ = ["App", "DeltaChannel", "api"]


class App:
    """A compiled graph over a new database. `workers`: threads that will use it at once."""

    def __init__(self, builder: Any, stores: Stores, workers: int = 1) -> None:
        self.url = stores.url()
        self.app = builder.compile(checkpointer=_saver(self.url, stores, workers))

    def run(self, thread: str, durability: str = "sync") -> Any:
        config = {"configurable": {"thread_id": thread}, "recursion_limit": 10_000_000}
        return self.app.invoke({"n": 0, "items": []}, config, durability=durability)


def _saver(url: str, stores: Stores, workers: int) -> Any:
    if stores.kind == "sqlite":
        return SqliteSaver(stores.keep(sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False)))
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    connection: Any = (psycopg.connect(conninfo(url), **options) if workers == 1 else
                       ConnectionPool(conninfo(url), min_size=workers, max_size=workers, kwargs=options, open=True))
    saver = PostgresSaver(stores.keep(connection))
    saver.setup()
    return saver


def extended(current: list[Any], updates: list[list[Any]]) -> list[Any]:
    """The reducer of a DeltaChannel: all of a step's writes at once."""
    return [*current, *(x for u in updates for x in u)]
