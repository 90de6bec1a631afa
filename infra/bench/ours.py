"""ledgergraph, as the peers are run."""
from __future__ import annotations

from typing import Any

from stores import Stores

import ledgergraph.consumers as api
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import Append
from ledgergraph.schemas.envelope import NO_HASH, Chain, NewEvent, StoredEvent, content_digest
from ledgergraph.schemas.ids import StreamId, new_id

__all__ = ["App", "Recorder", "api"]
STATE = b'"' + b"x" * 398 + b'"'
ROW = b"x" * 290
"""A payload that makes rows of about 400 bytes."""


class App:
    """A compiled graph over a new log."""

    def __init__(self, builder: Any, stores: Stores) -> None:
        self.url = stores.url()
        self.app: Any = stores.keep(builder.compile(self.url, max_steps=10_000_000))

    def run(self, thread: str, durability: str = "sync", n: int = 0) -> Any:
        return self.app.invoke({"n": n, "items": []}, thread_id=thread, durability=durability)


class Recorder:
    """The event store alone."""

    def __init__(self, stores: Stores) -> None:
        self.store = stores.keep(open_store(stores.url()))

    def produce(self, appends: int) -> None:
        """One producer: that many appends of one event to a stream of its own, with chain and idempotency key."""
        chain = Chain(StreamId("bench:" + new_id().hex()))
        for i in range(appends):
            self._append(chain, [NewEvent("bench", STATE, key=f"k{i}")], f"k{i}")

    def fill(self, stream: str, events: int) -> list[StoredEvent]:
        """A stream of that many rows of about 400 bytes, as the log returns it."""
        chain = Chain(StreamId(stream))
        for at in range(0, events, 5_000):
            self._append(chain, [NewEvent("bench", ROW, actor="service:bench", correlation="run")] * min(5_000, events - at))
        return self.store.read_stream(chain.stream)

    def _append(self, chain: Chain, events: list[NewEvent], key: str = "") -> None:
        version, previous = chain.version, chain.hash
        stored = chain.extend(events, self.store.now())
        digest = content_digest(events) if key else b""
        outcome = self.store.append([Append(chain.stream, version, previous if version else NO_HASH, stored, key, digest)])[0]
        if isinstance(outcome, Exception):
            raise outcome
