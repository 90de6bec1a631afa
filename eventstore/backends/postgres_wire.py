"""Values as PostgreSQL reads them in binary form: arrays of whole numbers, bytes, texts and rows.

Layout of an array (src/backend/utils/adt/arrayfuncs.c, array_recv): dimensions, flags, element type, then for each dimension
its length and lower bound, then each element with its length before it. A row (rowtypes.c, record_recv): the number of
columns, then for each its type, length and value. Made here, because building these bytes costs a tenth of what it costs
to let the driver find out for each list what it holds.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

INT4, INT8, TEXT, BYTEA = 23, 20, 25, 17
INT4S, INT8S, TEXTS, BYTEAS = 1007, 1016, 1009, 1001
"""Types of elements and of arrays (src/include/catalog/pg_type.dat): fixed for every server."""
_HEAD = struct.Struct(">iiIii")
_SIZE = struct.Struct(">i").pack
_COLUMN = struct.Struct(">Ii").pack
_KEPT_MAX = 300
"""Lengths of arrays whose layout is kept; longer ones are made anew."""


def int8s(values: Sequence[int]) -> bytes:
    return _numbers("q", 8, len(values)).pack(1, 0, INT8, len(values), 1, *[x for v in values for x in (8, v)])


def int4s(values: Sequence[int]) -> bytes:
    return _numbers("i", 4, len(values)).pack(1, 0, INT4, len(values), 1, *[x for v in values for x in (4, v)])


@lru_cache(_KEPT_MAX)
def _numbers(kind: str, _size: int, count: int) -> struct.Struct:
    return struct.Struct(">iiIii" + f"i{kind}" * count)


def byteas(values: Iterable[bytes]) -> bytes:
    return _array(BYTEA, list(values))


def texts(values: Iterable[str]) -> bytes:
    """Raises UnicodeEncodeError for half a surrogate pair."""
    return _array(TEXT, [v.encode() for v in values])


def _array(type_: int, values: list[bytes]) -> bytes:
    parts = [_HEAD.pack(1, 0, type_, len(values), 1)]
    for value in values:
        parts.append(_SIZE(len(value)))
        parts.append(value)
    return b"".join(parts)


class RowType(NamedTuple):
    """A table's rows as a type of its own: its number and that of its arrays differ between databases."""

    row: int
    array: int
    columns: tuple[int, ...]
    """The type of each column."""

    def rows(self, rows: Iterable[Sequence[str | int]]) -> bytes:
        """An array of the table's rows."""
        return _array(self.row, [self._row(row) for row in rows])

    def _row(self, values: Sequence[str | int]) -> bytes:
        parts = [_SIZE(len(self.columns))]
        for type_, value in zip(self.columns, values, strict=True):
            data = _WRITERS[type_](value)
            parts.append(_COLUMN(type_, len(data)))
            parts.append(data)
        return b"".join(parts)


_WRITERS: dict[int, Callable[..., bytes]] = {
    TEXT: str.encode, INT4: struct.Struct(">i").pack, INT8: struct.Struct(">q").pack}


def read_numbers(data: bytes | None) -> list[int | None]:
    """An array of int4 or int8."""
    return [None if v is None else int.from_bytes(v, "big", signed=True) for v in read_array(data)]


def read_array(data: bytes | None) -> list[bytes | None]:
    """The elements of an array of one dimension."""
    if data is None or len(data) < _HEAD.size:
        return []
    count = int.from_bytes(data[12:16], "big")
    out: list[bytes | None] = []
    at = _HEAD.size
    for _ in range(count):
        size = int.from_bytes(data[at:at + 4], "big", signed=True)
        at += 4
        out.append(None if size < 0 else data[at:at + size])
        at += max(size, 0)
    return out
