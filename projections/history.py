"""Streams out of the log: their events, with those of the streams that they branched from, and the fold of them."""
from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.projections.thread_end import restored
from ledgergraph.schemas import codec
from ledgergraph.schemas.envelope import Chain, StoredEvent, previous_of
from ledgergraph.schemas.errors import DamagedLog, RunNotFound
from ledgergraph.schemas.events.catalogue import decode
from ledgergraph.schemas.events.thread import ThreadForked
from ledgergraph.schemas.graph import GraphSpec, decode_spec
from ledgergraph.schemas.ids import StreamId

PAGE = 5_000
"""Events that are read at a time."""


class Loaded(NamedTuple):
    state: StreamState
    chain: Chain


class History:
    """Reads streams of one store. Keeps the specs and artifacts that it has decoded."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._specs: dict[str, GraphSpec] = {}

    def spec(self, digest: str) -> GraphSpec:
        if digest not in self._specs:
            self._specs[digest] = decode_spec(self.store.artifact(digest))
        return self._specs[digest]

    def know(self, spec: GraphSpec) -> None:
        self._specs[spec.fingerprint] = spec

    def events(self, stream: StreamId, after: int = 0, until: int | None = None) -> Iterator[tuple[StoredEvent, Any]]:
        """(stored, decoded) events of the stream itself, artifacts put back in their places."""
        while True:
            page = self.store.read_stream(stream, after, PAGE, until)
            for stored in page:
                yield stored, self.resolved(decode(stored))
            if len(page) < PAGE:
                return
            after = page[-1].version

    def resolved(self, event: Any) -> Any:
        """The event with the values of its artifacts."""
        blobs = getattr(event, "blobs", None)
        if blobs:
            field = "input" if hasattr(event, "input") else "update"
            values = {k: codec.decode(self.store.artifact(d)) for k, d in blobs.items()}
            return event._replace(**{field: {**getattr(event, field), **values}})
        blob = getattr(event, "blob", "")
        return event._replace(result=codec.decode(self.store.artifact(blob))) if blob else event

    def lineage(self, stream: StreamId) -> list[tuple[StreamId, int | None]]:
        """(stream, up to which version) from the first ancestor to the stream itself."""
        out: list[tuple[StreamId, int | None]] = [(stream, None)]
        while out[0][0].startswith("fork:"):
            first = self.store.read_stream(out[0][0], 0, 1)
            if not first:
                raise RunNotFound(f"stream {stream!r}")
            fork = decode(first[0])
            assert isinstance(fork, ThreadForked)
            out.insert(0, (StreamId(fork.parent), fork.parent_version))
        return out

    def load_end(self, stream: StreamId, print_: str) -> Loaded:
        """The fold of the stream as it is now, from the end of its last completed run where a snapshot of that fingerprint is kept."""
        kept = restored(self.store, stream, print_, self.spec)
        if kept is None:
            return self.load(stream)
        self.follow(*kept)
        kept[0].touched_tasks.clear()
        kept[0].touched_questions.clear()
        return Loaded(*kept)

    def load(self, stream: StreamId, until: int | None = None) -> Loaded:
        """The fold of the stream (and its ancestors) up to a version. Raises DamagedLog where the chain is broken."""
        line = self.lineage(stream)
        state = StreamState(line[0][0], self.spec)
        chain = Chain(line[0][0])
        for name, last in line:
            state.stream = name
            if chain.stream != name:
                chain = Chain(name, 0, chain.hash, chain.recorded_at)
                state.version = type(state.version)(0)
                state.head = None
            self.follow(state, chain, until if last is None else last)
        state.touched_tasks.clear()
        state.touched_questions.clear()
        return Loaded(state, chain)

    def follow(self, state: StreamState, chain: Chain, until: int | None = None) -> int:
        """Applies what the stream has beyond the state; how many events that were."""
        n = 0
        for stored, event in self.events(state.stream, state.version, until):
            if stored.version != chain.version + 1:
                raise DamagedLog(state.stream, chain.version + 1, f"the event is missing (the next one is {stored.version})")
            if previous_of(stored.data) != chain.hash or sha256(stored.data).digest() != stored.hash:
                raise DamagedLog(state.stream, stored.version, "its bytes are not those that its hash, or its predecessor's, was made of",
                                 stored.position)
            state.evolve(event, stored.recorded_at)
            chain.version, chain.hash, chain.recorded_at = stored.version, stored.hash, stored.recorded_at
            n += 1
        if n:
            state.shown_at = state.status_at[0]
        return n
