"""What people do to a thread's history: edit its state, branch it, cancel its run."""
from __future__ import annotations

from typing import Any

from ledgergraph.consumers import decide
from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.driving import Lives, current
from ledgergraph.consumers.ledger import Ledger, check
from ledgergraph.eventstore.store import EventStore
from ledgergraph.projections.history import History, Loaded
from ledgergraph.projections.run_state import RunState
from ledgergraph.schemas.envelope import Chain
from ledgergraph.schemas.errors import RunEnded, RunNotFound, ThreadBusy, UnknownNode
from ledgergraph.schemas.events.run import RunCancelled
from ledgergraph.schemas.events.thread import HeadMoved, StateEdited, ThreadForked
from ledgergraph.schemas.ids import StreamId, new_fork_stream, new_run_id, thread_stream


def edit(ledger: Ledger, binding: Binding, lives: Lives, values: Any, as_node: str | None, actor: str = "") -> None:
    """An update above all that is recorded. Raises ThreadBusy where something runs."""
    run = current(ledger)
    if any(t.state == "started" and lives(t.worker) for t in run.tasks.values()):
        raise ThreadBusy(run.thread, run.id, "running", "An edit needs a state in which nothing runs: wait, or cancel the run.")
    if as_node is not None and as_node not in binding.nodes:
        raise UnknownNode(as_node, "update_state(as_node=...)", list(binding.nodes))
    update = binding.schema.check(values, place="update_state") if values is not None else {}
    encoded = binding.schema.encode_update(update, place="update_state")
    sent: list[Any] = []
    if as_node is not None and as_node in binding.routes:
        sent = binding.decide(as_node, binding.schema.view({**run.view().totals, **update}), None)
    decide.supersede_questions(ledger.offer, run, "the state was edited")
    ledger.offer(StateEdited(update, run.schedule.max_rank + 1, as_node, sent), encoded=encoded, actor=actor or None)


def fork(store: EventStore, past: History, stream: StreamId, version: int, why: str = "", actor: str = "") -> StreamId:
    """A branch of the stream at a version, which the thread shows from then on. Nothing is copied. Raises RunNotFound where
    there is no such version or no run by then."""
    at = past.load(stream, version)
    if at.state.version != version or at.state.run is None:
        raise RunNotFound(f"version {version} of stream {stream!r} with a run (it has {at.state.version})",
                          "Take the config of a StateSnapshot.")
    run, thread = at.state.run, at.state.thread
    name = new_fork_stream()
    state, parent_hash = at.state, at.chain.hash
    state.stream, state.version = name, type(state.version)(0)
    branch = Ledger(store, Loaded(state, Chain(name, 0, parent_hash, at.chain.recorded_at)), actor=actor, origin=parent_hash)
    branch.offer(ThreadForked(thread, new_run_id(), stream, version, parent_hash.hex(), run.id, why))
    root = Ledger(store, past.load(thread_stream(thread)), actor=actor)
    root.offer(HeadMoved(name))
    for outcome in store.append([branch.take(f"fork/{name}"), root.take(f"head/{name}")]):
        check(outcome)
    return name


def cancel(ledger: Ledger, reason: str, actor: str = "") -> RunState:
    """Ends the run; what its tasks return later is refused. Raises RunEnded, RunNotFound."""
    run = current(ledger)
    if run.status in ("completed", "cancelled"):
        raise RunEnded(run.id, run.status)
    ledger.offer(RunCancelled(reason), actor=actor or None)
    return run
