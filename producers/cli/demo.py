"""demo: the main job. Factor research on real prices, to a signal that a person approves, and the proof of what was done."""
from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from ledgergraph.consumers.app import App
from ledgergraph.consumers.graphs.factor_research import screen
from ledgergraph.consumers.graphs.factor_research.graph import NAME, graph
from ledgergraph.consumers.replay import verify_run
from ledgergraph.eventstore import chain
from ledgergraph.eventstore.opening import shown_url
from ledgergraph.eventstore.store import EventStore
from ledgergraph.producers.bootstrap import log_url
from ledgergraph.producers.cli.logs import open_log, until_the_end
from ledgergraph.producers.cli.output import REJECTED, WAITING, console, json_option, log_option, put_json, teaches
from ledgergraph.producers.cli.runs import driven, person
from ledgergraph.projections.history import History
from ledgergraph.schemas.as_of import parse_as_of
from ledgergraph.schemas.errors import InvalidInput
from ledgergraph.schemas.ids import RunId


class Answer(NamedTuple):
    """What the command line says about the approval; `approved` None: it says nothing."""

    approved: bool | None
    why: str


def number(text: str) -> str:
    """A text that is a number. Raises InvalidInput."""
    try:
        if Decimal(text).is_finite():
            return text
    except InvalidOperation:
        pass
    raise InvalidInput(f"the cap {text!r} is no number. Give a share of 1, for example --cap 0.15.")


@click.command()
@click.option("--as-of", default="2010-06-30", show_default=True, help="What was known by the end of that day in New York is all that is read.")
@click.option("--prices", default="", metavar="FILE", help="A parquet or csv file in place of the packaged prices.")
@click.option("--cap", default="0.15", show_default=True, help="The largest weight of a company.")
@click.option("--out", default="signals", show_default=True, type=click.Path(file_okay=False), help="The folder for the signal.")
@click.option("--thread", default=None, help="The thread to run in. Default: factors-AS_OF.")
@click.option("--approve", "approved", flag_value=True, type=bool, default=None, help="Answer the approval with yes.")
@click.option("--reject", "approved", flag_value=False, type=bool, help="Answer the approval with no.")
@click.option("--why", default="", help="The reason for the answer; a standard one by default.")
@log_option
@json_option
@teaches
def demo(as_of: str, prices: str, cap: str, out: str, thread: str | None, approved: bool | None, why: str, log: str | None,
         as_json: bool) -> None:
    """Factor research on daily prices of 20 US companies: six factors in parallel, validation, a portfolio, a person's approval, a
    published signal; then the proof from the log."""
    store = open_log(log, must_exist=False)
    app = until_the_end(graph.compile(store))
    name = thread or f"factors-{as_of}"
    given = app.binding.schema.from_json({"prices": prices and str(Path(prices).resolve()), "cap": number(cap), "out": str(Path(out).resolve())})
    state = _to_question_or_end(app, name, given, as_of, as_json)
    if "__interrupt__" in state:
        state = _answered(app, name, state, Answer(approved, why), as_json)
    _show(app, store, name, state, shown_url(log_url(log)), as_json)
    sys.exit(REJECTED if state.get("status") == "rejected" else 0)


def _to_question_or_end(app: App, thread: str, given: dict[str, Any], as_of: str, as_json: bool) -> dict[str, Any]:
    """Starts the thread's run, or goes on with one that stopped; a finished one is only shown."""
    snapshot = app.get_state(thread_id=thread)
    status = snapshot.metadata.get("status")
    if status in ("completed", "waiting", "running", "failed", "capped"):
        _refuse_others(app, thread, given, as_of)
    if status == "completed":
        _say(as_json, f"Thread {thread!r} has a finished run, which is shown here. For another one: --thread NAME.")
        return snapshot.values
    if status == "waiting":
        _say(as_json, f"Going on with run {snapshot.metadata['run']}, which waits for its approval.")
        return {**snapshot.values, "__interrupt__": snapshot.interrupts}
    if status in ("running", "failed", "capped"):
        _say(as_json, f"Going on with run {snapshot.metadata['run']}, which was {'interrupted' if status == 'running' else status}.")
        return driven(app, None, as_json, thread=thread, thread_id=thread)
    _say(as_json, f"Factor research as of {as_of}, thread {thread!r}")
    return driven(app, given, as_json, thread=thread, thread_id=thread, as_of=as_of, actor=person())


