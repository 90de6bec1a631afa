"""What the command line says when it does not understand, or cannot do it: the thing and the remedy, never a traceback."""
from __future__ import annotations

import json
import os

import pytest
from command_line import Cli

from ledgergraph.producers.cli.main import COMMANDS
from ledgergraph.producers.cli.output import BUSY, DAMAGED, FAILED, USAGE, WAITING

DESK = ("--graph", "desk:graph")
KO = '{"ticker": "KO", "amount": "10.50"}'
YES = '{"yes": true}'


@pytest.mark.parametrize(("command", "says"), [
    (("run", "nothing"), "there is no graph 'nothing'. Known: factor-research; or write module:attribute"),
    (("run", "no_such_module:graph"), "module 'no_such_module' cannot be imported"),
    (("run", "desk:missing"), "Look at the name after the colon"),
    (("run", "desk:nothing"), "is a int, not a graph"),
    (("run", "desk:graph", "--input", "{"), "the input is no JSON"),
    (("run", "desk:graph", "--input", "@none.json"), "the input file 'none.json' cannot be read"),
    (("run", "desk:graph", "--input", "[1]"), "the input"),
    (("run", "desk:graph", "--input", '{"price": 1}'), "the state has no field 'price'. Known fields: ticker"),
    (("run", "desk:graph", "--input", '{"ticker": 1}'), "ticker is not"),
    (("run", "desk:graph", "--input", '{"amount": "a lot"}'), "amount"),
    (("run", "desk:graph", "--thread", ""), "is not a thread id"),
    (("run", "desk:graph", "--thread", "x" * 300), "is not a thread id"),
    (("run", "desk:graph", "--thread", "a\nb"), "is not a thread id"),
    (("run", "desk:graph", "--as-of", "2199-01-01"), "it is in the future"),
    (("run", "desk:graph", "--as-of", "2010-06-30T16:00:00"), "it is a time without a zone"),
    (("run", "desk:graph", "--as-of", "soon"), "it is no ISO 8601 date or time"),
    (("run", "desk:graph", "--log", "mysql://x"), "is no database that ledgergraph knows"),
    (("run", "desk:graph", "--log", "sqlite://path.db"), "it has no path"),
])
def test_runs_that_cannot_start(command: tuple[str, ...], says: str, cli: Cli) -> None:
    assert says in cli(*command, code=FAILED).all
    told = cli.json(*command, code=FAILED)
    assert told["exit"] == FAILED and says in " ".join(told["message"].split())
    assert not (cli.folder / "ledgergraph.db").exists() or cli.json("runs") == [], "nothing was stored"


@pytest.mark.parametrize("command", ["show", "state", "events", "resume", "retry", "cancel", "fork", "graph", "replay verify"])
def test_a_run_that_is_not_there(command: str, cli: Cli) -> None:
    run = "run-" + "0" * 32
    assert "there is no log at ledgergraph.db. Name one with --log" in cli(*command.split(), run, code=FAILED).all
    cli.run("--input", KO, code=WAITING)
    assert f"there is no run '{run}' in this log. `ledgergraph runs` lists" in cli(*command.split(), run, code=FAILED).all
    assert cli.json(*command.split(), run, code=FAILED)["error"] == "RunNotFound"


@pytest.mark.parametrize(("more", "says"), [
    (("--at", "99"), "has no version 99"), (("--at", "-1"), "has no version -1"), (("--task", "abc"), "there is no task 'abc'"),
    (("--at", "1", "--task", "abc"), "leave one of them out")])
