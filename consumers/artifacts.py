"""Large values leave the event: the log keeps their digest, the store their bytes once."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgergraph.eventstore.store import EventStore
from ledgergraph.schemas.codec import encode
from ledgergraph.schemas.events.effect import EffectSucceeded
from ledgergraph.schemas.events.run import RunStarted
from ledgergraph.schemas.events.task import TaskCompleted
from ledgergraph.schemas.events.thread import StateEdited

ARTIFACT_MIN = 64_000
"""Bytes of an encoded value from which on it is stored as an artifact."""


def lightened(store: EventStore, event: Any, encoded: Mapping[str, bytes] | None) -> Any:
    """The event as it is stored: without its large values, which are stored before."""
    if isinstance(event, TaskCompleted | StateEdited):
        large = _large(event.update, encoded)
        return event._replace(update=_without(event.update, large), blobs=_stored(store, large)) if large else event
    if isinstance(event, RunStarted):
        large = _large(event.input, encoded)
        return event._replace(input=_without(event.input, large), blobs=_stored(store, large)) if large else event
    if isinstance(event, EffectSucceeded):
        data = encode(event.result, place=f"effect {event.key}", path="result")
        return event._replace(result=None, blob=store.put_artifact(data)) if len(data) >= ARTIFACT_MIN else event
    return event


def _large(update: Mapping[str, Any], encoded: Mapping[str, bytes] | None) -> dict[str, bytes]:
    if encoded is None:
        encoded = {k: encode(v, path=k) for k, v in update.items()}
    return {k: v for k, v in encoded.items() if len(v) >= ARTIFACT_MIN}


def _without(update: Mapping[str, Any], large: Mapping[str, bytes]) -> dict[str, Any]:
    return {k: v for k, v in update.items() if k not in large}


def _stored(store: EventStore, large: Mapping[str, bytes]) -> dict[str, str]:
    return {k: store.put_artifact(v) for k, v in large.items()}
