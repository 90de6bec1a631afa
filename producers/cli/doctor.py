"""doctor: whether this machine and this log are fit to work with."""
from __future__ import annotations

import sqlite3
import sys
from importlib.metadata import version
from typing import Any

import click

from ledgergraph.producers.bootstrap import graph_names, log_url
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import FAILED, json_option, log_option, put_json, table, teaches
from ledgergraph.schemas.errors import LedgergraphError

SAFE_SQLITE = (3, 51, 3)


@click.command()
@log_option
@json_option
@teaches
def doctor(log: str | None, as_json: bool) -> None:
    """Look at this installation and the log, and say what is wrong."""
    findings = [("python", sys.version.split()[0], "ok"), ("ledgergraph", version("ledgergraph"), "ok"), _sqlite(),
                ("graphs", ", ".join(graph_names()) or "none", "ok"), *_log(log)]
    if as_json:
        put_json([{"what": w, "found": f, "verdict": v} for w, f, v in findings])
    else:
        table("doctor", ["what", "found", "verdict"], findings)
    sys.exit(FAILED if any(v.startswith("wrong") for _, _, v in findings) else 0)


def _sqlite() -> tuple[str, str, str]:
    note = "ok" if sqlite3.sqlite_version_info >= SAFE_SQLITE else "ok: older than 3.51.3, so that commits and checkpoints take a lock file"
    return "sqlite", sqlite3.sqlite_version, note


def _log(log: str | None) -> list[tuple[str, str, str]]:
    from ledgergraph.eventstore.opening import shown_url
    url = shown_url(log_url(log))
    try:
        store = open_log(log)
    except LedgergraphError as e:
        return [("log", url, f"wrong: {e}")]
    rows: list[tuple[str, str, str]] = [("log", url, "ok"), ("incarnation", store.incarnation, "ok"),
                                        ("events", str(store.last_position()), "ok")]
    open_: dict[str, Any] = {}
    for r in store.runs(limit=10_000):
        open_[r.status] = open_.get(r.status, 0) + 1
    return [*rows, ("runs", ", ".join(f"{n} {s}" for s, n in sorted(open_.items())) or "none", "ok")]
