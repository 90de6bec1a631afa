"""The process dies at every named step between a claim and its commit, on the first, second and later times that it comes there; what
goes on afterwards ends as if nothing had been."""
from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.opening import open_store
from ledgergraph.projections.history import History
from ledgergraph.projections.rebuild import rows_from_log
from ledgergraph.schemas.crash_points import EXIT, POINTS, VARIABLE
from ledgergraph.schemas.events.task import TaskCompleted
from ledgergraph.schemas.ids import StreamId

TIMES = {"offered": 4, "committing": 6, "committed": 4, "claimed": 3, "ran": 3, "intended": 1, "called": 1, "recorded": 1}
"""How often an undisturbed run comes to each."""
CASES = [(p, n, kind) for p in POINTS for n in range(1, TIMES[p] + 1) for kind in ("sqlite", "postgres") if kind == "sqlite" or n <= 2]


def child(url: str, side: Path, what: str, crash: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: crash}
    return subprocess.run([sys.executable, str(Path(__file__).with_name("child.py")), url, str(side), "-", "retry", what],
                          env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("point", "n", "kind"), CASES, ids=[f"{p}-{n}-{kind}" for p, n, kind in CASES])
def test_it_dies_here_and_ends_as_if_nothing_had_been(point: str, n: int, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path}/log.db"
    side = tmp_path / "side"
    died = child(url, side, "start", f"{point}:{n}")
    assert died.returncode == EXIT, died.stdout + died.stderr
    store = open_store(url)
    began = bool(store.runs())
    store.close()
    ended = child(url, side, "resume" if began else "start")
    # A run whose last step was stored has ended, though its caller never heard of it.
    assert ended.stdout.strip() == "['a', 'e1', 'z']" or "has ended (completed)" in ended.stderr, ended.stdout + ended.stderr
    store = open_store(url)
    state = History(store).load(StreamId("thread:t")).state
    assert state.values()["log"] == ["a", "e1", "z"]
    done = Counter(e.task for _, e in History(store).events(StreamId("thread:t")) if isinstance(e, TaskCompleted))
    assert list(done.values()) == [1, 1, 1]
    calls = side.read_text().splitlines()
    assert len(set(calls)) == 1
    assert len(calls) == (2 if point == "called" or (point == "committing" and len(calls) == 2) else 1)
    chain.verify(store)
    assert set(rows_from_log(store).put_runs) == set(store.runs())
    assert set(rows_from_log(store).put_tasks) == set(store.tasks()) == set()
    store.close()
