"""replay verify: the code that decided gives this decision, or where it does not."""
from __future__ import annotations

import sys

import click

from ledgergraph.consumers.replay import Verified, verify_run
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import DAMAGED, console, json_option, log_option, put_json, table, teaches
from ledgergraph.producers.cli.runs import find
from ledgergraph.projections.history import History
from ledgergraph.schemas.ids import RunId


@click.group()
def replay() -> None:
    """Run stored runs again on what they recorded."""


@replay.command()
@click.argument("run")
@click.option("--graph", default=None, help="module:attribute of the run's graph, where its name is not installed.")
@log_option
@json_option
@teaches
def verify(run: str, graph: str | None, log: str | None, as_json: bool) -> None:
    """Run every node of a stored RUN again on its recorded inputs and effects; compare the updates byte for byte."""
    store = open_log(log)
    app = find(store, run, graph).app
    result = verify_run(History(store), app.binding, RunId(run))
    put_json({**vars(result), "ok": result.ok}) if as_json else show(result)
    sys.exit(0 if result.ok else DAMAGED)


def show(result: Verified) -> None:
    console.print(f"run {result.run}: {result.events} events read, {result.nodes} node executions replayed, {result.fields} fields "
                  f"compared byte for byte, {result.effects} effects taken from the record")
    if result.ok:
        console.print("[green]the same updates, targets and schedule[/]")
        return
    first = result.differences[0]
    table(f"{len(result.differences)} differences; the first:", ["", ""],
          [("event", f"version {first.version} of {first.stream} ({first.type})"), ("node", first.node), ("field", first.field),
           ("recorded", first.recorded), ("replayed", first.replayed), ("code that ran", first.recorded_code),
           ("code at hand", first.loaded_code)])
