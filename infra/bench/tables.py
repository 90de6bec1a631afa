"""The measurements: each gives rows of the table."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Annotated, Any, TypedDict

import ours
import workloads
from measure import Row, in_turn, per_second, times
from stores import Stores, bytes_of

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.backends.memory import MemoryStore
from ledgergraph.eventstore.store import Append
from ledgergraph.schemas.envelope import NO_HASH
from ledgergraph.schemas.ids import StreamId

MISSING: list[str] = []
"""Peers that are left out, and what to do about it."""
WORKERS = 8


def peer_module(name: str, library: str) -> Any:
    """The module beside this one, or None where what it imports is not installed."""
    try:
        return import_module(name)
    except ImportError as e:
        MISSING.append(f"{library} is left out ({e}): pip install -r infra/requirements/dev.txt")
        return None


langgraph_peer = peer_module("langgraph_peer", "LangGraph")
eventsourcing_peer = peer_module("eventsourcing_peer", "eventsourcing")


@dataclass
class Setting:
    """Where and how much is measured."""

    stores: Stores
    repeats: int = 3
    scale: float = 1.0
    """Of the full sizes."""
    second: float = 0.1
    """What a second of the diamond's nodes takes."""
    names: Iterator[int] = field(default_factory=count)

    def size(self, full: int) -> int:
        return int(full * self.scale)

    def thread(self) -> str:
        return f"t{next(self.names)}"

    def row(self, work: str, unit: str, mine: Sequence[float], peer: Sequence[float] = (), target: float | None = None, *,
            alone: bool = False, higher_is_better: bool = True) -> Row:
        return Row(work, self.stores.kind, unit, mine, peer, target, alone, higher_is_better)


Pair = tuple[ours.App, Any]
"""Ours, and LangGraph's or None."""


def both(s: Setting, build: Callable[[Any], Any], workers: int = 1) -> Pair:
    """The same graph on both sides, run once: with the same result, or there is nothing to compare."""
    us = ours.App(build(ours.api), s.stores)
    peer = langgraph_peer and langgraph_peer.App(build(langgraph_peer.api), s.stores, workers)
    mine = us.run("warm")
    if peer and peer.run("warm") != mine:
        raise SystemExit(f"{build(ours.api)}: the two sides come to different results")
    return us, peer


def compared(s: Setting, pair: Pair, repeats: int) -> list[list[float]]:
    us, peer = pair
    return in_turn(repeats, lambda: us.run(s.thread()), peer and (lambda: peer.run(s.thread())))


def loop(s: Setting) -> Iterator[Row]:
    n = s.size(1_000)
    us, peer = both(s, lambda api: workloads.loop(api, n))
    us.run("warm too", "pipelined")
    sync, pipelined, theirs, relaxed = in_turn(
        s.repeats, lambda: us.run(s.thread()), lambda: us.run(s.thread(), "pipelined"),
        peer and (lambda: peer.run(s.thread())), peer and (lambda: peer.run(s.thread(), "async")))
    a, b, c, d = (per_second(n, taken) for taken in (sync, pipelined, theirs, relaxed))
    name = f"loop of {n:,} steps"
    yield s.row(f"{name}, sync", "steps/s", a, c, 2.5)
    yield s.row(f"{name}, pipelined beside its sync", "steps/s", b, c, 6.0)
    yield s.row(f"{name}, pipelined beside its async (which may lose steps)", "steps/s", b, d)


def distinct(s: Setting) -> Iterator[Row]:
    n = s.size(1_000)
    a, b = compared(s, both(s, lambda api: workloads.chain(api, n)), s.repeats)
    yield s.row(f"{n:,} distinct nodes in a row, sync", "steps/s", per_second(n, a), per_second(n, b), 4.0)


def fan_out(s: Setting) -> Iterator[Row]:
    a, b = compared(s, both(s, lambda api: workloads.fan_out(api, 100)), s.repeats * 5)
    yield s.row("100-way fan-out and barrier, sync", "ms", times(1e3, a), times(1e3, b), 4.0, higher_is_better=False)


def many_runs(s: Setting) -> Iterator[Row]:
    n = s.size(1_000)
    us, peer = both(s, lambda api: workloads.chain(api, 5), WORKERS)

    def together(run: Callable[[str], object]) -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(run, [s.thread() for _ in range(n)]))
    a, b = in_turn(s.repeats, lambda: together(us.run), peer and (lambda: together(peer.run)))
    yield s.row(f"{n:,} runs of five nodes, {WORKERS} workers, sync", "runs/s", per_second(n, a), per_second(n, b), 6.0)


