"""graph, check: a graph's shape, and what is wrong with it."""
from __future__ import annotations

import sys
from pathlib import Path

import click

from ledgergraph.consumers.rehearsal import rehearse
from ledgergraph.producers.bootstrap import find_graph
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import FAILED, console, json_option, log_option, put_json, table, teaches
from ledgergraph.producers.cli.runs import row_of, state_of
from ledgergraph.producers.drawing import NodeMark, mermaid, svg, terminal
from ledgergraph.projections.run_state import RunState
from ledgergraph.schemas import topology
from ledgergraph.schemas.graph import GraphSpec


@click.command()
@click.argument("graph_or_run")
@click.option("--format", "format_", type=click.Choice(["terminal", "mermaid", "svg", "json"]), default="terminal", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=None, help="A file instead of the terminal.")
@log_option
@json_option
@teaches
def graph(graph_or_run: str, format_: str, output: Path | None, log: str | None, as_json: bool) -> None:
    """Draw a graph; of a run, with its status on it."""
    spec, marks = _what(graph_or_run, log)
    if as_json or format_ == "json":
        put_json({"name": spec.name, "fingerprint": spec.fingerprint, "clock": spec.clock, "nodes": list(spec.names),
                  "edges": [list(e) for e in spec.edges], "routes": {u: list(v) for u, v in spec.route.items()},
                  "barriers": [{"sources": list(b.sources), "target": b.target} for b in spec.barriers],
                  "loops": {n: list(loops) for n, loops in spec.loops}, "status": {n: m.status for n, m in (marks or {}).items()}})
    elif format_ == "terminal":
        console.print(terminal(spec, marks))
    else:
        text = mermaid(spec, marks) if format_ == "mermaid" else svg(spec, marks)
        output.write_text(text) if output else sys.stdout.write(text + "\n")


def _what(name: str, log: str | None) -> tuple[GraphSpec, dict[str, NodeMark] | None]:
    if name.startswith("run-"):
        store = open_log(log)
        run = state_of(store, row_of(store, name)).current
        return run.spec, marks_of(run)
    return find_graph(name).binding.spec, None


def marks_of(run: RunState) -> dict[str, NodeMark]:
    """How each node of a run stands."""
    out = {n: NodeMark("done" if run.visits_of(n) else "waiting", run.visits_of(n)) for n in run.spec.names}
    names = {"ready": "ready", "retry": "ready", "started": "running", "parked": "parked", "failed": "failed", "dead": "failed"}
    for t in run.tasks.values():
        out[t.key.node] = NodeMark(names[t.state], run.visits_of(t.key.node))  # type: ignore[arg-type]
    return out


@click.command()
@click.argument("graph")
@click.option("--no-rehearsal", is_flag=True, help="Only look at the topology; do not run it with stub nodes.")
@json_option
@teaches
def check(graph: str, no_rehearsal: bool, as_json: bool) -> None:
    """Find what is wrong with GRAPH without running its nodes, and run it once with stub nodes."""
    app = find_graph(graph)
    findings = topology.check(app.binding.spec)
    report = None if no_rehearsal else rehearse(app.binding)
    if as_json:
        put_json({"graph": app.binding.spec.name, "clock": app.binding.spec.clock, "findings": findings, "rehearsal": report})
    else:
        table(f"{app.binding.spec.name}: {len(findings)} findings, clock {app.binding.spec.clock}", ["", "where", "what", "remedy"],
              [(f.severity, f.place, f.text, f.remedy) for f in findings])
        if report is not None:
            console.print(f"with stub nodes: {report.text}")
    sys.exit(FAILED if any(f.severity == "error" for f in findings) else 0)
