"""How a thread stood when its last run had ended, as a snapshot: what the next run starts from, whatever the number of runs before it.

A snapshot is a cache. It names the hash of the event that it was made at, and a fingerprint of its own format, the graph's spec, and the
code of the reducers: where any of them is another one, the stream is read from its beginning.
"""
from __future__ import annotations

import hashlib
from typing import Any

from ledgergraph.eventstore.store import EventStore, Snapshot
from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.stream_state import LoadSpec, StreamState
from ledgergraph.schemas import codec
from ledgergraph.schemas.envelope import Chain
from ledgergraph.schemas.errors import DecodeError
from ledgergraph.schemas.events.run import RunCompleted, RunStarted
from ledgergraph.schemas.ids import StreamId, Version

FORMAT = "thread-end/1"
EVERY = 64
"""Events after the last snapshot, before another one is made."""
BYTES_MAX = 8_000_000
"""A larger state is not kept: reading it costs as much as folding it."""


def fingerprint(spec: str, reducers: list[str]) -> str:
    """Of what a snapshot depends on: the spec's fingerprint, and those of its reducers' code."""
    return hashlib.sha256("\x1f".join([FORMAT, spec, *reducers]).encode()).hexdigest()


def keep(store: EventStore, state: StreamState, chain: Chain, print_: str) -> bool:
    """Keeps the end of a completed run in place of an earlier one, where enough has happened since. Whether it did."""
    run = state.run
    if run is None or run.ended != "completed" or state.version - state.kept_at < EVERY:
        return False
    data = codec.encode({"run": run.id, "thread": run.thread, "spec": run.spec.fingerprint, "started_at": run.started_at,
                         "as_of": run.started.as_of, "rank": run.schedule.max_rank, "totals": dict(run.view().totals),
                         "changed_at": state.changed_at, "status_at": list(state.status_at), "head": state.head})
    if len(data) > BYTES_MAX:
        return False
    store.put_snapshot(Snapshot(state.stream, state.version, chain.hash, print_, data))
    store.drop_snapshots(state.stream, state.version)
    state.kept_at = state.version
    return True


def restored(store: EventStore, stream: StreamId, print_: str, load_spec: LoadSpec) -> tuple[StreamState, Chain] | None:
    """The state and the chain at the snapshot; None where there is none that holds."""
    kept = store.snapshot(stream, print_)
    if kept is None:
        return None
    event = store.read_stream(stream, kept.version - 1, 1)
    if not event or event[0].hash != kept.hash:
        return None
    try:
        data = codec.decode(kept.data)
        return _state(stream, kept.version, data, load_spec), Chain(stream, kept.version, kept.hash, event[0].recorded_at)
    except (DecodeError, KeyError):
        return None


def _state(stream: StreamId, version: Version, data: dict[str, Any], load_spec: LoadSpec) -> StreamState:
    spec = load_spec(data["spec"])
    started = RunStarted(data["run"], data["thread"], spec.name, spec.version, spec.fingerprint, spec.fingerprint, 1, {}, data["totals"],
                         as_of=data["as_of"])
    state = StreamState(stream, load_spec)
    state.run = RunState(started, spec, {}, data["started_at"])
    state.run.schedule.max_rank = data["rank"]
    state.run.end("completed", RunCompleted(data["rank"]))
    state.thread, state.version, state.kept_at = state.run.thread, version, version
    state.changed_at, state.head = data["changed_at"], data["head"]
    state.status, state.status_at = "completed", (Version(data["status_at"][0]), data["status_at"][1])
    state.shown_at = state.status_at[0]
    return state
