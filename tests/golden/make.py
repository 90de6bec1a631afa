"""Writes the golden logs of a release, beside those of earlier ones, which are never written again.

    cd tests && python -m golden.make 0.1
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

from golden import graphs
from golden.stored_log import FOLDER, dump, put_due, states
from ledgergraph.consumers import Command, driving
from ledgergraph.consumers.app import App
from ledgergraph.consumers.ledger import Ledger
from ledgergraph.consumers.replay import verify_run
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.history import History
from ledgergraph.schemas.errors import GraphRecursionError, RunCancelled, RunFailed
from ledgergraph.schemas.ids import thread_id, thread_stream


def size_then(state: graphs.Trip) -> dict[str, Any]:
    """What `size` was when the run was made."""
    return {"price": state["price"] * 2}


def walked(store: EventStore) -> None:
    """Branches, a loop, a retry, Sends, a question, an edit, two branches of the thread, and a graph that adopts a run."""
    app = graphs.paths().compile(store)
    app.invoke({"mode": "walk"}, thread_id="joined")
    app.invoke(Command(resume={"yes": True}), thread_id="joined")
    app.invoke({"mode": "edited"}, thread_id="edited")
    app.update_state(None, {"price": Decimal("1.0")}, thread_id="edited")
    app.invoke(None, thread_id="edited")
    app.fork(thread_id="edited", version=9, why="what if")
    app.invoke(None, thread_id="edited")
    app.invoke(Command(resume={"yes": False}), thread_id="edited")
    app.invoke({"mode": "adopted"}, thread_id="adopted")
    newer = graphs.paths(graphs.NEWER).compile(store)
    ledger = Ledger(store, newer.history.load(thread_stream(thread_id("adopted"))), actor="person:ann")
    driving.serve(ledger, newer.binding, driving.current(ledger), adopt="looked at it")
    ledger.commit()
    newer.invoke(Command(resume={"yes": True}), thread_id="adopted")


def sized(store: EventStore) -> None:
    graphs.changed(size_then).compile(store).invoke({"price": Decimal("2.5")}, thread_id="sized")


def capped(store: EventStore, log: str) -> None:
    """Caps, a starved barrier, a failure, a task that kills its workers, an outcome that comes too late."""
    app = graphs.caps().compile(store)
    app.invoke({"mode": "turns"}, thread_id="turns")
    app.invoke({"mode": "left"}, thread_id="left")
    for given in ({"mode": "spins"}, None):
        with suppress(GraphRecursionError):
            app.invoke(given, thread_id="spins", max_steps=3 if given else 5)
    with suppress(LookupError):
        app.invoke({"mode": "fails"}, thread_id="fails")
    app.cancel(thread_id="fails", reason="no use")
    for _ in range(3):
        subprocess.run([sys.executable, "-m", "golden.make", "die", log], env={**os.environ, graphs.DYING: "1"}, cwd=FOLDER.parent, check=False)
    with suppress(RunFailed):
        app.invoke(None, thread_id="dies")
    app.invoke(None, thread_id="dies")
    late(app)


def late(app: App) -> None:
    def run() -> None:
        with suppress(RunCancelled):
            app.invoke({"mode": "late"}, thread_id="late")
    thread = threading.Thread(target=run)
    thread.start()
    graphs.HELD.wait()
    app.cancel(thread_id="late", reason="too slow", actor="person:ann")
    graphs.LET_GO.set()
    thread.join()


def die(log: str) -> None:
    app = graphs.caps().compile(log)
    app.invoke(None if app.get_state(thread_id="dies").metadata else {"mode": "dies"}, thread_id="dies")


def replays(store: EventStore) -> dict[str, Any]:
    """What a replay of each run that the graphs at hand serve comes to."""
    out: dict[str, Any] = {}
    for row in store.runs():
        version = graphs.NEWER if row.thread == "adopted" else "1"
        graph = graphs.paths(version) if row.graph == "paths" else graphs.GRAPHS[row.graph]()
        found = verify_run(History(store), graph.compile(store).binding, row.run)
        out[row.run] = {"graph": row.graph, "version": version, "status": row.status, "nodes": found.nodes, "effects": found.effects,
                        "differences": [vars_of(d) for d in found.differences]}
    return out


def vars_of(difference: Any) -> dict[str, Any]:
    return {k: getattr(difference, k) for k in difference.__slots__ if k != "loaded_code"}


def keep(release: str, name: str, write: Callable[[EventStore, str], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.db"
        store = open_store(f"sqlite:///{path}")
        write(store, f"sqlite:///{path}")
        put_due(f"{release}-{name}", {"streams": states(store), "runs": replays(store)})
        store.close()
        dump(path, f"{release}-{name}")


def main(release: str) -> None:
    # A trace would name folders of the machine that this runs on.
    with patch("ledgergraph.consumers.outcomes.trace_of", lambda error: f"{type(error).__name__}: {error}"):
        keep(release, "paths", lambda store, log: walked(store))
        keep(release, "caps", capped)
        keep(release, "changed", lambda store, log: sized(store))


if __name__ == "__main__":
    die(sys.argv[2]) if sys.argv[1] == "die" else main(sys.argv[1])
