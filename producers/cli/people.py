"""inbox, answer: questions that wait for people."""
from __future__ import annotations

import sys

import click

from ledgergraph.consumers.edits import find_run
from ledgergraph.producers.bootstrap import open_log
from ledgergraph.producers.cli.output import console, json_option, log_option, plain, put_json, table, teaches, when
from ledgergraph.producers.cli.runs import app_of_run, drive, person, read_input
from ledgergraph.projections.history import History
from ledgergraph.schemas.errors import QuestionError


@click.command()
@log_option
@json_option
@teaches
def inbox(log: str | None, as_json: bool) -> None:
    """Questions that wait for people, oldest first."""
    store = open_log(log)
    past = History(store)
    rows = store.questions()
    values = {q.question: find_run(past, q.run).current.questions[q.question] for q in rows}
    if as_json:
        put_json([{**q._asdict(), "value": values[q.question].value, "shown": values[q.question].asked.shown} for q in rows])
    else:
        table(f"{len(rows)} open questions", ["question", "run", "node", "kind", "asked", "what"],
              [(q.question, q.run, q.node, q.kind, when(q.asked_at), str(plain(values[q.question].value))[:200]) for q in rows])


@click.command()
@click.argument("question")
@click.option("--value", required=True, help="The answer as JSON, or @file.")
@click.option("--why", default="", help="The reason: kept with the answer.")
@click.option("--shown", default="", help="Digest of what was looked at (from the inbox): another one voids the answer.")
@click.option("--by", default=None, help="Who answers; whoever is logged in by default.")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@click.option("--no-resume", is_flag=True, help="Record the answer and leave going on to somebody else.")
@log_option
@json_option
@teaches
def answer(question: str, value: str, why: str, shown: str, by: str | None, graph: str | None, no_resume: bool, log: str | None,
           as_json: bool) -> None:
    """Answer a QUESTION, and go on with its run."""
    store = open_log(log)
    row = next((q for q in store.questions() if q.question == question), None)
    if row is None:
        raise QuestionError(f"question {question!r} is not open in this log. `ledgergraph inbox` lists what is.")
    app, thread = app_of_run(store, row.run, graph)
    actor = f"person:{by}" if by else person()
    app.answer(question, read_input(value), actor=actor, why=why, shown=shown)
    if no_resume:
        put_json({"question": question, "run": row.run, "status": "answered"}) if as_json else console.print("answered")
        sys.exit(0)
    drive(app, None, as_json, thread_id=thread, actor=actor)
