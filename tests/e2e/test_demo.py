"""The main job from the command line: to the question, through the answer, to report and proof; again, and killed in between."""
from __future__ import annotations

import json
import os
import pty
import random
import re
import signal
import subprocess
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from command_line import PROGRAM, Cli
from made_prices import made_prices

from ledgergraph.producers.cli.output import BUSY, FAILED, REJECTED, STOPPED, WAITING

THREAD = "factors-2010-06-30"


@pytest.fixture
def small(cli: Cli) -> tuple[str, ...]:
    """Options of a demo over few made prices: one round."""
    made_prices(6, drift=1e-4).write_parquet(cli.folder / "made.parquet")
    return ("--prices", "made.parquet", "--as-of", "2002-08-01", "--cap", "0.5")


def run_of(cli: Cli, *log: str) -> str:
    found: str = cli.json("runs", *log)[0]["run"]
    return found


def signals(cli: Cli) -> list[Path]:
    return sorted((cli.folder / "signals").glob("*")) if (cli.folder / "signals").exists() else []


def test_it_stops_at_the_question_and_goes_on_when_answered(cli: Cli) -> None:
    said = cli("demo", code=WAITING)
    question = cli.question()
    screen = said.out[said.out.index("Prices known by"):said.out.index("It waits")].strip("\n")
    assert len(screen.split("\n")) <= 30 and max(map(len, screen.split("\n"))) <= 80
    assert f"ledgergraph answer {question} --value" in said.out and signals(cli) == []
    assert said.err.count("✓") == 28 and all(f"✓ {node} " in said.err for node in ("plan", "drawdown", "validate", "widen", "narrate"))
    said = cli("demo", "--approve", "--why", "looked at it")
    assert screen in said.out and "Going on with run" in said.out
    assert "Status    published" in said.out and "by person:" in said.out and ": looked at it" in said.out
    [signal_] = signals(cli)
    assert f"Signal    {signal_}" in said.out and json.loads(signal_.read_bytes())["why"] == "looked at it"


def test_report_and_proof(cli: Cli) -> None:
    said = cli("demo", "--approve").out
    run = run_of(cli)
    events = len(cli.json("events", run))
    assert "sha256" in said and "18 trials" in said and "total        1.0000   0.192936" in said
    assert re.search(rf"^Log       sqlite:///ledgergraph.db\nRun       {run}$", said, re.MULTILINE)
    assert re.search(rf"^Proof     the state rebuilt from {events} events is the same; {events} hashes are right; 30 node executions replayed on "
                     r"recorded inputs and 2 recorded effects gave \d+ fields, all the same, byte for byte\.$", said, re.MULTILINE)
    assert cli.json("replay", "verify", run)["nodes"] == 30 and cli.json("db", "verify")["events"] == events


def test_a_rejected_run_ends_as_rejected(cli: Cli, small: tuple[str, ...]) -> None:
    said = cli("demo", *small, "--reject", "--why", "too thin", code=REJECTED).out
    assert "Status    rejected" in said and "rejected by person:" in said and ": too thin" in said and "Proof " in said
    assert signals(cli) == [] and cli.json("runs")[0]["status"] == "completed"
    assert "has a finished run" in cli("demo", *small, code=REJECTED).out, "asked again it says the same, with the same exit code"


def test_as_json(cli: Cli, small: tuple[str, ...]) -> None:
    waits = cli.json("demo", *small, code=WAITING)
    [question] = waits["questions"]
    assert (waits["status"], waits["run"], question["id"]) == ("waiting", run_of(cli), cli.question())
    assert "Against it:" in question["value"]["screen"]
    done = cli.json("demo", *small, "--approve")
    assert done["status"] == "published" and done["proof"]["differences"] == 0 and done["proof"]["same state"] is True
    assert sum(map(float, done["state"]["weights"].values())) == 1 and done["log"] == "sqlite:///ledgergraph.db"
    assert cli.json("demo", *small)["run"] == done["run"]


def test_the_answer_command_does_the_same(cli: Cli, small: tuple[str, ...]) -> None:
    cli("demo", *small, code=WAITING)
    row = cli.json("inbox")[0]
    cli("answer", row["question"], "--value", '{"approved": true, "why": "fine", "by": "person:ann"}', "--shown", row["shown"], "--by", "ann")
    assert len(signals(cli)) == 1 and "Status    published" in cli("demo", *small).out


def test_the_answer_records_who_why_and_what_was_shown(cli: Cli, small: tuple[str, ...]) -> None:
    cli("demo", *small, code=WAITING)
    shown = cli.json("inbox")[0]["shown"]
    cli("demo", *small, "--approve", "--why", "cheap enough")
    answered = next(e for e in cli.json("events", run_of(cli)) if e["type"] == "question.answered")
    assert answered["actor"].startswith("person:") and answered["payload"]["why"] == "cheap enough" and answered["payload"]["shown"] == shown


