"""`make bench`: measures beside LangGraph and eventsourcing, and writes RESULTS.md.

    python infra/bench/run.py [--quick] [--only NAME] [--store sqlite|postgres] [--repeats N] [--json]
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from measure import Row
from report import page
from stores import all_stores
from tables import ALL


@click.command()
@click.option("--quick", is_flag=True, help="A tenth of the sizes; RESULTS.md is not written.")
@click.option("--only", type=click.Choice(list(ALL)), default=None)
@click.option("--store", type=click.Choice(["sqlite", "postgres"]), default=None)
@click.option("--repeats", default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(quick: bool, only: str | None, store: str | None, repeats: int, as_json: bool) -> None:
    rows: list[Row] = []
    with all_stores(store) as stores:
        for name, measure in ALL.items():
            if only in (None, name):
                for s in stores:
                    click.echo(f"{name} on {s.kind} ...", err=True)
                    rows += measure(s, lambda n: n // 10 if quick else n, repeats)
    text = json.dumps([{**vars(r), "ratio": r.ratio, "reached": r.reached} for r in rows], indent=2) if as_json else page(rows)
    click.echo(text)
    if not quick and not only and not store and not as_json:
        Path(__file__).with_name("RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
