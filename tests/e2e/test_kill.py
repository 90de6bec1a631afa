"""kill -9 of the real process at random moments of a run, on SQLite and on PostgreSQL: what is recorded stands, once.

LEDGERGRAPH_KILLS says how many kills each database gets (12 by default), LEDGERGRAPH_SEED repeats the moments of a run.
"""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import killed
import psycopg
import pytest
from postgres import new_database
from sqlalchemy import make_url

from ledgergraph.consumers.replay import verify_run
from ledgergraph.eventstore import chain
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.history import History
from ledgergraph.projections.rebuild import rows_from_log
from ledgergraph.schemas.events.task import TasksReady, TaskStarted
from ledgergraph.schemas.ids import thread_id, thread_stream

KILLS = int(os.environ.get("LEDGERGRAPH_KILLS", "12"))
KILLS_A_RUN = 3
STREAM = thread_stream(thread_id(killed.THREAD))
LATER_S = 0.004
"""A kill comes up to this long after the append that it waits for: within the next node, effect or commit."""
TRIES_MAX = 10


class Reference(NamedTuple):
    """What a run comes to that nobody disturbs."""

    values: dict[str, Any]
    tasks: Counter[tuple[Any, ...]]
    effects: int
    events: int


@cache
def reference() -> Reference:
    app = killed.build().compile("memory://")
    values = app.invoke({"side": os.devnull, "round": 0}, thread_id=killed.THREAD)
    events = [event for _, event in app.history.events(STREAM)]
    effects = sum(type(e).__name__ == "EffectSucceeded" for e in events)
    return Reference(comparable(values), tasks_of(events), effects, len(events))