def storage(s: Setting) -> Iterator[Row]:
    n = s.size(1_000)

    def taken(side: Any, steps: int, schema: Any = workloads.State) -> float:
        app = side.App(workloads.loop(side.api, steps, workloads.finding, schema), s.stores)
        before = bytes_of(app.url)
        app.run("t")
        return (bytes_of(app.url) - before) / 1e6
    us, half = [taken(ours, n)], [2 * taken(ours, n // 2)]
    full = [taken(langgraph_peer, n)] if langgraph_peer else []
    delta = [taken(langgraph_peer, n, delta_state())] if langgraph_peer and langgraph_peer.DeltaChannel else []
    name = f"storage of a list that grows by {n:,} items of 200 characters"
    yield s.row(f"{name}, beside its DeltaChannel (beta)", "MB", us, delta, 1.0, higher_is_better=False)
    yield s.row("the same, beside its checkpoints as they are by default", "MB", us, full, higher_is_better=False)
    yield s.row("the same, beside twice what half the steps take", "MB", us, half, 0.85, higher_is_better=False)


def delta_state() -> Any:
    class Delta(TypedDict):
        n: Annotated[int, workloads.add]
        items: Annotated[list[str], langgraph_peer.DeltaChannel(langgraph_peer.extended)]
    return Delta


def diamond(s: Setting) -> Iterator[Row]:
    a, b = compared(s, both(s, lambda api: workloads.diamond(api, s.second)), s.repeats)
    yield s.row(f"diamond with branches of 1, 1, 1 and of 3 times {s.second:g} s", "s", a, b, 5 / 3.2, higher_is_better=False)


def long_run(s: Setting) -> Iterator[Row]:
    """Means of what steps take early and late in one run, so that work that comes every so many steps counts."""
    n, at = s.size(10_000), list[float]()

    def item(step: int) -> int:
        at.append(time.perf_counter())
        return step
    us = ours.App(workloads.loop(ours.api, n + 100, item), s.stores)
    us.run("warm", n=n - 400)
    early, late, first, last = [], [], [], []
    for _ in range(s.repeats):
        at.clear()
        us.run(s.thread())
        early.append(per_step(at, 0, 200))
        late.append(per_step(at, n - 101, n + 99))
        first.append(per_step(at, 0, n // 10))
        last.append(per_step(at, n - n // 10, n))
    yield s.row(f"step {n:,} beside step 100 (200 steps around each)", "us", late, early, 1 / 1.2, higher_is_better=False)
    yield s.row(f"the last tenth of {n:,} steps beside the first", "us", last, first, 1 / 1.2, higher_is_better=False)


def per_step(at: Sequence[float], begin: int, end: int) -> float:
    """Microseconds."""
    return (at[end] - at[begin]) / (end - begin) * 1e6


def verify(s: Setting) -> Iterator[Row]:
    n = s.size(100_000)
    recorder, memory = ours.Recorder(s.stores), MemoryStore()
    stream = StreamId("bench:verify")
    events = recorder.fill(stream, n)
    memory.append([Append(stream, 0, NO_HASH, events, "", b"")])
    of_bytes, columns, read = in_turn(s.repeats, lambda: chain.verify_bytes(events), lambda: chain.verify(memory),
                                      lambda: chain.verify(recorder.store))
    name = f"verify of {n:,} events of {len(events[0].data)} bytes"
    yield s.row(f"{name}, stored bytes, in memory", "events/s", per_second(n, of_bytes), target=300_000, alone=True)
    yield s.row(f"{name}, columns compared, in memory", "events/s", per_second(n, columns), target=200_000, alone=True)
    yield s.row("the same, with reading them from the store", "events/s", per_second(n, read))


def appends(s: Setting) -> Iterator[Row]:
    n = s.size(4_000)
    us, peer = ours.Recorder(s.stores), eventsourcing_peer and eventsourcing_peer.Recorder(s.stores)

    def together(produce: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(produce, [n // WORKERS] * WORKERS))
    a, b = in_turn(s.repeats, lambda: together(us.produce), peer and (lambda: together(peer.produce)))
    target = 4.0 if s.stores.kind == "postgres" else 3.0
    name = f"raw appends by {WORKERS} waiting producers, beside eventsourcing"
    yield s.row(name, "appends/s", per_second(n, a), per_second(n, b), target)


ALL = {f.__name__: f for f in (loop, distinct, fan_out, many_runs, storage, diamond, long_run, verify, appends)}