def test_states_that_are_not_there(more: tuple[str, ...], says: str, cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    assert says in cli("state", run, *more, code=FAILED).all


@pytest.mark.parametrize("command", [
    ("fly",), ("run",), ("runs", "--limit", "0"), ("runs", "--status", "odd"), ("state", "r", "--at", "x"), ("demo", "--fast"),
    ("answer", "q"), ("graph", "g", "--format", "png"), ("replay", "what"), ("db", "drop"), ("demo", "--approve", "extra")])
def test_what_is_not_understood_exits_with_2(command: tuple[str, ...], cli: Cli) -> None:
    assert "Usage:" in cli(*command, code=USAGE).err


def test_a_thread_has_one_run_at_a_time(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    said = cli("run", "desk:graph", "--input", KO, "--thread", "t", code=BUSY).all
    assert f"thread 't' is held by run {run}, which is waiting" in said and "ledgergraph answer" in said
    assert cli.json("run", "desk:graph", "--input", KO, "--thread", "t", code=BUSY)["error"] == "ThreadBusy"


def test_a_run_that_lives_elsewhere_is_not_taken(cli: Cli) -> None:
    pipe = cli.folder / "pipe"
    os.mkfifo(pipe)
    other = cli.spawn("run", "desk:graph", "--thread", "t", "--input", json.dumps({"ticker": "KO", "mode": "holds", "gate": str(pipe)}))
    with pipe.open("w"):  # opens when the node reads: it runs now
        run = cli.json("runs")[0]["run"]
        assert "A live worker holds it" in cli("resume", run, *DESK, code=BUSY).all
        assert "is held by run" in cli("run", "desk:graph", "--input", KO, "--thread", "t", code=BUSY).all
    out, _ = other.communicate(timeout=30)
    assert other.returncode == WAITING and "waits for an answer" in out


def test_a_graph_of_another_version_does_not_take_the_run(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    said = cli("resume", run, "--graph", "desk:newer", code=DAMAGED).all
    assert "fingerprint" in said and "Load the version that started it" in said
    assert cli.json("replay", "verify", run, "--graph", "desk:newer", code=DAMAGED)["error"] == "FingerprintMismatch"


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"x" * 200])
def test_a_file_that_is_no_log(content: bytes, cli: Cli) -> None:
    (cli.folder / "ledgergraph.db").write_bytes(content)
    said = cli("runs", code=FAILED).all
    assert "ledgergraph.db" in said and (cli.folder / "ledgergraph.db").read_bytes() == content
    assert "wrong" in cli("doctor", code=FAILED).all


def test_the_log_is_named_by_option_environment_or_folder(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", "desk:graph", "--input", KO, "--log", "a.db", code=WAITING)
    assert len(cli.json("runs", "--log", "sqlite:///a.db")) == 1
    monkeypatch.setenv("LEDGERGRAPH_LOG", "a.db")
    assert len(cli.json("runs")) == 1 and not (cli.folder / "ledgergraph.db").exists()


def test_no_password_is_shown(cli: Cli) -> None:
    said = cli("doctor", "--log", "postgresql+psycopg://me:secret@127.0.0.1:1/x", code=FAILED).all
    assert "secret" not in said and "127.0.0.1" in said


def test_the_same_on_postgresql(cli: Cli, postgres_url: str) -> None:
    log = ("--log", postgres_url)
    cli("run", "desk:graph", "--input", KO, "--thread", "t", *log, code=WAITING)
    run = cli.json("runs", *log)[0]["run"]
    cli("answer", cli.json("inbox", *log)[0]["question"], "--value", YES, *DESK, *log)
    assert cli.json("replay", "verify", run, *DESK, *log)["ok"] and cli.json("db", "verify", *log)["ok"]
    assert cli.json("doctor", *log) and cli.json("db", "rebuild", *log)["runs"] == 1 and cli.json("state", run, *log)["status"] == "bought"


def test_help_names_commands_and_exit_codes(cli: Cli) -> None:
    said = cli("--help").all
    assert all(f" {name} " in said for name in COMMANDS) and "Exit codes: 0 done; 1" in said
    for name in COMMANDS:
        assert "Usage:" in cli(name, "--help").out
    assert "ledgergraph, version" in cli("--version").out


def test_a_real_process_says_and_exits_the_same(cli: Cli) -> None:
    done = cli.process("run", "desk:graph", "--input", KO, "--thread", "t", "--json")
    assert done.code == WAITING and done.json["status"] == "waiting" and done.err == ""
    done = cli.process("run", "desk:graph", "--input", KO, "--thread", "t")
    assert done.code == BUSY and done.err.startswith("ThreadBusy: thread 't'") and "Traceback" not in done.err
    done = cli.process("runs", "--limit", "none")
    assert done.code == USAGE and "Usage:" in done.err
