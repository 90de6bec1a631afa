"""A stream as folded from its events: the runs of a thread (or of a branch of it), one at a time.

`evolve` is the one place where an event changes state. Live runs, recoveries, forks, state at a version and replays all
come through it.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.run_tasks import Effect, Failure, Question, Task
from ledgergraph.projections.schedule import FiringKey
from ledgergraph.schemas.events import effect, question, run, task, thread
from ledgergraph.schemas.graph import GraphSpec
from ledgergraph.schemas.ids import StreamId, TaskId, ThreadId, Version

LoadSpec = Callable[[str], GraphSpec]
"""Digest of a stored spec -> the spec."""


class StreamState:
    """What a stream's events say. `touched` collects what changed since `clear`, for the rows written with an append."""

    def __init__(self, stream: StreamId, load_spec: LoadSpec) -> None:
        self.stream, self.load_spec = stream, load_spec
        self.thread = ThreadId(stream.removeprefix("thread:"))
        self.version = Version(0)
        self.changed_at = 0
        self.run: RunState | None = None
        """The current or last one."""
        self.kept_at = Version(0)
        """Version of the snapshot that it was read from, or that was made of it last."""
        self.head: StreamId | None = None
        """The branch that the thread shows; None: this stream."""
        self.touched_tasks: set[TaskId] = set()
        self.touched_questions: set[str] = set()
        self.status: str | None = None
        """Of the run."""
        self.status_at = (Version(0), 0)
        """(version, time) of the event since which the run has its status."""
        self.shown_at: Version | None = None
        """Version of the run's row as last written."""

    def values(self) -> Mapping[str, Any]:
        return {} if self.run is None else self.run.view().totals

    def evolve(self, event: Any, at: int = 0) -> None:
        """Applies one event, recorded at that time (microseconds), and counts the version up."""
        self.version = Version(self.version + 1)
        self.changed_at = at
        _EVOLVE[type(event)](self, event)
        if self.run is not None and (status := self.run.status) != self.status:
            self.status, self.status_at = status, (self.version, at)

    def begin(self, e: task.Begun) -> None:
        """Applies a part of the last event that came after it was applied."""
        _task_started(self, e)

    # Helpers of the functions below

    @property
    def current(self) -> RunState:
        assert self.run is not None, f"{self.stream}: an event of a run before run.started"
        return self.run

    def task(self, id: str) -> Task:
        self.touched_tasks.add(TaskId(id))
        return self.current.tasks[TaskId(id)]

    def touch_all(self) -> None:
        if self.run is not None:
            self.touched_tasks.update(self.run.tasks)
            self.touched_questions.update(self.run.questions)


def _run_started(s: StreamState, e: run.RunStarted) -> None:
    before = s.values()
    s.run = RunState(e, s.load_spec(e.spec), before, s.changed_at)
    s.thread = s.run.thread
    s.status = None


def _ended(status: str) -> Callable[[StreamState, Any], None]:
    def apply(s: StreamState, e: Any) -> None:
        s.touch_all()
        s.current.end(status, e)
    return apply


def _run_resumed(s: StreamState, e: run.RunResumed) -> None:
    s.touch_all()
    s.current.resumed(e)


def _run_adopted(s: StreamState, e: run.RunAdopted) -> None:
    s.current.adopted(e, s.load_spec(e.spec))


def _tasks_ready(s: StreamState, e: task.TasksReady) -> None:
    s.current.ready(e.tasks)
    s.touched_tasks.update(TaskId(t.task) for t in e.tasks)
    for b in e.begun:
        _task_started(s, b)


def _task_started(s: StreamState, e: task.TaskStarted | task.Begun) -> None:
    t = s.task(e.task)
    t.state, t.attempt, t.worker = "started", e.attempt, e.worker
    s.current.startable.pop(t.id, None)
    s.current.running += 1


def _task_completed(s: StreamState, e: task.TaskCompleted) -> None:
    s.touched_tasks.add(TaskId(e.task))
    s.current.completed(e)


def _task_failed(s: StreamState, e: task.TaskFailed) -> None:
    t = s.task(e.task)
    t.failures += 1
    s.current.failures[t.id] = e.kind, e.message
    if e.continued:
        s.current.continued.append(Failure(t.key, e.kind, e.message))
        s.current.completed(task.TaskCompleted(e.task, e.attempt, {}))
        return
    s.current.running -= t.state == "started"
    if e.retry_at is not None:
        t.state, t.due_at = "retry", e.retry_at
        s.current.startable[t.id] = None
    else:
        t.state = "failed"
        s.current.halting = True


