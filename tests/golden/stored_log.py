"""A golden log as it is kept: an SQLite file, and beside it what it must come to."""
from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from ledgergraph.consumers.snapshots import snapshot
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.history import History
from ledgergraph.projections.rebuild import streams_of
from ledgergraph.schemas import codec
from ledgergraph.schemas.ids import StreamId

FOLDER = Path(__file__).parent


def dump(database: Path, name: str) -> None:
    """Keeps the database. Who worked on it, and where, is left out."""
    whole = database.with_suffix(".whole")
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("DELETE FROM workers")
        db.execute("VACUUM INTO ?", [str(whole)])
    (FOLDER / f"{name}.db.gz").write_bytes(gzip.compress(whole.read_bytes(), mtime=0))


def restore(name: str, database: Path) -> str:
    """Puts the database there; its URL."""
    database.write_bytes(gzip.decompress((FOLDER / f"{name}.db.gz").read_bytes()))
    return f"sqlite:///{database}"


def states(store: EventStore) -> dict[str, list[str]]:
    """Of each stream, a digest of the state at every version."""
    past = History(store)
    return {stream: [digest(past, stream, v) for v in range(1, store.head(stream).version + 1)] for stream in streams_of(store)}


def digest(past: History, stream: StreamId, version: int) -> str:
    """Of all that is shown at that version: values, what comes next, tasks, how the run stands."""
    s = snapshot(past.load(stream, version).state)
    shown = [s.values, list(s.next), s.metadata.get("status"), s.metadata.get("conflicts"), [[t.id, t.name, t.state, t.attempt] for t in s.tasks]]
    return sha256(codec.encode(shown)).hexdigest()[:12]


def due(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def put_due(name: str, value: dict[str, Any]) -> None:
    (FOLDER / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
