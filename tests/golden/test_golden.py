"""Logs that released versions wrote open, verify and replay to what they came to then; one is of other code, and it is named."""
from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from golden import graphs
from golden.make import replays
from golden.stored_log import FOLDER, due, restore, states
from ledgergraph.eventstore import chain
from ledgergraph.eventstore.opening import open_store
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.rebuild import rows_from_log
from ledgergraph.schemas.events.catalogue import BY_NAME

NAMES = sorted(p.name.removesuffix(".db.gz") for p in FOLDER.glob("*.db.gz"))
CHANGED = [n for n in NAMES if n.endswith("-changed")]


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, EventStore]]:
    """Each log by its name, opened as a user would open it."""
    graphs.LET_GO.set()
    monkeypatch.delenv(graphs.DYING, raising=False)
    store = open_store(restore(request.param, tmp_path / "golden.db"))
    yield request.param, store
    store.close()


def test_it_verifies(golden: tuple[str, EventStore]) -> None:
    name, store = golden
    verified = chain.verify(store)
    assert verified.events == sum(map(len, due(name)["streams"].values())) and verified.streams == len(due(name)["streams"])


def test_every_version_s_state_is_what_it_was(golden: tuple[str, EventStore]) -> None:
    name, store = golden
    assert states(store) == due(name)["streams"]


def test_every_run_replays_to_what_it_did(golden: tuple[str, EventStore]) -> None:
    name, store = golden
    assert replays(store) == due(name)["runs"]
    same = [not run["differences"] for run in due(name)["runs"].values()]
    assert all(same) if name not in CHANGED else not any(same)


def test_its_rows_are_those_of_its_events(golden: tuple[str, EventStore]) -> None:
    _, store = golden
    rows = rows_from_log(store)
    assert sorted(store.runs()) == sorted(rows.put_runs)
    assert sorted(store.tasks()) == sorted(rows.put_tasks) and sorted(store.questions()) == sorted(rows.put_questions)


@pytest.mark.parametrize("name", CHANGED)
def test_other_code_is_named_with_event_field_and_fingerprint(name: str, tmp_path: Path) -> None:
    from ledgergraph.consumers.replay import verify_run
    from ledgergraph.projections.history import History
    store = open_store(restore(name, tmp_path / "golden.db"))
    app = graphs.changed().compile(store)
    [row] = store.runs()
    result = verify_run(History(store), app.binding, row.run)
    [found] = result.differences
    [stored] = due(name)["runs"][row.run]["differences"]
    assert not result.ok and result.nodes == 3
    assert (found.stream, found.type, found.node, found.field) == ("thread:sized", "task.completed", "size", "price")
    assert found.version == stored["version"]
    assert "5.0" in found.recorded and "7.5" in found.replayed
    assert found.recorded_code == stored["recorded_code"] and found.loaded_code == app.binding.nodes["size"].code != found.recorded_code
    store.close()


def test_the_logs_hold_every_type_of_event(tmp_path: Path) -> None:
    found = set[str]()
    for name in NAMES:
        store = open_store(restore(name, tmp_path / f"{name}.db"))
        found |= {e.type for e in store.read_all(0, 10_000)}
        store.close()
    assert found == set(BY_NAME)


def test_they_are_small_and_name_no_machine() -> None:
    for name in NAMES:
        kept = (FOLDER / f"{name}.db.gz").read_bytes()
        assert len(kept) < 100_000
        assert not re.search(rb"/(tmp|work|root|home|usr)/|\.py\b", gzip.decompress(kept))



def test_what_is_compared_can_differ(golden: tuple[str, EventStore]) -> None:
    name, store = golden
    changed: dict[str, Any] = {s: list(v) for s, v in due(name)["streams"].items()}
    for digests in changed.values():
        assert len(set(digests)) > len(digests) // 4, "states do change from version to version"
    assert states(store) == changed