def _refuse_others(app: App, thread: str, given: dict[str, Any], as_of: str) -> None:
    """The thread's run keeps what it was started with: what was now asked for otherwise is an error, never passed over."""
    snapshot = app.get_state(thread_id=thread)
    started = app.history.load(snapshot.metadata["stream"]).state.current.started
    moment = parse_as_of(as_of, datetime.now(UTC))
    asked = {"as_of": moment.isoformat() if moment else None, **given}
    runs = {"as_of": started.as_of, **{name: snapshot.values.get(name) for name in given}}
    context = click.get_current_context()
    for name, value in asked.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and value != runs[name]:
            raise InvalidInput(f"thread {thread!r} holds run {snapshot.metadata['run']} with {name} {runs[name]}, not {value}. Leave "
                               f"--{name.replace('_', '-')} out to go on with that run, or start another one with --thread NAME.")


def _answered(app: App, thread: str, state: dict[str, Any], answer: Answer, as_json: bool) -> dict[str, Any]:
    """Shows the approval's screen, takes an answer, and goes on. Ends the command where nobody answers."""
    question = state["__interrupt__"][0]
    _say(as_json, f"\n{question.value['screen']}\n")
    said = answer if answer.approved is not None else _asked(as_json)
    if said is None:
        run = app.get_state(thread_id=thread).metadata["run"]
        if as_json:
            put_json({"status": "waiting", "run": run, "thread": thread, "questions": [{"id": question.id, "value": question.value}]})
        else:
            console.print("It waits for an approval. Go on with: ledgergraph demo --approve --why '…' (or --reject), or\n"
                          f"  ledgergraph answer {question.id} --value '{{\"approved\": true, \"why\": \"…\"}}'", markup=False, soft_wrap=True)
        sys.exit(WAITING)
    why = said.why or ("it was looked at and found right" if said.approved else "it was looked at and refused")
    shown = app.get_state(thread_id=thread)
    digest = _shown_digest(app, shown.metadata["stream"], question.id)
    app.answer(question.id, {"approved": said.approved, "why": why}, actor=person(), why=why, shown=digest)
    return driven(app, None, as_json, thread=thread, thread_id=thread)


def _shown_digest(app: App, stream: Any, question: str) -> str:
    run = app.history.load(stream).state.current
    return str(run.questions[question].asked.shown)


def _asked(as_json: bool) -> Answer | None:
    """What the person at the terminal says; None: there is nobody."""
    if as_json or not sys.stdin.isatty():
        return None
    approved = click.confirm("Publish this signal?")
    return Answer(approved, click.prompt("Why"))


def _say(as_json: bool, text: str) -> None:
    if not as_json:
        console.print(text, markup=False, soft_wrap=True)


def prove(app: App, store: EventStore, run: RunId) -> dict[str, int]:
    """Rebuilds the run from the log, verifies the chain, and replays every node; counts of what was compared. Raises DamagedLog;
    a difference is counted."""
    row = store.run(run)
    assert row is not None
    loaded = History(store).load(row.stream)
    verified = chain.verify(store)
    replayed = verify_run(History(store), app.binding, run)
    return {"events": int(loaded.state.version), "hashes": verified.events, "nodes": replayed.nodes, "fields": replayed.fields,
            "effects": replayed.effects, "differences": len(replayed.differences)}


def _show(app: App, store: EventStore, thread: str, state: dict[str, Any], log: str, as_json: bool) -> None:
    snapshot = app.get_state(thread_id=thread)
    run = RunId(snapshot.metadata["run"])
    proof = prove(app, store, run)
    same = {k: v for k, v in state.items() if k != "__interrupt__"} == snapshot.values
    if as_json:
        put_json({"graph": NAME, "status": state.get("status"), "run": run, "thread": thread, "log": log, "proof": {**proof, "same state": same},
                  "state": {k: v for k, v in state.items() if k not in ("frame", "panels")}})
        return
    console.print("\n" + screen.report(state), markup=False, soft_wrap=True)
    console.print(f"\nLog       {log}\nRun       {run}\n", markup=False, soft_wrap=True)
    console.print(f"Proof     the state rebuilt from {proof['events']} events is {'the same' if same else 'NOT the same'}; "
                  f"{proof['hashes']} hashes are right; {proof['nodes']} node executions replayed on recorded inputs and {proof['effects']} "
                  f"recorded effects gave {proof['fields']} fields, " + ("all the same, byte for byte." if not proof["differences"] else
                  f"{proof['differences']} of them DIFFERENT: see ledgergraph replay verify {run}."), markup=False, soft_wrap=True)
