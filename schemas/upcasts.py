"""Old events as today's code reads them: applied on reading, never to what is stored."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgergraph.schemas.envelope import StoredEvent, record
from ledgergraph.schemas.errors import NewerLog

Data = dict[str, Any]
Upcaster = Callable[[Data], Data]

CURRENT: dict[str, int] = {}
"""Schema version of each type that is past its first."""
UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(type, version) -> its data in the next version."""
_SCHEMA = slice(25, 27)


def current(type_: str) -> int:
    return CURRENT.get(type_, 1)


def upcast(stored: StoredEvent, data: Data) -> Data:
    """The data in the current version of its type. Raises NewerLog where it was written by a later one."""
    version = int.from_bytes(stored.data[_SCHEMA], "big")
    now = current(stored.type)
    if version > now:
        record(stored)
        raise NewerLog(f"schema of {stored.type!r} at version {stored.version} of stream {stored.stream!r}", version, now)
    for v in range(version, now):
        data = UPCASTERS[stored.type, v](data)
    return data
