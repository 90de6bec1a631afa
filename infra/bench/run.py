"""`make bench`: measures beside LangGraph and eventsourcing, and writes RESULTS.md.

    python infra/bench/run.py [--quick | --full] [--only NAME]... [--store sqlite|postgres] [--repeats N] [--json]
"""
from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from measure import Row, flush_ms
from report import page
from stores import all_stores
from tables import ALL, MISSING, Setting


@click.command()
@click.option("--quick", is_flag=True, help="A tenth of the sizes, once; RESULTS.md is not written.")
@click.option("--full", is_flag=True, help="The diamond's seconds are seconds, not tenths.")
@click.option("--only", type=click.Choice(list(ALL)), multiple=True, help="One measurement; may be given again.")
@click.option("--store", type=click.Choice(["sqlite", "postgres"]), default=None)
@click.option("--repeats", type=click.IntRange(min=1), default=None, help="5, or 1 with --quick.")
@click.option("--json", "as_json", is_flag=True, help="All samples, to standard output; RESULTS.md is not written.")
def main(quick: bool, full: bool, only: tuple[str, ...], store: str | None, repeats: int | None, as_json: bool) -> None:
    """Measures ledgergraph beside its peers."""
    for line in MISSING:
        click.echo(line, err=True)
    rows: list[Row] = []
    load = os.getloadavg()[0]
    with all_stores(store) as stores:
        for name in only or ALL:
            for s in stores:
                click.echo(f"{name} on {s.kind} ...", err=True)
                with s:
                    rows += ALL[name](Setting(s, repeats or (1 if quick else 5), 0.1 if quick else 1.0, 1.0 if full else 0.1))
        text = as_text(rows) if as_json else page(rows, [s.version() for s in stores], flush_ms(stores[0].folder), load)
    click.echo(text)
    whole = len(stores) == 2 and not (quick or only or store or as_json or MISSING)
    if whole:
        Path(__file__).with_name("RESULTS.md").write_text(text)


def as_text(rows: list[Row]) -> str:
    return json.dumps([{**vars(r), "median": r.median, "ratio": r.ratio, "reached": r.reached} for r in rows], indent=2)


if __name__ == "__main__":
    main()
