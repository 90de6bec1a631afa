"""Verification: what is stored is what was written, all of it, in order.

Found are: other bytes, another hash, a broken chain, a gap of versions or positions, a column that differs from the
header, an end of a stream that the events do not have (a tail that was cut off). Not to be found from inside a database
are a chain that somebody made anew to its end, and a tail that was cut off together with the stream's row: for these a
hash must be kept elsewhere.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

import orjson

from ledgergraph.eventstore.store import EventStore, Head
from ledgergraph.schemas.envelope import (
    FIXED_SIZE,
    HASH_SCHEME,
    NO_HASH,
    Record,
    StoredEvent,
    payload_of,
    previous_of,
    record,
)
from ledgergraph.schemas.errors import DamagedLog
from ledgergraph.schemas.ids import StreamId

PAGE = 5_000
"""Events read at a time."""
FORKED = "thread.forked"
"""Type of a branch's first event, which names its parent's stream, version and hash."""

Progress = Callable[[int], None]
"""Called after each page with the number of events verified so far."""


class Verified(NamedTuple):
    events: int
    streams: int


class _Ends:
    """Where each stream stands while its events go by."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.hashes: dict[str, bytes] = {}
        self.forks: list[StoredEvent] = []
        """First events that name a previous one."""


def verify(store: EventStore, stream: StreamId | None = None, columns: bool = True, progress: Progress | None = None) -> Verified:
    """Reads the whole log, or one stream, and compares everything with everything. `columns`: the columns with the header
    too. Raises DamagedLog for the first event that is not right, NewerLog for a hash scheme that is not known."""
    heads = [(stream, store.head(stream))] if stream is not None else list(_all_heads(store))
    pages = _stream_pages(store, stream, heads[0][1].version) if stream is not None else _log_pages(store, store.last_position())
    ends, count = _Ends(), 0
    for page in pages:
        count += _verify_page(page, ends, columns, 0 if stream is not None else count + 1)
        if progress is not None:
            progress(count)
    _compare_heads(store, heads, ends)
    for fork in ends.forks:
        _verify_fork(store, fork)
    return Verified(count, len(ends.versions))


def verify_bytes(events: Iterable[StoredEvent]) -> Verified:
    """The chains of events in memory: bytes, hashes, previous hashes and versions; each stream's from its first on."""
    ends = _Ends()
    count = _verify_page(events, ends, False, 0)
    return Verified(count, len(ends.versions))


def _all_heads(store: EventStore) -> Iterator[tuple[StreamId, Head]]:
    after = ""
    while page := store.heads(after):
        yield from page
        after = page[-1][0]


def _log_pages(store: EventStore, last: int) -> Iterator[list[StoredEvent]]:
    after = 0
    while after < last:
        page = store.read_all(after, PAGE)
        if not page:
            raise DamagedLog("?", 0, f"the events at positions {after + 1} to {last} are missing", after + 1)
        yield page
        after += len(page)


def _stream_pages(store: EventStore, stream: StreamId, last: int) -> Iterator[list[StoredEvent]]:
    after = 0
    while after < last and (page := store.read_stream(stream, after, PAGE)):
        yield page
        after += len(page)


def _verify_page(events: Iterable[StoredEvent], ends: _Ends, columns: bool, position: int) -> int:
    """How many were right. `position` is the first one's, or 0 where positions are not compared. The loop is the hot path:
    what is right costs a few comparisons, what is wrong is looked at again by `_blame`."""
    versions, hashes = ends.versions, ends.hashes
    count = 0
    expected = position
    for event in events:
        at, stream, version, _, _, _, hash_, data = event
        previous = hashes.get(stream, NO_HASH)
        if (data[43:75] != previous or version != versions.get(stream, 0) + 1 or data[0] != HASH_SCHEME
                or int.from_bytes(data[17:25], "big") != version or sha256(data).digest() != hash_
                or (position and at != expected) or (columns and not _columns_match(event))):
            _blame(event, ends, expected if position else None)
        versions[stream] = version
        hashes[stream] = hash_
        count += 1
        expected += 1
    return count


