"""run, resume, retry, cancel, fork: what changes a run."""
from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import click
import orjson
from rich.markup import escape

from ledgergraph.consumers.app import App
from ledgergraph.consumers.snapshots import Config, config_of
from ledgergraph.eventstore.store import EventStore, RunRow
from ledgergraph.producers.bootstrap import graph_names
from ledgergraph.producers.cli.logs import open_graph, open_log
from ledgergraph.producers.cli.output import STOPPED, WAITING, console, exit_code, fail, json_option, log_option, plain, put_json, teaches
from ledgergraph.producers.cli.progress import follow
from ledgergraph.projections.history import History
from ledgergraph.projections.stream_state import StreamState
from ledgergraph.schemas.errors import GraphError, InvalidInput, LedgergraphError, RunEnded, RunNotFound
from ledgergraph.schemas.ids import RunId, ThreadId, new_id


def person() -> str:
    """Whoever is logged in here."""
    try:
        return f"person:{getpass.getuser()}"
    except OSError:
        return "person:unknown"


class AtHand(NamedTuple):
    """A run as a command finds it: its graph over the log, its row, and its stream as it stood at the run's last event."""

    app: App
    row: RunRow
    state: StreamState
    graph: str | None
    """As the command named it."""

    @property
    def config(self) -> Config:
        """Names the run's own stream, which need not be the one that its thread shows."""
        return config_of(self.row.thread, self.row.stream, self.state.version)


def row_of(store: EventStore, run: str) -> RunRow:
    """Raises RunNotFound."""
    row = store.run(RunId(run))
    if row is None:
        raise RunNotFound(f"run {run!r}")
    return row


def state_of(store: EventStore, row: RunRow, at: int | None = None) -> StreamState:
    """The run's stream at a version, by default as it stands, or stood before the next run began in it. Raises InvalidInput for a
    version that is none of the run's."""
    past, head = History(store), store.head(row.stream).version
    state = past.load(row.stream).state
    last = head if state.run is not None and state.run.id == row.run else int(row.version)
    if at is not None and not 1 <= at <= last:
        raise InvalidInput(f"run {row.run} has no version {at}: its stream {row.stream!r} has 1 to {last} by its end. "
                           f"`ledgergraph events {row.run}` lists them.")
    return state if at is None and last == head else past.load(row.stream, at or last).state


def find(store: EventStore, run: str, graph: str | None) -> AtHand:
    """Raises RunNotFound, GraphError."""
    row = row_of(store, run)
    return AtHand(graph_of(store, row, graph), row, state_of(store, row), graph)


def graph_of(store: EventStore, row: RunRow, graph: str | None) -> App:
    """Raises GraphError."""
    if graph is None and row.graph not in graph_names():
        raise GraphError(f"run {row.run} is of graph {row.graph!r}, which is not installed here (installed: {', '.join(graph_names())}). "
                         "Say where it is: --graph module:attribute.")
    return open_graph(graph or row.graph, store)


def hint(graph: str | None) -> str:
    """What further commands on a run of a graph that is not installed need."""
    return f" --graph {graph}" if graph and ":" in graph else ""


def find_open(store: EventStore, run: str, graph: str | None) -> AtHand:
    """A run that can go on or be ended: the last one of its stream. Raises RunEnded for another one."""
    found = find(store, run, graph)
    if found.row.status in ("completed", "cancelled"):
        raise RunEnded(run, found.row.status)
    return found


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
    return app.binding.schema.from_json(cast(dict[str, Any], given)) if isinstance(given, dict) else given


def driven(app: App, input: Any, as_json: bool, *, thread: str, **options: Any) -> dict[str, Any]:
    """The state after a run in the thread ended or came to a question, with progress meanwhile. Where it stops otherwise, or cannot
    begin, the command ends with the message and its exit code."""
    before = {r.run: r.version for r in app.store.runs(ThreadId(thread))}
    try:
        return follow(app, input, quiet=as_json, **options)
    except Exception as e:
        changed = [r for r in app.store.runs(ThreadId(thread)) if before.get(r.run) != r.version]
        if any(r.status in ("failed", "capped", "cancelled") for r in changed):
            fail(e, as_json, STOPPED)
        if isinstance(e, LedgergraphError):
            fail(e, as_json, exit_code(e))
        raise


