"""A run as folded from its events: what is waiting, who runs what, and the state that each task sees.

`evolve` applies one event. It is deterministic and touches nothing outside, so that a live run, a recovery and a replay
a year later are the same fold. What should happen next is not decided here (see consumers/decide.py).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ledgergraph.projections.run_tasks import Failure, Question, Task
from ledgergraph.projections.schedule import NOTHING, FiringKey, Schedule, Sent
from ledgergraph.projections.views import Place, View, Write, extend, merge
from ledgergraph.schemas import reducers
from ledgergraph.schemas.events.run import RunAdopted, RunCapped, RunResumed, RunStarted
from ledgergraph.schemas.events.task import ReadyTask, TaskCompleted
from ledgergraph.schemas.events.thread import StateEdited
from ledgergraph.schemas.graph import MAX_STEPS, START, GraphSpec
from ledgergraph.schemas.ids import RunId, TaskId, ThreadId

EDIT = "__edit__"
START_KEY = FiringKey(START, 0, ())
OPEN = ("running", "waiting", "failed", "capped")
"""Statuses that hold the thread."""


class RunState:
    """One run of a stream. Fields are read by everybody and changed by `evolve` alone."""

    def __init__(self, started: RunStarted, spec: GraphSpec, before: Mapping[str, Any], at: int) -> None:
        self.id, self.thread, self.started_at = RunId(started.run), ThreadId(started.thread), at
        self.started, self.spec = started, spec
        self.reducers = reducers_of(spec)
        self.schedule = Schedule(spec)
        self.max_steps = started.max_steps or spec.max_steps or MAX_STEPS
        self.visits_allowed = 1
        """How many times each node's `max_visits` may be used up: one more with every resume after a cap."""
        self.tasks: dict[TaskId, Task] = {}
        self.dropped: dict[TaskId, Task] = {}
        """Tasks that wait to be started anew."""
        self.startable: dict[TaskId, None] = {}
        """Tasks that are ready, or wait for their time to be tried again."""
        self.failures: dict[TaskId, tuple[str, str]] = {}
        """(kind, message) of the last error of a task."""
        self.continued: list[Failure] = []
        """Failures that were values."""
        self.running = 0
        """Tasks that are started."""
        self.questions: dict[str, Question] = {}
        """Open ones."""
        self.closed: dict[str, str] = {}
        """Question -> answered or superseded."""
        self.done: dict[FiringKey, dict[int, tuple[Place, Mapping[str, Any]]]] = {}
        self.edits: list[tuple[Place, Mapping[str, Any]]] = []
        self.pre: dict[FiringKey, View] = {}
        """What each live firing sees."""
        self.post: dict[FiringKey, dict[int, View]] = {}
        """What each task's update led to: a cache, kept for the last firing of a node."""
        self.last: dict[str, FiringKey] = {}
        self.halting = False
        """A task failed for good: nothing new starts."""
        self.ended: str | None = None
        """completed, failed, capped, cancelled: since then nothing runs."""
        self.stopped: Any = None
        """The event that ended it."""
        self.root = View({**{k: v for k, v in started.initial.items() if k not in before}, **before}, {})
        self.first = extend(self.root, started.input, START_KEY, (0,), self.reducers)
        self.final: View | None = None
        self.schedule.begin(sent_of(started.sent))

    # What is asked

    @property
    def status(self) -> str:
        """running, waiting (for people), failed, capped, completed or cancelled."""
        if self.ended:
            return self.ended
        return "waiting" if self.questions and not self.running and not self.startable else "running"

    def view(self) -> View:
        """The fold of all updates so far, in their order, whether their branches have met or not."""
        if self.final is not None:
            return self.final
        return self._merged(self.schedule.ends(), join=False)

    def sees(self, task: Task) -> View:
        return self.pre[task.key]

    def failures_before(self, key: FiringKey) -> tuple[Failure, ...]:
        """The failures that were values and that a firing sees."""
        return tuple(f for f in self.continued if self.schedule.before(f.key, key))

    def next_nodes(self) -> tuple[str, ...]:
        """Nodes that are to run or running, in declared order."""
        names = {t.key.node for t in self.tasks.values()} | {k.node for k in self.schedule.waiting()}
        if self.ended in ("completed", "cancelled"):
            return ()
        return tuple(n for n in self.spec.names if n in names and self._is_due(n))

    def _is_due(self, node: str) -> bool:
        return any(t.key.node == node for t in self.tasks.values()) or any(d.key.node == node for d in self.schedule.due())

    def visits_of(self, node: str) -> int:
        """Firings of the node so far that have an update, in every branch."""
        return sum(k.node == node for k in self.done)

    def seen_by(self, a: Write, b: Write) -> bool:
        """Whether the writer of b saw a."""
        if a.key.node in (START, EDIT) or b.key.node in (START, EDIT):
            return a.place < b.place
        return self.schedule.before(a.key, b.key)

    # Views

    def _merged(self, keys: Iterable[FiringKey], join: bool = True) -> View:
        views = [v for k in keys for v in self._post(k).values()]
        if not views:
            return self._edited_first()
        return merge(views, self.seen_by, self.reducers, self.first, join=join)

    def _edited_first(self) -> View:
        view = self.first
        for place, update in self.edits:
            view = extend(view, update, FiringKey(EDIT, 0, ()), place, self.reducers)
        return view

    def _post(self, key: FiringKey) -> dict[int, View]:
        kept = self.post.get(key)
        if kept is not None and len(kept) == len(self.done.get(key, ())):
            return kept
        return {i: self._refolded(key, i) for i in self.done.get(key, {})}

    def _refolded(self, key: FiringKey, index: int) -> View:
        """The slow way, from the recorded updates: for views that the cache has let go."""
        own, update = self.done[key][index]
        seen = [(place, k, u) for k, tasks in self.done.items() if self.schedule.before(k, key) for place, u in tasks.values()]
        rank = own[0]
        edits = [(p, FiringKey(EDIT, 0, ()), u) for p, u in self.edits]
        view = self.first
        for place, k, u in sorted([*seen, *(e for e in edits if e[0][0] < rank), (own, key, update),
                                   *(e for e in edits if e[0][0] >= rank)], key=lambda x: x[0]):
            view = extend(view, u, k, place, self.reducers)
        return view

    # Events

    def ready(self, tasks: list[ReadyTask]) -> None:
        """tasks.ready: firings take their tokens."""
        groups: dict[FiringKey, list[ReadyTask]] = {}
        for t in tasks:
            groups.setdefault(FiringKey(t.node, t.epoch, t.time), []).append(t)
        for key, group in groups.items():
            d = self.schedule.offered(key)
            payloads = dict(zip(d.indexes, d.payloads, strict=True))
            origins = dict(zip(d.indexes, d.origins, strict=True))
            view = self._merged(self.schedule.sources(key))
            view.shares += len(group)
            self.pre[key] = view
            self.schedule.fire(key, group[0].rank, [t.index for t in group])
            for t in group:
                id = TaskId(t.task)
                task = self.tasks[id] = Task(id, key, t.index, t.rank, payloads[t.index], origins[t.index])
                if id in self.dropped:
                    task.anew(self.dropped.pop(id))
                self.startable[id] = None
            self.halting = self.halting or bool(view.conflicted)

    def completed(self, e: TaskCompleted) -> None:
        task = self.tasks.pop(TaskId(e.task))
        self.startable.pop(task.id, None)
        self.running -= task.state == "started"
        place = self.schedule.clock.place(task.rank, task.key.node, task.index, None if task.payload is NOTHING else task.origin)
        self._done(task, place, e.update)
        self.schedule.complete(task.key, task.index, sent_of(e.sent))
        if not self.schedule.is_running(task.key):
            self.pre.pop(task.key, None)

    def _done(self, task: Task, place: Place, update: Mapping[str, Any]) -> None:
        key = task.key
        self.done.setdefault(key, {})[task.index] = (place, update)
        older = self.last.get(key.node)
        if older is not None and older != key:
            self.post.pop(older, None)
        self.last[key.node] = key
        self.post.setdefault(key, {})[task.index] = extend(self.pre[key], update, key, place, self.reducers)

    def edited(self, e: StateEdited) -> None:
        place = (e.rank,)
        self.edits.append((place, e.update))
        key = FiringKey(EDIT, 0, ())
        if self.final is not None:
            self.final = extend(self.final, e.update, key, place, self.reducers)
        self.pre = {k: extend(v, e.update, key, place, self.reducers) for k, v in self.pre.items()}
        self.post = {k: {i: extend(v, e.update, key, place, self.reducers) for i, v in vs.items()} for k, vs in self.post.items()}
        if e.as_node is None:
            self.schedule.edit(e.rank)
        else:
            self.tasks.clear()
            self.startable.clear()
            self.pre.clear()
            self.ended, self.stopped, self.halting, self.final = None, None, False, None
            self.schedule.jump(e.as_node, e.rank, sent_of(e.sent))

    def unfire(self) -> None:
        """What ran waits again (a fork, an edit): it will get tasks of its own."""
        for key in list(self.schedule.running()):
            self.schedule.unfire(key)
            self.pre.pop(key, None)
        self._drop_tasks()

    def _drop_tasks(self) -> None:
        self.dropped.update(self.tasks)
        self.tasks.clear()
        self.startable.clear()
        self.closed.update(dict.fromkeys(self.questions, "superseded"))
        self.questions.clear()
        self.running = 0

    def forked(self, run: str) -> None:
        self.id = RunId(run)
        if self.ended != "completed":
            self.unfire()
            self.ended, self.stopped, self.halting = None, None, False

    def resumed(self, e: RunResumed) -> None:
        self.visits_allowed += isinstance(self.stopped, RunCapped)
        self.max_steps = e.max_steps or self.max_steps
        self.ended, self.stopped, self.halting = None, None, False
        for t in self.tasks.values():
            if t.state in ("failed", "dead"):
                t.state, t.failures, t.losses = "ready", 0, 0
                self.startable[t.id] = None
            self.halting = self.halting or bool(t.state == "ready" and self.pre[t.key].conflicted)

    def end(self, status: str, event: Any) -> None:
        self.ended, self.stopped = status, event
        if status == "completed":
            self.final = self._merged(self.schedule.ends())
            self.pre.clear()
            self.post.clear()
        if status == "cancelled":
            self.final = self.view()
            self._drop_tasks()

    def adopted(self, e: RunAdopted, spec: GraphSpec) -> None:
        self.spec, self.reducers = spec, reducers_of(spec)
        self.schedule.spec = spec


def reducers_of(spec: GraphSpec) -> dict[str, Callable[[Any, Any], Any] | None]:
    return {f.name: reducers.get(f.reducer) if f.reducer else None for f in spec.fields}


def sent_of(raw: Iterable[Any]) -> list[Sent]:
    """Targets as events store them."""
    return [Sent(x) if isinstance(x, str) else Sent(x[0], x[1]) for x in raw]
