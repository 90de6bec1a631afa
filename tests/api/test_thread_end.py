"""A thread's next run does not read the runs before it, and a snapshot changes what is read, never what comes out."""
from __future__ import annotations

from typing import Any

import pytest

from ledgergraph.consumers import Command, interrupt
from ledgergraph.eventstore.store import Snapshot
from ledgergraph.schemas.ids import StreamId
from tests.api.conftest import Compile, graph, says

T: dict[str, Any] = {"configurable": {"thread_id": "t"}}
STREAM = StreamId("thread:t")


def test_what_a_run_reads_does_not_grow_with_its_thread(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    app = compiled(graph({"a": says("a", n=1), "b": says("b")}, "^a ab"))
    read: list[int] = []
    original = app.store.read_stream

    def counted(*arguments: Any, **more: Any) -> Any:
        events = original(*arguments, **more)
        read.append(len(events))
        return events
    monkeypatch.setattr(app.store, "read_stream", counted)
    taken = []
    for i in range(40):
        read.clear()
        assert app.invoke({}, T)["n"] == i + 1
        taken.append(sum(read))
    assert max(taken) < 100
    assert app.get_state(T).values == app.history.load(STREAM).state.values()
    assert len(app.history.load(STREAM).state.values()["log"]) == 80


def test_what_is_folded_from_a_snapshot_is_what_is_folded_from_the_log(compiled: Compile) -> None:
    app = compiled(graph({"a": says("a"), "q": lambda s: {"log": [interrupt("?")]}}, "^a aq"))
    for i in range(12):
        app.invoke({"n": 1}, T)
        app.invoke(Command(resume=f"{i}"), T)
    kept = app.store.snapshot(STREAM, app.binding.kept_as)
    assert kept is not None
    whole, short = app.history.load(STREAM).state, app.history.load_end(STREAM, app.binding.kept_as).state
    assert short.kept_at == kept.version
    for name in ("version", "thread", "changed_at", "status", "status_at", "head"):
        assert getattr(whole, name) == getattr(short, name), name
    assert whole.values() == short.values()
    app.update_state(T, {"log": ["edit"]})
    assert app.get_state(T).values == app.history.load(STREAM).state.values()
    app.store.put_snapshot(Snapshot(STREAM, kept.version, b"\1" * 32, app.binding.kept_as, kept.data))
    assert app.history.load_end(STREAM, app.binding.kept_as).state.kept_at == 0
    assert app.history.load_end(STREAM, "another fingerprint").state.values() == app.get_state(T).values
