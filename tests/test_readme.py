"""Every fact of README is executed: its program, its transcript, its commands, folders and exit codes."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ledgergraph.producers.cli.main import COMMANDS, main
from ledgergraph.producers.cli.output import EXIT_CODES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def block(marker: str) -> str:
    """What the fenced block after a marker holds."""
    found = re.search(rf"<!-- {marker}[^\n]*-->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, marker
    return found.group(1)


def table(marker: str) -> list[list[str]]:
    found = re.search(rf"<!-- {marker} -->\n((?:\|.*\n)+)", README)
    assert found, marker
    return [[c.strip() for c in line.strip("|").split("|")] for line in found.group(1).splitlines()[2:]]


def test_the_program_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program: dict[str, object] = {"__name__": "readme"}
    exec(compile(block("execute"), "README.md", "exec", dont_inherit=True), program)
    assert (tmp_path / "trades.db").exists()
    program["app"].close()  # type: ignore[attr-defined]


def test_the_transcript_is_what_the_demo_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["demo", "--approve", "--why", "looked at it"])
    assert done.exit_code == 0, done.output
    shown = [line.rstrip() for line in done.output.splitlines()]
    wanted = [line.rstrip() for line in block("transcript").splitlines()]
    assert [line for line in wanted if line not in shown] == []
    assert any(line.startswith("Proof") and "all the same, byte for byte" in line for line in shown)


def test_every_command_is_named() -> None:
    named = {word for row in table("commands") for code in re.findall(r"`([a-z]+)[^`]*`", row[0]) for word in [code]}
    assert named == set(COMMANDS)


def test_every_folder_is_named() -> None:
    rows = table("folders")
    assert all((ROOT / folder).is_dir() for row in rows for folder in re.findall(r"`(\w+)/`", row[0]))
    assert {row[1].strip("`") for row in rows if row[1]} == {f"ledgergraph.{p}" for p in
                                                              ("schemas", "eventstore", "projections", "consumers", "producers")}


def test_every_exit_code_is_named() -> None:
    sentence = re.search(r"Exit codes: (.*?)\.\n", README, re.DOTALL)
    assert sentence
    assert {int(n) for n in re.findall(r"(?:^|, |\n)(\d) ", sentence.group(1))} == set(EXIT_CODES)


def test_the_two_commands_are_there() -> None:
    make = (ROOT / "Makefile").read_text()
    assert all(f"\n{target}: " in make for target in re.findall(r"make (\w+)    #", README))