def _columns_match(event: StoredEvent) -> bool:
    """Whether stream, type, time and key are those of the header (version, hash and position are compared elsewhere)."""
    _, stream, _, type_, recorded_at, key, _, data = event
    return (data[35:43] == recorded_at.to_bytes(8, "big", signed=True)
            and _header_texts(data) == (stream, type_, key))


def _header_texts(data: bytes) -> tuple[str, str, str]:
    """Stream, type and key."""
    stream_end = FIXED_SIZE + (data[75] << 8 | data[76])
    type_end = stream_end + (data[77] << 8 | data[78])
    key_start = type_end + sum(data[79:87:2]) * 256 + sum(data[80:87:2])
    key_end = key_start + (data[87] << 8 | data[88])
    return data[FIXED_SIZE:stream_end].decode(), data[stream_end:type_end].decode(), data[key_start:key_end].decode()


def _blame(event: StoredEvent, ends: _Ends, position: int | None) -> None:
    """Raises DamagedLog with what is wrong; returns where the event begins a fork, which is right so far."""
    due = ends.versions.get(event.stream, 0) + 1
    previous = ends.hashes.get(event.stream, NO_HASH)
    if position is not None and event.position != position:
        raise _damaged(event, f"it stands at position {event.position}, due was {position}: events between are missing or moved")
    if event.version != due:
        raise _damaged(event, f"version {due} of the stream was due here: events are missing, doubled or moved")
    found = record(event)
    if sha256(event.data).digest() != event.hash:
        raise _damaged(event, "the hash of its bytes is not the one that is stored beside them")
    _blame_columns(event, found)
    if found.previous != previous:
        if due != 1 or found.type != FORKED:
            raise _damaged(event, f"it names the previous hash {found.previous.hex()[:16]}, the event before it has {previous.hex()[:16]}")
        ends.forks.append(event)


def _blame_columns(event: StoredEvent, found: Record) -> None:
    for name in ("stream", "version", "type", "recorded_at", "key"):
        column, header = getattr(event, name), getattr(found, name)
        if column != header:
            raise _damaged(event, f"its column {name} says {column!r}, its bytes say {header!r}")


def _damaged(event: StoredEvent, why: str) -> DamagedLog:
    return DamagedLog(event.stream, event.version, why, event.position)


def _compare_heads(store: EventStore, heads: list[tuple[StreamId, Head]], ends: _Ends) -> None:
    """Every stream's row against its last event. Others may append meanwhile: `heads` were read before the events."""
    for stream, head in heads:
        version = ends.versions.get(stream, 0)
        if version < head.version:
            raise DamagedLog(stream, version + 1, f"the stream's row says that there are {head.version} events, the log has {version}: "
                                                  "its end was cut off")
        at_head = ends.hashes.get(stream, NO_HASH) if version == head.version else store.read_stream(stream, head.version - 1, 1)[0].hash
        if at_head != head.hash:
            raise DamagedLog(stream, head.version, "the hash in the stream's row is not that of its last event")
    known = {stream for stream, _ in heads}
    for name, version in ends.versions.items():
        if name not in known and store.head(StreamId(name)).version < version:
            raise DamagedLog(name, version, "the stream's row is missing or behind its events")


def _verify_fork(store: EventStore, fork: StoredEvent) -> None:
    """A branch's first event names its parent's hash in its header and, with stream and version, in its payload."""
    parent = orjson.loads(payload_of(fork.data))
    found = store.read_stream(StreamId(parent["parent"]), parent["parent_version"] - 1, 1)
    if not found or found[0].hash != previous_of(fork.data):
        raise _damaged(fork, f"it forks version {parent['parent_version']} of {parent['parent']!r}, which has another hash")
