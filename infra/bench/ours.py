"""ledgergraph, as the peers are run."""
from __future__ import annotations

from typing import Any

from stores import Stores

import ledgergraph.consumers as api
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import Append
from ledgergraph.schemas.envelope import NO_HASH, Chain, NewEvent, content_digest
from ledgergraph.schemas.ids import StreamId, new_id

__all__ = ["App", "Recorder", "api"]
STATE = b'"' + b"x" * 398 + b'"'


class App:
    """A compiled graph over a new log."""

    def __init__(self, builder: Any, stores: Stores) -> None:
        self.url = stores.url()
        self.app = builder.compile(self.url, max_steps=10_000_000)

    def run(self, thread: str, durability: str = "sync") -> Any:
        return self.app.invoke({"n": 0, "items": []}, thread_id=thread, durability=durability)


class Recorder:
    """Raw appends, chain and idempotency key included."""

    def __init__(self, stores: Stores) -> None:
        self.store = open_store(stores.url())

    def produce(self, appends: int) -> None:
        chain = Chain(StreamId("bench:" + new_id().hex()))
        for i in range(appends):
            events = [NewEvent("bench", STATE, key=f"k{i}")]
            version, previous = chain.version, chain.hash
            stored = chain.extend(events, self.store.now())
            self.store.append([Append(chain.stream, version, previous if version else NO_HASH, stored, f"k{i}", content_digest(events))])
