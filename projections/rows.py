"""The rows of tasks, runs and questions that are written in the same transaction as the events that they come from."""
from __future__ import annotations

from ledgergraph.eventstore.store import QuestionRow, Rows, RunRow, TaskRow, TaskState
from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.run_tasks import Question, State, Task
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.schemas.ids import RunId, TaskId

_STATES: dict[State, TaskState] = {"ready": "ready", "started": "started", "retry": "waiting", "failed": "failed",
                                   "parked": "parked", "dead": "dead"}


def changed_rows(s: StreamState) -> Rows:
    """What changed since it was last asked; clears the marks."""
    run = s.run
    if run is None:
        return Rows()
    put: list[TaskRow] = []
    drop: list[TaskId] = []
    for id in s.touched_tasks:
        task = run.tasks.get(id)
        if task is None:
            drop.append(id)
        else:
            put.append(task_row(s, run, task))
    asked = [question_row(s, run, q, run.questions[q]) for q in s.touched_questions if q in run.questions]
    closed = tuple(q for q in s.touched_questions if q not in run.questions)
    s.touched_tasks.clear()
    s.touched_questions.clear()
    runs: tuple[RunRow, ...] = ()
    if s.status_at[0] != s.shown_at:
        s.shown_at = s.status_at[0]
        runs = (run_row(s, run),)
    return Rows(tuple(put), tuple(drop), runs, tuple(asked), closed)


def all_rows(s: StreamState) -> Rows:
    """The rows of a stream's last run, for a rebuild."""
    run = s.run
    if run is None:
        return Rows()
    return Rows(tuple(task_row(s, run, t) for t in run.tasks.values()), (), (run_row(s, run),),
                tuple(question_row(s, run, q, x) for q, x in run.questions.items()), ())


def task_row(s: StreamState, run: RunState, t: Task) -> TaskRow:
    return TaskRow(t.id, run.id, s.stream, t.key.node, run.spec.node[t.key.node].queue, _STATES[t.state], t.attempt,
                   t.worker if t.state == "started" else "", t.due_at, run.spec.fingerprint)


def run_row(s: StreamState, run: RunState) -> RunRow:
    version, at = s.status_at
    return RunRow(RunId(run.id), s.stream, run.thread, run.spec.name, run.spec.fingerprint, run.status, run.started_at, at, version)


def question_row(s: StreamState, run: RunState, id: str, q: Question) -> QuestionRow:
    task = run.tasks[TaskId(q.task)]
    return QuestionRow(id, run.id, s.stream, q.task, task.key.node, q.kind, q.asked_at, q.version)
