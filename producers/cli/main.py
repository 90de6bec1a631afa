"""The `ledgergraph` command."""
from __future__ import annotations

import click

from ledgergraph.producers.cli.output import EXIT_CODES

COMMANDS = {
    "demo": "demo:demo", "run": "runs:run", "runs": "look:runs", "show": "look:show", "state": "look:state", "events": "look:events",
    "resume": "runs:resume", "retry": "runs:retry", "cancel": "runs:cancel", "fork": "runs:fork", "inbox": "people:inbox", "answer": "people:answer",
    "graph": "graphs:graph", "check": "graphs:check", "replay": "replay:replay", "doctor": "doctor:doctor", "db": "db:db",
}


class Lazy(click.Group):
    """Commands by name; a module is imported when its command is asked for, so that `--help` and small commands are quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"ledgergraph.producers.cli.{module}"), attribute)
        return command


EPILOG = "Exit codes: " + "; ".join(f"{k} {v}" for k, v in EXIT_CODES.items()) + "."


@click.group(cls=Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ledgergraph", prog_name="ledgergraph")
def main() -> None:
    """Agent graphs on an append-only log: every node execution is a consumer of events."""
