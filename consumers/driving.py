"""How a run begins, goes on and is answered: the decisions of a caller, offered to the stream's ledger."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ledgergraph.consumers import decide
from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.command import Command
from ledgergraph.consumers.ledger import Ledger
from ledgergraph.projections.run_state import OPEN, RunState
from ledgergraph.projections.run_tasks import Task
from ledgergraph.schemas.errors import FingerprintMismatch, GraphError, InvalidInput, QuestionError, RunEnded, RunNotFound, ThreadBusy
from ledgergraph.schemas.events.question import QuestionAnswered
from ledgergraph.schemas.events.run import RunAdopted, RunStarted
from ledgergraph.schemas.graph import START
from ledgergraph.schemas.ids import RunId, ThreadId

CLOCK_VERSION = 1
"""Of the scheduling rules; a run keeps the one that it was started with."""

SHAPE = ("edges", "routes", "barriers", "loops", "back", "clock")
"""What of a spec a running run depends on, beside its nodes' names: a version that differs in it cannot take the run over."""

Lives = Callable[[str], bool]
"""Whether a worker still holds its tasks of this stream."""


@dataclass(frozen=True)
class Start:
    """A new run as its caller asks for it."""

    run: RunId
    thread: ThreadId
    input: Any
    as_of: str | None = None
    max_steps: int | None = None
    options: Mapping[str, Any] | None = None


def start(ledger: Ledger, binding: Binding, lives: Lives, s: Start) -> None:
    """Begins a run. Raises ThreadBusy where another one holds the thread, and what makes the input unfit."""
    refuse_busy(ledger.state.run, s.thread, lives)
    if s.input is None:
        raise InvalidInput(f"thread {s.thread!r} has nothing to go on with, and there is no input. Give an input to start a run.")
    update = binding.schema.check(s.input, place="the input")
    encoded = binding.schema.encode_update(update, place="the input")
    before = ledger.state.values()
    initial = {k: v for k, v in binding.schema.initial().items() if k not in before}
    sent: list[Any] = []
    if START in binding.routes:
        sent = binding.decide(START, binding.schema.view({**initial, **before, **update}), None)
    spec = binding.spec
    ledger.offer(RunStarted(s.run, s.thread, spec.name, spec.version, spec.fingerprint, spec.fingerprint, CLOCK_VERSION, update,
                            initial, sent, {}, s.as_of, s.max_steps, dict(s.options or {})), encoded=encoded)
    run = ledger.state.run
    assert run is not None
    decide.react(ledger.offer, run)


def refuse_busy(run: RunState | None, thread: str, lives: Lives) -> None:
    if run is None or run.status not in OPEN:
        return
    status = run.status
    if status == "running":
        held = any(t.state == "started" and lives(t.worker) for t in run.tasks.values())
        if held:
            raise ThreadBusy(thread, run.id, "running", "Wait for it, cancel it, or use another thread.")
        raise ThreadBusy(thread, run.id, "interrupted (its process has ended)",
                         f"Go on with it: `ledgergraph resume {run.id}` or invoke(None), or cancel it.")
    remedy = {"waiting": f"Answer its question (invoke(Command(resume=...)) or `ledgergraph answer`), cancel or fork it: "
                         f"{', '.join(run.questions)}.",
              "failed": f"`ledgergraph resume {run.id}` or invoke(None) tries again what failed; or cancel it, or fork it.",
              "capped": f"`ledgergraph resume {run.id} --max-steps N` goes on; or cancel it, or fork it."}[status]
    raise ThreadBusy(thread, run.id, status, remedy)


def go_on(ledger: Ledger, binding: Binding, lives: Lives, max_steps: int | None = None, why: str = "asked for") -> None:
    """Goes on with a failed, capped or crashed run. Raises RunEnded, RunNotFound, ThreadBusy, FingerprintMismatch."""
    run = current(ledger)
    if run.status not in OPEN:
        raise RunEnded(run.id, run.status)
    serve(ledger, binding, run)
    started = [t for t in run.tasks.values() if t.state == "started"]
    if any(lives(t.worker) for t in started):
        raise ThreadBusy(run.thread, run.id, "running", "A live worker holds it: wait for it, or cancel it.")
    release(ledger, run, started)
    if run.ended:
        decide.resume(ledger.offer, run, why, max_steps)
    else:
        decide.react(ledger.offer, run)