def _task_released(s: StreamState, e: task.TaskReleased) -> None:
    t = s.task(e.task)
    s.current.running -= t.state == "started"
    t.state = "ready"
    s.current.startable[t.id] = None
    t.losses += e.lost


def _task_refused(s: StreamState, e: task.TaskRefused) -> None:
    """A fact that changes nothing."""


def _task_dead(s: StreamState, e: task.TaskDead) -> None:
    s.task(e.task).state = "dead"
    s.current.startable.pop(TaskId(e.task), None)
    s.current.halting = True


def _context_recorded(s: StreamState, e: task.ContextRecorded) -> None:
    if TaskId(e.task) in s.current.tasks:
        s.current.tasks[TaskId(e.task)].recorded.extend(e.values)


def _cap_redirected(s: StreamState, e: task.CapRedirected) -> None:
    s.current.schedule.redirect(FiringKey(e.node, e.epoch, e.time), e.to)


def _barrier_proceeded(s: StreamState, e: task.BarrierProceeded) -> None:
    barrier = next(b for b in s.current.spec.barriers if b.target == e.target and set(e.sources) | set(e.missing) == set(b.sources))
    s.current.schedule.proceed(barrier)


def _effect_intended(s: StreamState, e: effect.EffectIntended) -> None:
    t = s.current.tasks[TaskId(e.task)]
    known = t.effects.get(e.key)
    if known is None:
        t.effects[e.key] = Effect(e.name, e.number, e.key, e.request, e.on_unknown, e.attempt)
    else:
        known.attempt, known.outcome = e.attempt, "unknown"


def _effect_succeeded(s: StreamState, e: effect.EffectSucceeded) -> None:
    known = s.current.tasks[TaskId(e.task)].effects[e.key]
    known.outcome, known.result = "succeeded", e.result


def _effect_failed(s: StreamState, e: effect.EffectErred) -> None:
    known = s.current.tasks[TaskId(e.task)].effects[e.key]
    known.outcome, known.error = "failed", (e.kind, e.message)


def _question_asked(s: StreamState, e: question.QuestionAsked) -> None:
    t = s.task(e.task)
    s.current.running -= t.state == "started"
    t.state = "parked"
    q = Question(e, s.changed_at, s.version)
    t.questions.append(q)
    s.current.questions[e.question] = q
    s.touched_questions.add(e.question)


def _question_answered(s: StreamState, e: question.QuestionAnswered) -> None:
    q = s.current.questions.pop(e.question)
    q.open, q.answer, q.answered_by = False, e.value, e.by
    s.current.closed[e.question] = "answered"
    s.touched_questions.add(e.question)
    t = s.task(q.task)
    t.state = "ready"
    s.current.startable[t.id] = None


def _question_superseded(s: StreamState, e: question.QuestionSuperseded) -> None:
    s.current.questions.pop(e.question, None)
    s.current.closed[e.question] = "superseded"
    s.touched_questions.add(e.question)


def _state_edited(s: StreamState, e: thread.StateEdited) -> None:
    s.touch_all()
    s.current.unfire()
    s.current.edited(e)


def _thread_forked(s: StreamState, e: thread.ThreadForked) -> None:
    s.thread = ThreadId(e.thread)
    s.current.forked(e.run)
    s.current.started_at = s.changed_at
    s.status, s.shown_at = None, None


def _head_moved(s: StreamState, e: thread.HeadMoved) -> None:
    s.head = StreamId(e.stream)


_EVOLVE: dict[type, Callable[[StreamState, Any], None]] = {
    run.RunStarted: _run_started, run.RunCompleted: _ended("completed"), run.RunFailed: _ended("failed"),
    run.RunCapped: _ended("capped"), run.RunCancelled: _ended("cancelled"), run.RunResumed: _run_resumed,
    run.RunAdopted: _run_adopted, task.TasksReady: _tasks_ready, task.TaskStarted: _task_started,
    task.TaskCompleted: _task_completed, task.TaskFailed: _task_failed, task.TaskReleased: _task_released,
    task.TaskRefused: _task_refused, task.TaskDead: _task_dead, task.ContextRecorded: _context_recorded,
    task.CapRedirected: _cap_redirected, task.BarrierProceeded: _barrier_proceeded, effect.EffectIntended: _effect_intended,
    effect.EffectSucceeded: _effect_succeeded, effect.EffectErred: _effect_failed, question.QuestionAsked: _question_asked,
    question.QuestionAnswered: _question_answered, question.QuestionSuperseded: _question_superseded,
    thread.StateEdited: _state_edited, thread.ThreadForked: _thread_forked, thread.HeadMoved: _head_moved,
}
