"""run, resume, cancel, fork: what changes a run."""
from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Any

import click
import orjson

from ledgergraph.consumers.app import App
from ledgergraph.consumers.edits import find_run
from ledgergraph.eventstore.store import EventStore
from ledgergraph.producers.bootstrap import find_graph, open_log
from ledgergraph.producers.cli.output import WAITING, console, exit_code, fail, json_option, log_option, plain, put_json, teaches
from ledgergraph.producers.cli.progress import follow
from ledgergraph.projections.history import History
from ledgergraph.schemas.errors import InvalidInput, LedgergraphError, RunNotFound
from ledgergraph.schemas.ids import RunId


def person() -> str:
    """Whoever is logged in here."""
    try:
        return f"person:{getpass.getuser()}"
    except OSError:
        return "person:unknown"


def app_of_run(store: EventStore, run: str, graph: str | None) -> tuple[App, str]:
    """(the run's graph over the log, its thread)."""
    row = store.run(RunId(run))
    if row is None:
        raise RunNotFound(f"run {run!r}")
    return find_graph(graph or row.graph, store), row.thread


def read_input(text: str | None) -> Any:
    """JSON, or @file with JSON. Raises InvalidInput."""
    if text is None:
        return None
    try:
        return orjson.loads(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as e:
        raise InvalidInput(f"the input file {text[1:]!r} cannot be read ({e.strerror}).") from e
    except orjson.JSONDecodeError as e:
        raise InvalidInput(f"the input is no JSON ({e}). Write e.g. --input '{{\"field\": 1}}', or --input @file.json.") from e


def input_of(app: App, text: str) -> Any:
    """The run's input out of JSON, its values as the state's types have them."""
    given: Any = read_input(text)
    return app.binding.schema.from_json(given) if type(given) is dict else given


def drive(app: App, input: Any, as_json: bool, **options: Any) -> None:
    """Runs until it ends or waits, with progress, and shows what came out."""
    try:
        state = follow(app, input, quiet=as_json, **options)
    except LedgergraphError as e:
        fail(e, as_json, exit_code(e))
    except Exception as e:
        fail(e, as_json, 5)
    questions = state.pop("__interrupt__", ())
    if as_json:
        put_json({"status": "waiting" if questions else "completed", "state": state,
                  "questions": [{"id": q.id, "value": q.value} for q in questions]})
    else:
        for k, v in state.items():
            console.print(f"[bold]{k}[/]: ", end="")
            console.print(str(plain(v))[:2000], markup=False)
        for q in questions:
            console.print(f"\n[bold yellow]waits for an answer[/] to question {q.id}")
            console.print(str(plain(q.value)), markup=False)
            console.print(f"Answer with: ledgergraph answer {q.id} --value JSON")
    sys.exit(WAITING if questions else 0)


@click.command()
@click.argument("graph")
@click.option("--input", "input_", default="{}", help="The input as JSON, or @file.")
@click.option("--thread", default=None, help="The thread to run in; a new one by default.")
@click.option("--as-of", default=None, help="A date (the end of that day in New York) or a time with its zone.")
@click.option("--max-steps", type=int, default=None, help="The cap of the run, in ranks.")
@log_option
@json_option
@teaches
def run(graph: str, input_: str, thread: str | None, as_of: str | None, max_steps: int | None, log: str | None, as_json: bool) -> None:
    """Start a run of GRAPH (a name, or module:attribute), show progress, stop at a question."""
    app = find_graph(graph, open_log(log, must_exist=False))
    drive(app, input_of(app, input_), as_json, thread_id=thread, as_of=as_of, max_steps=max_steps, actor=person())


@click.command()
@click.argument("run")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@click.option("--max-steps", type=int, default=None, help="A new cap for a run that reached its own.")
@log_option
@json_option
@teaches
def resume(run: str, graph: str | None, max_steps: int | None, log: str | None, as_json: bool) -> None:
    """Go on with a RUN that failed, was capped, or whose process died. What is recorded does not run again."""
    app, thread = app_of_run(open_log(log), run, graph)
    drive(app, None, as_json, thread_id=thread, max_steps=max_steps, actor=person())


@click.command()
@click.argument("run")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def retry(run: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """Try again what failed in a RUN, or what lost its workers too often; a run that did not fail is left alone."""
    store = open_log(log)
    app, thread = app_of_run(store, run, graph)
    row = store.run(RunId(run))
    if row is None or row.status != "failed":
        raise InvalidInput(f"run {run} did not fail: it is {row.status if row else 'unknown'}. `ledgergraph resume` goes on with a run that "
                           "was capped or whose process died.")
    drive(app, None, as_json, thread_id=thread, actor=person())


@click.command()
@click.argument("run")
@click.option("--reason", default="", help="Why: kept with the event.")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def cancel(run: str, reason: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """End a RUN. What its tasks return later is refused and kept as a fact."""
    app, thread = app_of_run(open_log(log), run, graph)
    app.cancel(thread_id=thread, reason=reason, actor=person())
    put_json({"run": run, "status": "cancelled"}) if as_json else console.print(f"run {run} is cancelled")


@click.command()
@click.argument("run")
@click.option("--at", type=int, default=None, help="The version of its stream to branch at; the last one by default.")
@click.option("--set", "edits", multiple=True, metavar="FIELD=JSON", help="Change a field of the state in the branch.")
@click.option("--why", default="", help="Kept with the event.")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def fork(run: str, at: int | None, edits: tuple[str, ...], why: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """Branch a RUN at a version. Nothing is copied; what ran then waits again. The thread shows the branch from then on."""
    store = open_log(log)
    app, thread = app_of_run(store, run, graph)
    state = find_run(History(store), run)
    config = {"configurable": {"thread_id": thread, "checkpoint_id": f"{state.stream}@{at if at is not None else state.version}"}}
    branch = app.fork(config, why=why, actor=person())
    if edits:
        branch = app.update_state(branch, app.binding.schema.from_json(dict(_edit(e) for e in edits)), actor=person())
    snapshot = app.get_state(branch)
    new = snapshot.metadata["run"]
    if as_json:
        put_json({"run": new, "stream": snapshot.metadata["stream"], "next": list(snapshot.next)})
    else:
        console.print(f"branch run {new}: next {', '.join(snapshot.next) or 'nothing'}. Go on with: ledgergraph resume {new}")


def _edit(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--set {text!r} is not FIELD=JSON. Write e.g. --set limit=0.1 or --set 'names=[\"KO\"]'.")
    return name, read_input(value)