def test_no_signal_is_an_end_too(cli: Cli) -> None:
    made_prices(8).write_csv(cli.folder / "noise.csv")
    said = cli("demo", "--prices", "noise.csv", "--as-of", "2002-08-01").out
    assert "Status    no signal" in said and "No factor passed the gate" in said and "Proof " in said and signals(cli) == []
    assert "this price file does not say" in " ".join(said.split()), "what is known of the packaged prices is not said of others"


def test_a_second_demo_shows_the_first_and_changes_nothing(cli: Cli, small: tuple[str, ...]) -> None:
    first = cli("demo", *small, "--approve", "--why", "once").out
    before, files = cli.json("db", "verify"), [(p, p.read_bytes()) for p in signals(cli)]
    for again in (cli("demo", *small).out, cli("demo", *small, "--approve", "--why", "twice").out, cli("demo", *small, "--reject").out):
        assert "has a finished run, which is shown here" in again
        assert again[again.index("Factor research, prices"):] == first[first.index("Factor research, prices"):]
    assert cli.json("db", "verify") == before and [(p, p.read_bytes()) for p in signals(cli)] == files
    other = cli("demo", *small, "--thread", "other", "--approve").out
    assert "Status    published" in other and len(cli.json("runs")) == 2 and len(signals(cli)) == 2


OTHER = {"--cap": ("0.2", "with cap 0.5, not 0.2. Leave --cap out"), "--as-of": ("2001-01-02", "as_of 2002-08-01"),
         "--out": ("elsewhere", "Leave --out out"), "--prices": ("", "Leave --prices out")}


@pytest.mark.parametrize("answer", [(), ("--approve",)], ids=["waiting", "finished"])
def test_other_options_on_the_same_thread_are_refused(answer: tuple[str, ...], cli: Cli, small: tuple[str, ...]) -> None:
    cli("demo", *small, "--thread", "t", *answer, code=0 if answer else WAITING)
    before = cli.json("db", "verify")
    for option, (value, says) in OTHER.items():
        said = cli("demo", *small, option, value, "--thread", "t", code=FAILED).all
        assert "thread 't' holds run" in said and says in said and "--thread NAME" in said
    assert cli.json("db", "verify") == before
    cli("demo", "--thread", "t", code=0 if answer else WAITING)


@pytest.mark.parametrize(("options", "code", "says"), [
    (("--as-of", "2199-01-01"), FAILED, "it is in the future"), (("--as-of", "2010-06-30T12:00"), FAILED, "a time without a zone"),
    (("--as-of", "yesterday"), FAILED, "no ISO 8601"), (("--cap", "much"), FAILED, "cap"), (("--thread", " "), FAILED, "is not a thread id"),
    (("--cap", "0.01"), STOPPED, "CapCannotBeMet: 10 companies at no more than 0.01"), (("--cap", "-1"), STOPPED, "the cap is -1"),
    (("--prices", "none.parquet"), STOPPED, "cannot be read"), (("--prices", "."), STOPPED, "cannot be read"),
    (("--as-of", "1994-01-03"), STOPPED, "at least 2000 are needed"), (("--log", "nowhere/x/ledger.db"), FAILED, "nowhere"),
    (("--log", "mysql://x"), FAILED, "no database that ledgergraph knows")])
def test_what_cannot_be_says_why(options: tuple[str, ...], code: int, says: str, cli: Cli) -> None:
    assert says in cli("demo", *options, code=code).all
    assert cli.json("demo", *options, code=code)["exit"] == code
    assert signals(cli) == []


def test_a_run_that_failed_goes_on_by_a_branch_with_another_cap(cli: Cli, small: tuple[str, ...]) -> None:
    made = ("--prices", "made.parquet", "--as-of", "2002-08-01", "--cap", "0.1", "--thread", "t")
    cli("demo", *made, code=STOPPED)
    run = run_of(cli)
    branch = cli.json("fork", run, "--set", 'cap="0.4"')["run"]
    cli("resume", branch, code=WAITING)
    shown = cli.json("show", branch)
    assert shown["status"] == "waiting" and cli.json("show", run)["status"] == "failed"
    assert "Status    published" in cli("demo", "--thread", "t", "--approve").out


# A person at a terminal

END_OF_INPUT = "\x04"


