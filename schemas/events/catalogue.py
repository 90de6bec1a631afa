"""Every event type by its name: to bytes and back."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ledgergraph.schemas import codec, upcasts
from ledgergraph.schemas.envelope import StoredEvent, payload_of
from ledgergraph.schemas.errors import DamagedLog, NewerLog
from ledgergraph.schemas.events import effect, question, run, task, thread

Event = Any
"""One of the NamedTuples of the families."""

BY_NAME: dict[str, type[Event]] = {
    "run.started": run.RunStarted,
    "run.completed": run.RunCompleted,
    "run.failed": run.RunFailed,
    "run.capped": run.RunCapped,
    "run.resumed": run.RunResumed,
    "run.cancelled": run.RunCancelled,
    "run.adopted": run.RunAdopted,
    "tasks.ready": task.TasksReady,
    "task.started": task.TaskStarted,
    "task.completed": task.TaskCompleted,
    "task.failed": task.TaskFailed,
    "task.released": task.TaskReleased,
    "task.refused": task.TaskRefused,
    "task.dead": task.TaskDead,
    "context.recorded": task.ContextRecorded,
    "cap.redirected": task.CapRedirected,
    "barrier.proceeded": task.BarrierProceeded,
    "effect.intended": effect.EffectIntended,
    "effect.succeeded": effect.EffectSucceeded,
    "effect.failed": effect.EffectErred,
    "question.asked": question.QuestionAsked,
    "question.answered": question.QuestionAnswered,
    "question.superseded": question.QuestionSuperseded,
    "state.edited": thread.StateEdited,
    "thread.forked": thread.ThreadForked,
    "head.moved": thread.HeadMoved,
}
NAME_OF = {cls: name for name, cls in BY_NAME.items()}

VALUES: Mapping[str, tuple[str, ...]] = {
    "context.recorded": ("values",), "effect.intended": ("asked",), "effect.succeeded": ("result",),
    "question.asked": ("value",), "question.answered": ("value",), "task.completed": ("sent",), "state.edited": ("sent",),
    "run.started": ("options", "sent"),
}
"""Fields that hold any storable value."""
MAPS: Mapping[str, tuple[str, ...]] = {"run.started": ("input", "initial"), "task.completed": ("update",), "state.edited": ("update",)}
"""Fields that hold storable values by the name of a state's field."""

Encoded = Mapping[str, bytes]


def encode(event: Event, encoded: Encoded | None = None) -> bytes:
    """The event's payload. `encoded`: the values of its update (of a run's start: its input) where they are at hand as bytes."""
    name = NAME_OF[type(event)]
    data = event._asdict()
    for field in VALUES.get(name, ()):
        if data[field] is not None and data[field] != []:
            data[field] = orjson.Fragment(codec.encode(data[field], place=name, path=field))
    for field in MAPS.get(name, ()):
        known: Encoded = encoded if encoded and field != "initial" else {}
        data[field] = {k: orjson.Fragment(known[k] if k in known else codec.encode(v, place=name, path=k)) for k, v in data[field].items()}
    if name == "tasks.ready":
        data["tasks"], data["begun"] = [tuple(t) for t in event.tasks], [tuple(b) for b in event.begun]
    return orjson.dumps(data)


def decode(stored: StoredEvent) -> Event:
    """The event of stored bytes, upcast to today's fields. Raises NewerLog for a type or version that this code does
    not know, DamagedLog for a payload that cannot be read."""
    cls = BY_NAME.get(stored.type)
    if cls is None:
        raise NewerLog(f"the event at version {stored.version} of stream {stored.stream!r}", stored.type, "its own types")
    try:
        data = orjson.loads(payload_of(stored.data))
    except ValueError as e:
        raise DamagedLog(stored.stream, stored.version, f"its payload cannot be read ({e})", stored.position) from e
    data = upcasts.upcast(stored, data)
    for field in VALUES.get(stored.type, ()):
        if data.get(field) is not None:
            data[field] = codec.from_plain(data[field])
    for field in MAPS.get(stored.type, ()):
        data[field] = {k: codec.from_plain(v) for k, v in data[field].items()}
    special = _SPECIAL.get(stored.type)
    return special(data) if special else cls(**data)


def _ready(data: dict[str, Any]) -> task.TasksReady:
    return task.TasksReady([task.ReadyTask(i, n, e, tuple(t), x, r) for i, n, e, t, x, r in data["tasks"]],
                           [task.Begun(*b) for b in data.get("begun", ())])


def _redirected(data: dict[str, Any]) -> task.CapRedirected:
    return task.CapRedirected(data["node"], data["epoch"], tuple(data["time"]), data["to"])


_SPECIAL: dict[str, Callable[[dict[str, Any]], Event]] = {"tasks.ready": _ready, "cap.redirected": _redirected}
