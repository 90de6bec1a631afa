"""Ids are types: a `str` that is an id is a bug. How each is made, and what it may look like."""
from __future__ import annotations

import hashlib
import os
import time
import unicodedata
from typing import NewType

from ledgergraph.schemas.errors import InvalidThreadId

ThreadId = NewType("ThreadId", str)
"""What state continues under; chosen by the user."""
StreamId = NewType("StreamId", str)
"""The ordered events of one thread (`thread:<id>`) or of a branch of it (`fork:<hex>`)."""
RunId = NewType("RunId", str)
TaskId = NewType("TaskId", str)
"""24 hex digits: a digest of run, node, epoch, logical time and send index."""
QuestionId = NewType("QuestionId", str)
EffectKey = NewType("EffectKey", str)
Node = NewType("Node", str)
Digest = NewType("Digest", str)
"""64 hex digits of a SHA-256."""
Version = NewType("Version", int)
"""An event's place in its stream, from 1; 0 means that the stream has no events."""
Position = NewType("Position", int)
"""An event's place in the whole log, from 1, dense."""

Time = tuple[int, ...]
"""Logical time: one counter per enclosing loop, outermost first."""

THREAD_ID_MAX = 200
"""Characters; at four UTF-8 bytes each it still fits every index that it stands in."""


def thread_id(text: object) -> ThreadId:
    """The text as a thread id. Raises InvalidThreadId where it is no text, empty, too long or has characters that
    cannot be seen or stored."""
    if not isinstance(text, str):
        raise InvalidThreadId(text, f"it is a {type(text).__name__}, not a text")
    if not text.strip():
        raise InvalidThreadId(text, "it is empty")
    if len(text) > THREAD_ID_MAX:
        raise InvalidThreadId(text, f"it has {len(text)} characters, {THREAD_ID_MAX} are allowed")
    odd = next((c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Cf")), None)
    if odd is not None:
        raise InvalidThreadId(text, f"it holds U+{ord(odd):04X}, which cannot be seen or stored")
    if unicodedata.normalize("NFC", text) != text:
        raise InvalidThreadId(text, "it is not in Unicode's normal form C, so that two ids could look alike")
    if text != text.strip():
        raise InvalidThreadId(text, "it begins or ends with a space")
    return ThreadId(text)


def thread_stream(thread: ThreadId) -> StreamId:
    return StreamId(f"thread:{thread}")


def new_id() -> bytes:
    """16 bytes, ordered by their millisecond of making (UUID version 7, RFC 9562)."""
    return new_ids(1)[0]


def new_ids(n: int) -> list[bytes]:
    """Several at once: one call of the system for their random parts."""
    ms = (time.time_ns() // 1_000_000).to_bytes(6, "big")
    tail = bytearray(os.urandom(10 * n))
    for i in range(0, 10 * n, 10):
        tail[i] = 0x70 | (tail[i] & 0x0F)
        tail[i + 2] = 0x80 | (tail[i + 2] & 0x3F)
    return [ms + tail[i:i + 10] for i in range(0, 10 * n, 10)]


def new_run_id() -> RunId:
    return RunId("run-" + new_id().hex())


def new_fork_stream() -> StreamId:
    return StreamId("fork:" + new_id().hex())


def digest(*parts: object) -> str:
    """24 hex digits that depend on each part and on where it ends."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def task_id(run: RunId, node: str, epoch: int, time_: Time, index: int) -> TaskId:
    return TaskId(digest(run, node, epoch, time_, index))


def question_id(task: TaskId, number: int, content: str) -> QuestionId:
    """A question's id holds its content, so that an answer can never reach another question of the same task."""
    return QuestionId(digest("question", task, number, content))


def effect_key(run: RunId, task: TaskId, name: str, number: int) -> EffectKey:
    """No attempt, no clock, no request: a retry has the same key (the request's digest is stored beside it)."""
    return EffectKey(digest("effect", run, task, name, number))
