"""What happens next, from a run's state alone: pure decisions, said as events.

Each function offers its events to `offer`, which applies them to the state before the next is decided, so that live runs,
recovery and simulation share them. No clock, no randomness, no I/O.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.run_tasks import Task
from ledgergraph.projections.schedule import Due
from ledgergraph.schemas.events.question import QuestionSuperseded
from ledgergraph.schemas.events.run import RunCapped, RunCompleted, RunFailed, RunResumed
from ledgergraph.schemas.events.task import BarrierProceeded, CapRedirected, ReadyTask, TaskDead, TaskReleased, TasksReady
from ledgergraph.schemas.graph import NodeSpec
from ledgergraph.schemas.ids import task_id

Offer = Callable[[Any], None]
LOSSES_MAX = 3
"""Workers that a task may lose before it is called dead."""


def react(offer: Offer, run: RunState) -> None:
    """Releases what may start now; ends or stops the run where nothing is left to run."""
    if run.ended:
        return
    while not run.halting:
        redirected = release(offer, run)
        if not redirected:
            break
    if run.running == 0:
        conclude(offer, run)


def release(offer: Offer, run: RunState) -> bool:
    """Makes due firings ready. True where a cap sent one elsewhere, so that others may be due now."""
    ready: list[ReadyTask] = []
    redirected = False
    for due in run.schedule.due():
        node = run.spec.node[due.key.node]
        if cap_of(run, node, due) is None:
            ready += ready_tasks(run, due)
        elif node.on_cap and cap_of(run, node, due) == "max_visits":
            offer(CapRedirected(due.key.node, due.key.epoch, due.key.time, node.on_cap))
            redirected = True
    if ready:
        offer(TasksReady(ready))
    return redirected


def ready_tasks(run: RunState, due: Due) -> Iterable[ReadyTask]:
    key = due.key
    return [ReadyTask(task_id(run.id, key.node, key.epoch, key.time, i), key.node, key.epoch, key.time, i, due.rank)
            for i in due.indexes]


def cap_of(run: RunState, node: NodeSpec, due: Due) -> str | None:
    """The cap that this firing is over."""
    if due.rank > run.max_steps:
        return "max_steps"
    if node.max_visits is not None and run.schedule.visits(due.key) > node.max_visits * run.visits_allowed:
        return "max_visits"
    return None


def conclude(offer: Offer, run: RunState) -> None:
    """Nothing runs: says how the run stands, unless something is ready, waits for its time, or for a person."""
    if run.halting:
        offer(failure(run))
    elif run.tasks:
        return
    elif capped := [d for d in run.schedule.due() if cap_of(run, run.spec.node[d.key.node], d)]:
        offer(cap_event(run, capped[0]))
    elif starved := run.schedule.starved():
        barrier, missing = starved[0]
        if barrier.on_missing == "proceed":
            offer(BarrierProceeded(barrier.target, [s for s in barrier.sources if s not in missing], list(missing)))
            react(offer, run)
        else:
            offer(RunFailed("starved", "", barrier.target, "BarrierStarved", ", ".join(missing)))
    else:
        finish(offer, run)


def finish(offer: Offer, run: RunState) -> None:
    conflict = next(iter(run.view().conflicts().items()), None)
    if conflict is None:
        offer(RunCompleted(run.schedule.max_rank))
    else:
        field, writes = conflict
        offer(RunFailed("conflict", "", "", "ConflictingUpdates", f"{field}: {', '.join(w.key.node for w in writes)}"))


def failure(run: RunState) -> RunFailed:
    """The run's failure out of what halted it: the first failed task in declared order, or a conflict."""
    for t in sorted(run.tasks.values(), key=lambda t: (run.spec.order[t.key.node], t.key, t.index)):
        if t.state == "failed":
            kind, message = run.failures.get(t.id, ("", ""))
            return RunFailed("node", t.id, t.key.node, kind, message)
        if t.state == "dead":
            return RunFailed("dead", t.id, t.key.node, "TaskDead", f"its worker died {t.losses} times while it ran")
        conflicts = run.pre[t.key].conflicts()
        if conflicts:
            field, writes = next(iter(conflicts.items()))
            return RunFailed("conflict", t.id, t.key.node, "ConflictingUpdates", f"{field}: {', '.join(w.key.node for w in writes)}")
    raise AssertionError(f"run {run.id} halts without a failed task")


def cap_event(run: RunState, due: Due) -> RunCapped:
    node = run.spec.node[due.key.node]
    cap = cap_of(run, node, due) or "max_steps"
    limit = run.max_steps if cap == "max_steps" else (node.max_visits or 0) * run.visits_allowed
    path = cycle_of(run, due.key.node)
    return RunCapped(cap, limit, due.key.node, path, {n: run.visits_of(n) for n in dict.fromkeys([*path, due.key.node])})


def cycle_of(run: RunState, node: str) -> list[str]:
    """The shortest way from the node back to itself that was gone, the node first and last; the node alone where none was."""
    back: dict[str, str] = {}
    todo = [node]
    for u in todo:
        for v in (*run.spec.static.get(u, ()), *run.spec.route.get(u, ()), *(b.target for b in run.spec.barriers if u in b.sources)):
            if v == node:
                path = [u]
                while path[-1] != node:
                    path.append(back[path[-1]])
                return [*path[::-1], node]
            if v not in back and v in run.spec.node and run.visits_of(v):
                back[v] = u
                todo.append(v)
    return [node]


def resume(offer: Offer, run: RunState, why: str, max_steps: int | None = None) -> None:
    """Goes on with a failed or capped run."""
    if max_steps is None and isinstance(run.stopped, RunCapped) and run.stopped.cap == "max_steps":
        max_steps = run.max_steps + run.stopped.limit
    offer(RunResumed(why, max_steps))
    react(offer, run)


def release_lost(offer: Offer, run: RunState, lost: Iterable[Task], why: str) -> None:
    """Tasks whose worker died become ready again; one that lost too many is dead."""
    for t in list(lost):
        offer(TaskReleased(t.id, t.attempt, why, True))
        if t.losses >= LOSSES_MAX:
            offer(TaskDead(t.id, t.losses))


def supersede_questions(offer: Offer, run: RunState, why: str) -> None:
    for q in list(run.questions):
        offer(QuestionSuperseded(q, why))
