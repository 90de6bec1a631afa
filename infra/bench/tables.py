"""The measurements: each gives rows of the table."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Annotated, TypedDict

import eventsourcing_peer
import langgraph_peer
import ours
import workloads
from measure import Row, medians, seconds
from stores import Stores, bytes_of

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.backends.memory import MemoryStore
from ledgergraph.schemas.events.task import TaskCompleted

Size = Callable[[int], int]
"""How much of a measurement's full size is done."""


def loop(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(1_000)
    us, peer = ours.App(workloads.loop(ours.api, n), stores), langgraph_peer.App(workloads.loop(langgraph_peer.api, n), stores)
    us.run("warm")
    peer.run("warm")
    counter = iter(range(1_000_000))
    sync, pipelined, theirs, relaxed = medians(
        repeats, lambda: us.run(f"s{next(counter)}"), lambda: us.run(f"p{next(counter)}", "pipelined"),
        lambda: peer.run(f"s{next(counter)}"), lambda: peer.run(f"a{next(counter)}", "async"))
    yield Row(f"loop of {n:,} steps, sync", stores.kind, "steps/s", n / sync, n / theirs, 2.5, n=repeats)
    yield Row(f"loop of {n:,} steps, pipelined beside its sync", stores.kind, "steps/s", n / pipelined, n / theirs, 6.0, n=repeats)
    yield Row(f"loop of {n:,} steps, pipelined beside its async (which may lose steps)", stores.kind, "steps/s", n / pipelined, n / relaxed,
              None, n=repeats)


def distinct(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(1_000)
    us, peer = ours.App(workloads.chain(ours.api, n), stores), langgraph_peer.App(workloads.chain(langgraph_peer.api, n), stores)
    us.run("warm")
    peer.run("warm")
    counter = iter(range(1_000_000))
    a, b = medians(repeats, lambda: us.run(f"{next(counter)}"), lambda: peer.run(f"{next(counter)}"))
    yield Row(f"{n:,} distinct nodes in a row, sync", stores.kind, "steps/s", n / a, n / b, 4.0, n=repeats)


def fan_out(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    us, peer = ours.App(workloads.fan_out(ours.api, 100), stores), langgraph_peer.App(workloads.fan_out(langgraph_peer.api, 100), stores)
    us.run("warm")
    peer.run("warm")
    counter = iter(range(1_000_000))
    a, b = medians(repeats * 5, lambda: us.run(f"{next(counter)}"), lambda: peer.run(f"{next(counter)}"))
    yield Row("100-way fan-out and barrier", stores.kind, "ms", a * 1e3, b * 1e3, 4.0, higher_is_better=False, n=repeats * 5)


def many_runs(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(1_000)
    us, peer = ours.App(workloads.chain(ours.api, 5), stores), langgraph_peer.App(workloads.chain(langgraph_peer.api, 5), stores, workers=8)
    us.run("warm")
    peer.run("warm")
    rounds = iter(range(1_000_000))

    def eight(run: Callable[[str], object]) -> None:
        k = next(rounds)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: run(f"{k}/{i}"), range(n)))
    a, b = medians(repeats, lambda: eight(us.run), lambda: eight(peer.run))
    yield Row(f"{n:,} runs of five nodes, 8 workers", stores.kind, "runs/s", n / a, n / b, 6.0, n=repeats)


ITEM = "x" * 200
"""Of the list that grows: a finding of a line or two."""


def storage(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(1_000)

    class Delta(TypedDict):
        n: Annotated[int, workloads.add]
        items: Annotated[list[str], langgraph_peer.DeltaChannel(_extended)]

    def taken(app: ours.App | langgraph_peer.App) -> float:
        before = bytes_of(app.url)
        app.run("t")
        return (bytes_of(app.url) - before) / 1e6
    full, kept = workloads.State, langgraph_peer.App(workloads.loop(langgraph_peer.api, n, ITEM), stores)
    theirs = taken(kept)
    workloads.State = Delta  # type: ignore[misc, assignment]
    try:
        delta = taken(langgraph_peer.App(workloads.loop(langgraph_peer.api, n, ITEM), stores))
    finally:
        workloads.State = full  # type: ignore[misc]
    us = taken(ours.App(workloads.loop(ours.api, n, ITEM), stores))
    half = taken(ours.App(workloads.loop(ours.api, n // 2, ITEM), stores))
    yield Row(f"storage of a list that grows by {n:,} steps, beside its DeltaChannel", stores.kind, "MB", us, delta, 1.0, higher_is_better=False)
    yield Row("the same, beside its full checkpoints", stores.kind, "MB", us, theirs, None, higher_is_better=False)
    yield Row("the same, beside twice what half the steps take", stores.kind, "MB", us, 2 * half, 0.85, higher_is_better=False)


def _extended(current: list[int], updates: list[list[int]]) -> list[int]:
    return [*current, *(x for u in updates for x in u)]


def diamond(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    second = 1.0 if size(1_000) == 1_000 else 0.1
    us, peer = ours.App(workloads.diamond(ours.api, second), stores), langgraph_peer.App(workloads.diamond(langgraph_peer.api, second), stores)
    a, b = seconds(lambda: us.run("t")), seconds(lambda: peer.run("t"))
    yield Row(f"diamond with branches of 1, 1, 1 and 3 times {second:g} s", stores.kind, "s", a, b, 5 / 3.2, higher_is_better=False)


def long_run(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    """The time between completed steps, early and late in one run."""
    n = size(10_000) + 150
    us = ours.App(workloads.loop(ours.api, n), stores)
    us.run("t")
    at = [e.recorded_at for e, event in us.app.history.events("thread:t") if isinstance(event, TaskCompleted)]
    gaps = [b - a for a, b in pairwise(at)]
    early, late = statistics.median(gaps[60:360]), statistics.median(gaps[n - 320:n - 20])
    yield Row(f"step {n - 150:,} beside step 100", stores.kind, "us", late, early, 1 / 1.2, higher_is_better=False, n=100)


def verify(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(100_000)
    recorder = ours.Recorder(stores)
    from ledgergraph.eventstore.store import Append
    from ledgergraph.schemas.envelope import NO_HASH, Chain, NewEvent
    from ledgergraph.schemas.ids import StreamId
    end = Chain(StreamId("bench:verify"))
    for _ in range(0, n, 5_000):
        version, hash_ = end.version, end.hash
        stored = end.extend([NewEvent("bench", b"x" * 290, actor="service:bench", correlation="run")] * 5_000, recorder.store.now())
        recorder.store.append([Append(end.stream, version, hash_ if version else NO_HASH, stored, "", b"")])
    events = recorder.store.read_stream(end.stream)
    bytes_ = statistics.median(seconds(lambda: chain.verify_bytes(events)) for _ in range(repeats))
    whole = statistics.median(seconds(lambda: chain.verify(recorder.store)) for _ in range(repeats))
    yield Row(f"verify of {n:,} events, stored bytes", stores.kind, "events/s", n / bytes_, None, 300_000, n=repeats)
    memory = MemoryStore()
    memory.append([Append(end.stream, 0, NO_HASH, events, "", b"")])
    columns = statistics.median(seconds(lambda: chain.verify(memory)) for _ in range(repeats))
    yield Row(f"verify of {n:,} events, columns compared", stores.kind, "events/s", n / columns, None, 200_000, n=repeats)
    yield Row("the same, with reading them from the store", stores.kind, "events/s", n / whole, None, None, n=repeats)


def appends(stores: Stores, size: Size, repeats: int) -> Iterator[Row]:
    n = size(2_000)
    us, peer = ours.Recorder(stores), eventsourcing_peer.Recorder(stores)

    def eight(produce: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(produce, [n // 8] * 8))
    a, b = medians(repeats, lambda: eight(us.produce), lambda: eight(peer.produce))
    yield Row("raw appends by 8 waiting producers, beside eventsourcing", stores.kind, "appends/s", n / a, n / b,
              4.0 if stores.kind == "postgres" else 3.0, n=repeats)


ALL = {f.__name__: f for f in (loop, distinct, fan_out, many_runs, storage, diamond, long_run, verify, appends)}
__all__ = ["ALL", "time"]