def at_a_terminal(cli: Cli, *args: str, typed: list[str]) -> tuple[int, str]:
    """(exit code, all that the terminal showed). Each text is typed when something is asked for."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(PROGRAM), *args], cwd=cli.folder, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
                               env={**os.environ, "TERM": "xterm", "COLUMNS": "120"}, start_new_session=True)
    os.close(theirs)
    seen, todo = "", list(typed)
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:
            break
        seen += part.decode(errors="replace")
        prompt = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen).rpartition("\n")[2]
        if todo and prompt.endswith(("[y/N]: ", "Why: ")):
            os.write(ours, todo.pop(0).encode())
    os.close(ours)
    return process.wait(30), seen.replace("\r\n", "\n")


def test_a_person_approves_at_a_terminal(cli: Cli) -> None:
    code, seen = at_a_terminal(cli, "demo", typed=["y\n", "looked at it\n"])
    assert code == 0 and "Publish this signal? [y/N]: " in seen and "Status    published" in seen and "all the same, byte for byte" in seen
    answered = next(e for e in cli.json("events", run_of(cli)) if e["type"] == "question.answered")
    assert answered["payload"]["why"] == "looked at it" and answered["payload"]["value"]["approved"] is True


def test_a_person_rejects_at_a_terminal(cli: Cli, small: tuple[str, ...]) -> None:
    code, seen = at_a_terminal(cli, "demo", *small, typed=["n\n", "not now\n"])
    assert code == REJECTED and "Status    rejected" in seen and ": not now" in seen and signals(cli) == []


def test_a_person_who_goes_away_leaves_the_question_open(cli: Cli, small: tuple[str, ...]) -> None:
    code, seen = at_a_terminal(cli, "demo", *small, typed=["y\n", END_OF_INPUT])
    assert code != 0 and "Traceback" not in seen
    assert cli.json("runs")[0]["status"] == "waiting" and "Status    published" in cli("demo", *small, "--approve").out


# Nothing that came after as_of is printed


def test_what_came_later_is_not_printed(cli: Cli) -> None:
    table, known = made_prices(6, drift=1e-4), pl.col("date") <= date(2001, 7, 2)
    absurd = table.with_columns(pl.when(known).then(pl.col(c)).otherwise(1e9).alias(c) for c in table.columns if c != "date")
    printed = set[str]()
    for n, frame in enumerate((table, absurd, table.filter(known))):
        frame.write_parquet(cli.folder / "p.parquet")
        out = cli("demo", "--prices", "p.parquet", "--as-of", "2001-07-02", "--cap", "0.5", "--approve", "--log", f"{n}.db").out
        run = run_of(cli, "--log", f"{n}.db")
        printed.add(re.sub(r"sha256 \w+|signal-2001-07-02-\w+|sqlite:///\d", "", out).replace(run, ""))
    assert len(printed) == 1


# Killed


def test_it_is_finished_after_kills(cli: Cli) -> None:
    """Killed twice on its way to the question and once on its way to the signal, at random moments."""
    seed = int(os.environ.get("LEDGERGRAPH_SEED", random.randrange(1 << 32)))
    print(f"LEDGERGRAPH_SEED={seed}")
    chance = random.Random(seed)
    killed_after(cli, chance.randrange(1, 14), "demo")
    run = run_of(cli)
    killed_after(cli, chance.randrange(0, 12), "resume", run)
    done = cli.process("resume", run)
    assert done.code == WAITING and "waits for an answer" in done.out, done.err
    killed_after(cli, chance.randrange(0, 2), "demo", "--approve", "--why", "looked at it")
    final = cli.process("demo", "--approve", "--why", "looked at it")
    assert final.code == 0 and "Status    published" in final.out and "all the same, byte for byte" in final.out, final.all
    assert run_of(cli) == run and len(signals(cli)) == 1
    assert once_each(cli, run) == 30 and cli.json("db", "verify")["ok"]


def killed_after(cli: Cli, lines: int, *args: str) -> None:
    """Kills the process when it has told of so many nodes, or lets it end where it has fewer to tell of."""
    process = cli.spawn(*args)
    assert process.stderr is not None and process.stdout is not None
    for _ in range(lines):
        process.stderr.readline()
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.stderr.close()
    process.wait(30)


def once_each(cli: Cli, run: str) -> int:
    """How many tasks completed; each once, and nothing of one with a recorded update or result ran again."""
    completed, settled = set[str](), set[str]()
    for e in cli.json("events", run):
        payload = e["payload"]
        if e["type"] == "task.completed":
            assert payload["task"] not in completed
            completed.add(payload["task"])
        elif e["type"] == "task.started":
            assert payload["task"] not in completed
        elif e["type"] == "tasks.ready":
            assert not completed & {b["task"] for b in payload["begun"]}
        elif e["type"] == "effect.succeeded":
            settled.add(payload["key"])
        elif e["type"] == "effect.intended":
            assert payload["key"] not in settled
    return len(completed)


def test_a_demo_that_runs_elsewhere_is_left_alone(cli: Cli) -> None:
    """Its price file is a pipe that nobody has written to yet: it runs, and waits for it."""
    os.mkfifo(cli.folder / "p.parquet")
    table = made_prices(6, drift=1e-4)
    table.write_parquet(cli.folder / "made.parquet")
    options = ("--prices", "p.parquet", "--as-of", "2002-08-01", "--cap", "0.5")
    other = cli.spawn("demo", *options)
    with (cli.folder / "p.parquet").open("wb") as pipe:
        assert "A live worker holds it" in cli("demo", *options, code=BUSY).all
        pipe.write((cli.folder / "made.parquet").read_bytes())
    out, err = other.communicate(timeout=30)
    assert other.returncode == WAITING, err
    assert "It waits for an approval" in out


def test_on_postgresql(cli: Cli, small: tuple[str, ...], postgres_url: str) -> None:
    done = cli.json("demo", *small, "--approve", "--log", postgres_url)
    assert done["status"] == "published" and done["proof"]["differences"] == 0 and done["proof"]["same state"] is True
    assert THREAD not in done["thread"] and not list(cli.folder.glob("*.db"))