def release(ledger: Ledger, run: RunState, started: list[Task]) -> None:
    decide.release_lost(ledger.offer, run, started, "its worker has died")


def serve(ledger: Ledger, binding: Binding, run: RunState, adopt: str | None = None) -> None:
    """Raises FingerprintMismatch where the graph at hand is another one than the run's. `adopt`: why a person lets it serve."""
    if run.spec.fingerprint == binding.spec.fingerprint:
        return
    if adopt is None:
        raise FingerprintMismatch(run.id, run.spec.name, run.spec.fingerprint, binding.spec.fingerprint)
    differs = [name for name in SHAPE if getattr(run.spec, name) != getattr(binding.spec, name)]
    if differs or run.spec.names != binding.spec.names:
        raise GraphError(f"run {run.id} cannot go on under this version of graph {run.spec.name!r}: its {', '.join(differs) or 'nodes'} "
                         "differ, so that what is scheduled would. Load the version that started it, or start a new run in another thread.")
    ledger.offer(RunAdopted(binding.spec.fingerprint, binding.spec.fingerprint, adopt))


def current(ledger: Ledger) -> RunState:
    if ledger.state.run is None:
        raise RunNotFound(f"run in thread {ledger.state.thread!r}", "Start one with an input.")
    return ledger.state.run


def answer(ledger: Ledger, binding: Binding, lives: Lives, command: Command[Any], *, actor: str = "", shown: str = "",
           why: str = "") -> None:
    """Answers the run's open question, or several by their ids. Raises QuestionError for one that is unknown, answered or
    superseded, and where it is not clear which is meant."""
    run = current(ledger)
    for question, value in answers_of(run, command.resume).items():
        open_ = run.questions.get(question)
        if open_ is None:
            raise QuestionError(no_question(run, question))
        if shown and shown != open_.asked.shown:
            raise QuestionError(f"question {question}: the answer is to another version of what was asked (answered {shown[:12]}, "
                                f"asked {open_.asked.shown[:12]}). Look at it again with `ledgergraph inbox` and answer that.")
        ledger.offer(QuestionAnswered(question, open_.asked.revision, value, shown or open_.asked.shown, why, actor or ledger.actor),
                     actor=actor or None)
    lost = [t for t in run.tasks.values() if t.state == "started" and not lives(t.worker)]
    release(ledger, run, lost)
    if not run.ended:
        decide.react(ledger.offer, run)


def answers_of(run: RunState, resume: Any) -> dict[str, Any]:
    """Question id -> answer."""
    known = {*run.questions, *run.closed}
    given = cast(dict[Any, Any], resume) if isinstance(resume, dict) else {}
    if given and all(isinstance(k, str) and (k in known or _like_id(k)) for k in given):
        return given
    if not run.questions:
        raise QuestionError(f"run {run.id} ({run.status}) has no open question" + (
            f"; its last one was {list(run.closed.values())[-1]}" if run.closed else "") + ". `ledgergraph inbox` lists what is open.")
    if len(run.questions) > 1:
        raise QuestionError(f"run {run.id} has {len(run.questions)} open questions: say which, as Command(resume={{id: answer}}). "
                            f"Open: {', '.join(run.questions)}.")
    return {next(iter(run.questions)): resume}


def _like_id(text: str) -> bool:
    return len(text) == 24 and all(c in "0123456789abcdef" for c in text)


def no_question(run: RunState, question: str) -> str:
    how = run.closed.get(question)
    if how == "answered":
        return f"question {question} of run {run.id} was answered already; the first answer stands."
    if how:
        return f"question {question} of run {run.id} was {how}: its task starts anew and asks again if it must."
    return f"run {run.id} has no question {question}. Open: {', '.join(run.questions) or 'none'}."
