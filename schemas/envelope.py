"""The envelope of an event and the bytes that are stored and hashed.

Stored bytes, hash scheme 1, integers big-endian:

    offset  bytes  field
    0       1      hash scheme
    1       16     event id (UUID version 7)
    17      8      version in the stream
    25      2      schema version of the type
    27      8      occurred_at, microseconds since 1970 UTC
    35      8      recorded_at, the same; never going back along a stream
    43      32     hash of the stream's previous event (zeros before the first)
    75      16     byte lengths, two each: stream, type, tenant, actor, correlation, causation, key, code
    91      ...    these texts in UTF-8, in that order
    ...     ...    the payload

The hash is SHA-256 over all of it. A position is no part of it: it is given later. Texts that are not known are empty.
"""
from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ledgergraph.schemas.errors import DamagedLog, EventTooLarge, NewerLog
from ledgergraph.schemas.ids import StreamId, Version, new_ids

HASH_SCHEME = 1
NO_HASH = bytes(32)
EVENT_MAX = 900_000
"""Bytes of a stored event: below the 1 MiB that kafka-python sends by default, with room for its headers."""
_SIZES = struct.Struct(">8H")
_FIXED = struct.Struct(">B16sQHqq32s8H")
FIXED_SIZE = _FIXED.size


class NewEvent(NamedTuple):
    """What a caller offers; the writer adds where and when."""

    type: str
    payload: bytes
    """Encoded data; see schemas/events.py for each type's fields."""
    schema_version: int = 1
    occurred_at: int | None = None
    """Microseconds since 1970 UTC; None: when it is recorded."""
    actor: str = ""
    """Who did it: `person:…`, `service:…`, `model:…`; `a for b` where on behalf of somebody."""
    correlation: str = ""
    """The run."""
    causation: str = ""
    """Hex id of the event that led here."""
    key: str = ""
    """Idempotency key of the append, on its first event."""
    code: str = ""
    """Fingerprint of the code that ran."""
    tenant: str = ""


class StoredEvent(NamedTuple):
    """What the log returns: columns and stored bytes. Cheap to make; `record` reads the header."""

    position: int | None
    """None: committed, not yet sequenced."""
    stream: StreamId
    version: Version
    type: str
    recorded_at: int
    key: str
    hash: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """Every field of a stored event's header, and its payload."""

    scheme: int
    event_id: bytes
    version: int
    schema_version: int
    occurred_at: int
    recorded_at: int
    previous: bytes
    stream: str
    type: str
    tenant: str
    actor: str
    correlation: str
    causation: str
    key: str
    code: str
    payload: bytes


class Chain:
    """The end of one stream's hash chain: gives new events their version, time, previous hash and bytes."""

    __slots__ = ("_stream", "hash", "recorded_at", "stream", "version")

    def __init__(self, stream: StreamId, version: int = 0, hash: bytes = NO_HASH, recorded_at: int = 0) -> None:
        self.stream, self.version, self.hash, self.recorded_at = stream, version, hash, recorded_at
        self._stream = stream.encode()

    def copy(self) -> Chain:
        return Chain(self.stream, self.version, self.hash, self.recorded_at)

    def extend(self, events: Iterable[NewEvent], now: int) -> list[StoredEvent]:
        """The events as they will be stored, and moves the end of the chain behind them. `now`: the database's time
        as the writer estimates it, in microseconds. Raises EventTooLarge, with the chain unmoved."""
        version, previous = self.version, self.hash
        at = max(now, self.recorded_at)
        out: list[StoredEvent] = []
        events = list(events)
        for e, event_id in zip(events, new_ids(len(events)), strict=True):
            version += 1
            data = _pack(self._stream, version, e, event_id, at, previous)
            if len(data) > EVENT_MAX:
                raise EventTooLarge(e.type, len(data), EVENT_MAX)
            previous = hashlib.sha256(data).digest()
            out.append(StoredEvent(None, self.stream, Version(version), e.type, at, e.key, previous, data))
        self.version, self.hash, self.recorded_at = version, previous, at
        return out


def _pack(stream: bytes, version: int, e: NewEvent, event_id: bytes, at: int, previous: bytes) -> bytes:
    type_, tenant, actor = e.type.encode(), e.tenant.encode(), e.actor.encode()
    correlation, causation, key, code = e.correlation.encode(), e.causation.encode(), e.key.encode(), e.code.encode()
    return b"".join((
        _FIXED.pack(HASH_SCHEME, event_id, version, e.schema_version, at if e.occurred_at is None else e.occurred_at, at,
                    previous, len(stream), len(type_), len(tenant), len(actor), len(correlation), len(causation),
                    len(key), len(code)),
        stream, type_, tenant, actor, correlation, causation, key, code, e.payload))


def content_digest(events: Iterable[NewEvent]) -> bytes:
    """What an append says, without when and where: two appends under one key are the same when this is."""
    h = hashlib.sha256()
    for e in events:
        h.update(b"%d %d %d " % (len(e.type), e.schema_version, len(e.payload)))
        h.update(e.type.encode())
        h.update(e.payload)
    return h.digest()


def record(event: StoredEvent) -> Record:
    """The event's header and payload. Raises NewerLog for a hash scheme that this version does not know, and DamagedLog
    for bytes that are no event."""
    data = event.data
    try:
        scheme, eid, version, schema, occurred, recorded, previous, *sizes = _FIXED.unpack_from(data)
        if scheme != HASH_SCHEME:
            raise NewerLog("hash scheme", scheme, HASH_SCHEME)
        texts: list[str] = []
        at = FIXED_SIZE
        for n in sizes:
            texts.append(data[at:at + n].decode())
            at += n
        if at > len(data):
            raise ValueError("the header is longer than the event")
    except (struct.error, ValueError, IndexError) as e:
        raise DamagedLog(event.stream, event.version, f"its bytes are no event ({e})", event.position) from e
    stream, type_, tenant, actor, correlation, causation, key, code = texts
    return Record(scheme, eid, version, schema, occurred, recorded, previous, stream, type_, tenant, actor, correlation,
                  causation, key, code, data[at:])


def payload_of(data: bytes) -> bytes:
    """The payload alone: the quick way on the hot path."""
    return data[FIXED_SIZE + sum(_SIZES.unpack_from(data, 75)):]


def previous_of(data: bytes) -> bytes:
    return data[43:75]


Clock = Callable[[], int]
"""Microseconds since 1970 UTC."""
