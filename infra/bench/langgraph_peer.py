"""LangGraph on its own savers, in its safest mode."""
from __future__ import annotations

import sqlite3
import warnings
from typing import Any

from stores import Stores

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import langgraph.graph as api
    from langgraph.channels import DeltaChannel
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

__all__ = ["App", "DeltaChannel", "api"]


class App:
    """A compiled graph over a new database."""

    def __init__(self, builder: Any, stores: Stores, workers: int = 1) -> None:
        if stores.kind == "sqlite":
            self.url = f"sqlite:///{stores.path()}"
            saver: Any = SqliteSaver(sqlite3.connect(self.url.removeprefix("sqlite:///"), check_same_thread=False))
        else:
            self.url = stores.conninfo()
            options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            self.connection: Any = (psycopg.connect(self.url, **options) if workers == 1 else
                                    ConnectionPool(self.url, min_size=workers, max_size=workers, kwargs=options))
            saver = PostgresSaver(self.connection)
            saver.setup()
        self.app = builder.compile(checkpointer=saver)

    def run(self, thread: str, durability: str = "sync") -> Any:
        config = {"configurable": {"thread_id": thread}, "recursion_limit": 1_000_000}
        return self.app.invoke({"n": 0, "items": []}, config, durability=durability)
