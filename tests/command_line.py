"""The command line as a user types it: in this process with click's runner, or as a real process."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from ledgergraph.producers.cli.main import main

GRAPHS = Path(__file__).parent / "e2e"
"""Where desk.py is."""
PROGRAM = Path(sys.executable).with_name("ledgergraph")


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        """Both outputs on one line, so that a sentence is found wherever it was folded."""
        return " ".join(f"{self.out} {self.err}".split())


class Cli:
    """A folder with its own log. `desk:graph` and the like are graphs of tests/e2e/desk.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *args: str, code: int = 0) -> Said:
        """Runs in this process; the exit code must be the given one, and nothing may be a traceback."""
        done = CliRunner(catch_exceptions=False).invoke(main, [*args])
        said = Said(done.exit_code, done.stdout, done.stderr)
        assert said.code == code, f"ledgergraph {' '.join(args)} ended with {said.code}:\n{said.out}\n{said.err}"
        assert "Traceback" not in said.all
        return said

    def json(self, *args: str, code: int = 0) -> Any:
        """The same with --json: what it prints, parsed; nothing else may be printed."""
        said = self(*args, "--json", code=code)
        assert said.err == ""
        return said.json

    def spawn(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """A real process. Its standard input is empty unless told otherwise."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([str(PROGRAM), *args], cwd=self.folder, text=True,
                                env={**os.environ, "PYTHONPATH": str(GRAPHS)}, **given)

    def process(self, *args: str) -> Said:
        """A real process, to its end."""
        process = self.spawn(*args)
        out, err = process.communicate(timeout=60)
        return Said(process.returncode, out, err)

    def run(self, *args: str, code: int = 0, graph: str = "desk:graph", thread: str = "t") -> str:
        """Starts a run; its id."""
        self("run", graph, "--thread", thread, *args, code=code)
        found: str = self.json("runs", "--thread", thread)[0]["run"]
        return found

    def question(self) -> str:
        """The id of the newest open question."""
        found: str = self.json("inbox")[-1]["question"]
        return found