def comparable(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is another one in every run."""
    return {**values, "side": "", "ids": len(values["ids"])}


def tasks_of(events: list[Any]) -> Counter[tuple[Any, ...]]:
    """Every task by node, logical time, send index and rank."""
    return Counter((t.node, t.epoch, t.time, t.index, t.rank) for e in events if type(e).__name__ == "TasksReady" for t in e.tasks)


class Killing:
    """One run on a log of its own: killed at the given versions, then finished."""

    def __init__(self, log: str, folder: Path, durability: str) -> None:
        self.log, self.side, self.durability = log, folder / "side", durability

    def spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, killed.__file__, self.log, str(self.side), self.durability], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def kill_at(self, version: int, later_s: float) -> bool:
        """Kills it a moment after it stored that version; whether it was still at work."""
        with self.spawn() as process:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and int(line) < version:
                pass
            if line:
                time.sleep(later_s)
            process.send_signal(signal.SIGKILL)
        return process.returncode == -signal.SIGKILL

    def finish(self) -> None:
        """Goes on with it in new processes until it ends: one that lost its workers too often stops it, and is tried again."""
        for _ in range(TRIES_MAX):
            with self.spawn() as process:
                _, err = process.communicate(timeout=60)
            if process.returncode == 0:
                return
            assert process.returncode == killed.DEAD and b"its worker died" in err, err.decode()
        pytest.fail(f"it did not end in {TRIES_MAX} processes")


def moments(chance: random.Random, kills: int) -> Iterator[list[int]]:
    """Versions to kill at, spread over the whole life of a run, in groups for one run each."""
    width = reference().events / kills
    all_ = [int((i + chance.random()) * width) for i in range(kills)]
    chance.shuffle(all_)
    for i in range(0, kills, KILLS_A_RUN):
        yield sorted(all_[i:i + KILLS_A_RUN])


def rampage(log_of: Callable[[int], AbstractContextManager[str]], folder: Path) -> None:
    """Kills as often as asked, over several runs, and looks at each log after every kill and at the end."""
    seed = int(os.environ.get("LEDGERGRAPH_SEED", random.randrange(1 << 32)))
    print(f"LEDGERGRAPH_SEED={seed}: {KILLS} kills over {reference().events} events")
    chance, hits = random.Random(seed), 0
    for n, versions in enumerate(moments(chance, KILLS)):
        (folder / str(n)).mkdir()
        with log_of(n) as log:
            run = Killing(log, folder / str(n), chance.choice(["sync", "pipelined"]))
            for version in versions:
                hits += run.kill_at(version, chance.uniform(0, LATER_S))
                looked_at(log)
            run.finish()
            finished(log, run.side)
    assert hits >= KILLS * 0.8, f"{hits} of {KILLS} kills came while it was at work"


# What must hold


def looked_at(log: str) -> None:
    """The log of a run that was just killed: whole, and its rows are those that the events say."""
    if log.startswith("postgresql"):
        until_alone(log)
    store = open_store(log)
    try:
        chain.verify(store)
        same_rows(store)
    finally:
        store.close()


def until_alone(log: str) -> None:
    """Until the server has noticed that the client is gone: what it still does for it is stored, or is not, by then."""
    with psycopg.connect(make_url(log).set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True) as connection:
        for _ in range(1_000):
            others = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                                        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()").fetchone()
            if others == (0,):
                return
            time.sleep(0.01)
    pytest.fail("the server still serves a process that was killed")


def same_rows(store: EventStore) -> None:
    due = rows_from_log(store)
    assert sorted(store.runs()) == sorted(due.put_runs)
    assert sorted(store.tasks()) == sorted(due.put_tasks)
    assert sorted(store.questions()) == sorted(due.put_questions)


def finished(log: str, side: Path) -> None:
    store = open_store(log)
    try:
        app = killed.build().compile(store)
        snapshot = app.get_state(thread_id=killed.THREAD)
        assert snapshot.metadata["status"] == "completed"
        assert comparable(snapshot.values) == reference().values
        events = [event for _, event in app.history.events(STREAM)]
        assert tasks_of(events) == reference().tasks
        assert_executions(events)
        assert_effects(events, side)
        chain.verify(store)
        same_rows(store)
        replayed = verify_run(History(store), app.binding, snapshot.metadata["run"])
        assert replayed.ok and replayed.nodes == sum(reference().tasks.values()) and replayed.effects == reference().effects
        app.close()
    finally:
        store.close()


def told(events: list[Any]) -> list[Any]:
    """The events, with the starts that stand within others as events of their own."""
    return [x for e in events for x in (e, *(TaskStarted(b.task, b.attempt, b.worker) for b in getattr(e, "begun", ())))]


def assert_executions(events: list[Any]) -> None:
    """Each task has one update; none was started after it; attempts count up, and each came to one end."""
    started, ended, updated = defaultdict[str, int](int), Counter[tuple[str, int]](), set[str]()
    for e in told(events):
        kind = type(e).__name__
        if kind == "TaskStarted":
            assert e.task not in updated and e.attempt == started[e.task] + 1
            started[e.task] = e.attempt
        elif kind in ("TaskCompleted", "TaskFailed", "TaskReleased"):
            assert e.attempt == started[e.task]
            ended[e.task, e.attempt] += 1
        if kind == "TaskCompleted":
            assert e.task not in updated
            updated.add(e.task)
    assert updated == set(started) and len(updated) == sum(reference().tasks.values())
    assert ended == Counter({(t, n): 1 for t, last in started.items() for n in range(1, last + 1)})


def assert_effects(events: list[Any], side: Path) -> None:
    """What has a result was never asked for again; every call had its intent before it, and no intent more than one call."""
    intended, attempt, settled = Counter[tuple[str, int]](), dict[str, int](), dict[str, int]()
    for e in told(events):
        kind = type(e).__name__
        if kind == "TaskStarted":
            attempt[e.task] = e.attempt
        elif kind == "EffectIntended":
            assert e.key not in settled
            intended[e.key, e.attempt] += 1
        elif kind == "EffectSucceeded":
            assert e.key not in settled
            settled[e.key] = attempt[e.task]
    called = Counter((key, int(n)) for key, n in map(str.split, side.read_text().splitlines()))
    assert len(settled) == reference().effects and set(intended.values()) == {1}
    assert not called - intended, "a call without an intent, or two for one"
    assert all(called[key, n] == 1 for key, n in settled.items()), "a result without its call"
    assert all(n <= settled[key] for key, n in called), "a call after the result was recorded"


# The two databases


def test_on_sqlite(tmp_path: Path) -> None:
    rampage(lambda n: nullcontext(f"sqlite:///{tmp_path / f'{n}.db'}"), tmp_path)


def test_on_postgresql(postgres_server: str, tmp_path: Path) -> None:
    rampage(lambda n: new_database(postgres_server), tmp_path)


def test_what_is_compared_can_fail(tmp_path: Path) -> None:
    side = tmp_path / "side"
    app = killed.build().compile("memory://")
    app.invoke({"side": str(side), "round": 0}, thread_id=killed.THREAD)
    events, calls = told([event for _, event in app.history.events(STREAM)]), side.read_text()
    events = [e._replace(begun=[]) if isinstance(e, TasksReady) else e for e in events]
    assert_executions(events)
    assert_effects(events, side)
    for kind in ("TaskStarted", "TaskCompleted", "EffectIntended", "EffectSucceeded"):
        again = next(e for e in events if type(e).__name__ == kind)
        with pytest.raises(AssertionError):
            assert_executions([*events, again]) if kind.startswith("Task") else assert_effects([*events, again], side)
    for wrong in (calls + calls.splitlines()[0] + "\n", calls.partition("\n")[2]):
        side.write_text(wrong)
        with pytest.raises(AssertionError):
            assert_effects(events, side)


def test_the_reference_is_what_it_says() -> None:
    """So that the assertions above have something to compare with."""
    found = reference()
    assert sum(found.tasks.values()) == killed.ROUNDS * (8 + 3) and found.effects == killed.ROUNDS * (3 * 2 + 1 + 3)
    assert found.values["round"] == killed.ROUNDS and found.events > 150
