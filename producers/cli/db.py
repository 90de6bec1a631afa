"""db: upgrade, verify, backup, rebuild of a log."""
from __future__ import annotations

from pathlib import Path

import click

from ledgergraph.eventstore import chain
from ledgergraph.eventstore.backup import backup as make_backup
from ledgergraph.eventstore.migrations import upgrade as migrate
from ledgergraph.producers.bootstrap import log_url
from ledgergraph.producers.cli.logs import open_log
from ledgergraph.producers.cli.output import console, json_option, log_option, put_json, teaches
from ledgergraph.projections.rebuild import rebuild as make_anew


@click.group()
def db() -> None:
    """Look after a log's database."""


@db.command()
@log_option
@json_option
@teaches
def upgrade(log: str | None, as_json: bool) -> None:
    """Bring the database to this version's layout. Events are never rewritten."""
    migrate(log_url(log))
    put_json({"upgraded": True}) if as_json else console.print("the database is up to date")


@db.command()
@log_option
@json_option
@teaches
def verify(log: str | None, as_json: bool) -> None:
    """Check the hash chain of every stream over the stored bytes; name the first event that is wrong."""
    found = chain.verify(open_log(log))
    if as_json:
        put_json({"events": found.events, "streams": found.streams, "ok": True})
    else:
        console.print(f"{found.events:,} events of {found.streams:,} streams: every hash, version and column is right")


@db.command()
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@log_option
@json_option
@teaches
def backup(target: Path, log: str | None, as_json: bool) -> None:
    """Copy the log to TARGET while it is in use, and verify the copy. (Copying the file of a WAL database loses commits.)"""
    make_backup(log_url(log), target)
    put_json({"backup": str(target)}) if as_json else console.print(f"copied to {target} and verified")


@db.command()
@log_option
@json_option
@teaches
def rebuild(log: str | None, as_json: bool) -> None:
    """Drop the tables of runs, tasks and questions, and fold them anew from the log."""
    counts = make_anew(open_log(log))
    put_json(counts) if as_json else console.print("rebuilt: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
