"""Several processes work on one SQLite file at once, and one stops where another took its run."""
from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.opening import open_store

WORKER = """
import sys
from operator import add
from typing import Annotated, TypedDict
from concurrent.futures import ThreadPoolExecutor
from ledgergraph.consumers import START, StateGraph

class State(TypedDict):
    log: Annotated[list[str], add]

b = StateGraph(State)
for i in range(5):
    b.add_node(f"n{i}", lambda s: {"log": ["x"]})
    b.add_edge(f"n{i - 1}" if i else START, f"n{i}")
app = b.compile(f"sqlite:///{sys.argv[1]}")
with ThreadPoolExecutor(4) as pool:
    outs = list(pool.map(lambda i: app.invoke({}, thread_id=f"{sys.argv[2]}-{i}"), range(40)))
assert all(len(o["log"]) == 5 for o in outs)
app.close()
"""


def test_four_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(path), str(k)], stderr=subprocess.PIPE, text=True) for k in range(4)]
    errors = [w.communicate(timeout=120)[1] for w in workers]
    assert errors == ["", "", "", ""]
    with closing(open_store(f"sqlite:///{path}")) as store:
        runs = store.runs(limit=1_000)
        assert len(runs) == 160
        assert {r.status for r in runs} == {"completed"}
        verified = chain.verify(store)
        assert verified.streams == 160
        assert verified.events == store.last_position()
