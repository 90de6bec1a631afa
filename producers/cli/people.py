"""inbox, answer: questions that wait for people."""
from __future__ import annotations

import sys

import click

from ledgergraph.eventstore.store import EventStore
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import console, json_option, log_option, plain, put_json, table, teaches, when
from ledgergraph.producers.cli.runs import find, go_on, person, read_input, row_of, state_of
from ledgergraph.projections.history import History
from ledgergraph.schemas.envelope import record
from ledgergraph.schemas.errors import QuestionError
from ledgergraph.schemas.events.catalogue import decode
from ledgergraph.schemas.events.question import QuestionAnswered, QuestionSuperseded

PAGE = 5_000
"""Events that are read at a time."""


@click.command()
@log_option
@json_option
@teaches
def inbox(log: str | None, as_json: bool) -> None:
    """Questions that wait for people, oldest first."""
    store = open_log(log)
    rows = store.questions()
    values = {q.question: state_of(store, row_of(store, q.run)).current.questions[q.question] for q in rows}
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
        raise QuestionError(_fate(store, question))
    given = read_input(value)
    found = find(store, row.run, graph)
    actor = f"person:{by}" if by else person()
    found.app.answer(question, given, actor=actor, why=why, shown=shown)
    if no_resume:
        put_json({"question": question, "run": row.run, "status": "answered"}) if as_json else console.print("answered")
        sys.exit(0)
    go_on(found, as_json, actor=actor)


def _fate(store: EventStore, question: str) -> str:
    """Why a question is not open: read from the log, since its row is gone."""
    past, after = History(store), 0
    asked = ""
    while page := store.read_all(after, PAGE):
        after = page[-1].position or after
        for stored in page:
            if not stored.type.startswith("question."):
                continue
            event = past.resolved(decode(stored))
            if event.question == question and isinstance(event, QuestionAnswered):
                return (f"question {question} was answered by {record(stored).actor or 'somebody'} at {when(stored.recorded_at)}; the first "
                        "answer stands. `ledgergraph inbox` lists what is open.")
            if event.question == question:
                asked = "was superseded" if isinstance(event, QuestionSuperseded) else "no longer waits, since its run ended or went on elsewhere"
    return f"question {question!r} {asked or 'is not known in this log'}. `ledgergraph inbox` lists what is open."