def drive(app: App, input: Any, as_json: bool, *, thread: str, graph: str | None, **options: Any) -> NoReturn:
    """Runs until it ends or waits, and shows what came out. Ends the command."""
    state = driven(app, input, as_json, thread=thread, **options)
    questions = state.pop("__interrupt__", ())
    if as_json:
        put_json({"status": "waiting" if questions else "completed", "thread": thread, "state": state,
                  "questions": [{"id": q.id, "value": q.value} for q in questions]})
    else:
        for k, v in state.items():
            console.print(f"[bold]{escape(k)}[/]: ", end="")
            console.print(str(plain(v))[:2000], markup=False)
        for q in questions:
            console.print(f"\n[bold yellow]waits for an answer[/] to question {q.id}")
            console.print(str(plain(q.value)), markup=False)
            console.print(f"Answer with: ledgergraph answer {q.id} --value JSON{hint(graph)}", markup=False, soft_wrap=True)
    sys.exit(WAITING if questions else 0)


def go_on(found: AtHand, as_json: bool, **options: Any) -> NoReturn:
    """Goes on with the run that was found, and shows what came out."""
    drive(found.app, None, as_json, thread=found.row.thread, graph=found.graph, config=found.config, **options)


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
    app = open_graph(graph, open_log(log, must_exist=False))
    name = thread if thread is not None else f"run-{new_id().hex()}"
    drive(app, input_of(app, input_), as_json, thread=name, graph=graph, thread_id=name, as_of=as_of, max_steps=max_steps, actor=person())


@click.command()
@click.argument("run")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@click.option("--max-steps", type=int, default=None, help="A new cap for a run that reached its own.")
@click.option("--adopt", default=None, metavar="WHY", help="Let this version of the graph take over a run that another one started.")
@log_option
@json_option
@teaches
def resume(run: str, graph: str | None, max_steps: int | None, adopt: str | None, log: str | None, as_json: bool) -> None:
    """Go on with a RUN that failed, was capped, or whose process died. What is recorded does not run again."""
    found = find_open(open_log(log), run, graph)
    if adopt is not None:
        found.app.adopt(found.config, why=adopt, actor=person())
    go_on(found, as_json, max_steps=max_steps, actor=person())


@click.command()
@click.argument("run")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def retry(run: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """Try again what failed in a RUN, or what lost its workers too often; a run that did not fail is left alone."""
    found = find(open_log(log), run, graph)
    if found.row.status != "failed":
        raise InvalidInput(f"run {run} did not fail: it is {found.row.status}. `ledgergraph resume` goes on with a run that was capped or "
                           "whose process died.")
    go_on(found, as_json, actor=person())


@click.command()
@click.argument("run")
@click.option("--reason", default="", help="Why: kept with the event.")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def cancel(run: str, reason: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """End a RUN. What its tasks return later is refused and kept as a fact."""
    found = find_open(open_log(log), run, graph)
    found.app.cancel(found.config, reason=reason, actor=person())
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
    row = row_of(store, run)
    app, version = graph_of(store, row, graph), int(state_of(store, row, at).version)
    values = app.binding.schema.from_json(dict(_edit(e) for e in edits))
    if edits:
        app.binding.schema.check(values, place="--set")
    branch = app.fork(config_of(row.thread, row.stream, version), why=why, actor=person())
    if edits:
        branch = app.update_state(branch, values, actor=person())
    snapshot = app.get_state(branch)
    new = snapshot.metadata["run"]
    if as_json:
        put_json({"run": new, "stream": snapshot.metadata["stream"], "next": list(snapshot.next)})
    else:
        console.print(f"branch run {new}: next {', '.join(snapshot.next) or 'nothing'}. Go on with: ledgergraph resume {new}{hint(graph)}",
                      markup=False, soft_wrap=True)


def _edit(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--set {text!r} is not FIELD=JSON. Write e.g. --set limit=0.1 or --set 'names=[\"KO\"]'.")
    return name, read_input(value)
