"""Every command as a user types it, with and without --json; what they say when they cannot; their exit codes."""
from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Cli

from ledgergraph.producers.cli.output import DAMAGED, FAILED, STOPPED, WAITING

DESK = ("--graph", "desk:graph")
KO = '{"ticker": "KO", "amount": "10.50"}'
YES = '{"yes": true}'


def failing(gate: Path) -> str:
    return json.dumps({"ticker": "KO", "mode": "fails", "gate": str(gate)})


# run, runs, show, state, events


def test_a_run_comes_to_its_question(cli: Cli) -> None:
    said = cli("run", "desk:graph", "--input", KO, "--thread", "t", code=WAITING)
    question = cli.question()
    assert f"waits for an answer to question {question}" in said.out
    assert f"ledgergraph answer {question} --value JSON --graph desk:graph" in said.out
    assert "✓ limits" in said.err and "✓ sanctions" in said.err, "progress goes beside the result"
    assert "checks: ['KO within limits', '0 hits']" in said.out and "amount: 10.50" in said.out


def test_a_run_as_json(cli: Cli) -> None:
    said = cli.json("run", "desk:graph", "--input", KO, code=WAITING)
    assert said["status"] == "waiting" and said["state"]["amount"] == "10.50"
    assert said["questions"][0]["value"]["question"] == "Buy KO?"
    assert cli.json("runs")[0]["thread"] == said["thread"], "a thread of its own where none is named"


def test_input_comes_from_a_file_too(cli: Cli) -> None:
    (cli.folder / "trade.json").write_text(KO)
    cli.run("--input", "@trade.json", code=WAITING)


def test_runs_are_listed_newest_first(cli: Cli) -> None:
    first, second = (cli.run("--input", KO, thread=t, code=WAITING) for t in ("a", "b"))
    cli("cancel", first, *DESK)
    assert [(r["run"], r["status"]) for r in cli.json("runs")] == [(second, "waiting"), (first, "cancelled")]
    assert [r["run"] for r in cli.json("runs", "--status", "waiting")] == [second]
    assert [r["run"] for r in cli.json("runs", "--thread", "a")] == [first]
    assert [r["run"] for r in cli.json("runs", "--limit", "1")] == [second]
    shown = cli("runs").out
    assert "2 runs" in shown and first in shown and second in shown and "desk" in shown


def test_a_run_is_shown(cli: Cli) -> None:
    run = cli.run("--input", KO, "--as-of", "2010-06-30", code=WAITING)
    told = cli.json("show", run)
    assert (told["status"], told["thread"], told["graph"], told["next"]) == ("waiting", "t", "desk", ["approve"])
    assert told["as_of"] == "2010-06-30T23:59:59.999999-04:00" and told["nodes"] == {"limits": 1, "sanctions": 1}
    assert [(t["name"], t["state"]) for t in told["tasks"]] == [("approve", "parked")]
    shown = cli("show", run).out
    assert run in shown and "waiting" in shown and "approve" in shown and "parked" in shown


def test_state_now_at_a_version_and_as_a_task_saw_it(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    approve = cli.json("show", run)["tasks"][0]["id"]
    versions = {e["type"]: e["version"] for e in reversed(cli.json("events", run))}
    assert cli.json("state", run)["checks"] == ["KO within limits", "0 hits"]
    assert cli.json("state", run, "--at", "1") == {"checks": [], "ticker": "KO", "amount": "10.50"}
    assert cli.json("state", run, "--at", str(versions["task.completed"]))["checks"] == ["KO within limits"]
    assert cli.json("state", run, "--task", approve)["checks"] == ["KO within limits", "0 hits"]
    assert "at version 1" in cli("state", run, "--at", "1").out and "KO within limits" in cli("state", run).out


def test_events_are_shown_in_order(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    events = cli.json("events", run)
    assert [e["version"] for e in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "run.started" and events[0]["payload"]["input"]["ticker"] == "KO"
    assert events[0]["actor"].startswith("person:") and events[-1]["type"] == "question.asked"
    shown = cli("events", run).out
    assert "run.started" in shown and "update: checks" in shown
    assert "'ticker': 'KO'" in cli("events", run, "--payload").out


def test_events_follow_a_run_to_its_end(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    follower = cli.spawn("events", run, "--follow")
    assert follower.stdout is not None
    seen = follower.stdout.readline()
    cli("answer", cli.question(), "--value", YES, *DESK)
    seen += follower.stdout.read()
    assert follower.wait(30) == 0
    for pipe in (follower.stdout, follower.stderr):
        assert pipe is not None
        pipe.close()
    assert [word for word in ("run.started", "question.asked", "question.answered", "run.completed") if word in seen] == [
        "run.started", "question.asked", "question.answered", "run.completed"]


def test_commands_on_an_earlier_run_show_that_run(cli: Cli) -> None:
    first = cli.run("--input", KO, code=WAITING)
    cli("answer", cli.question(), "--value", YES, *DESK)
    second = cli.run("--input", '{"ticker": "PEP"}', code=WAITING)
    assert first != second and cli.json("runs")[0]["run"] == second
    assert cli.json("show", first)["status"] == "completed" and cli.json("show", second)["status"] == "waiting"
    assert cli.json("state", first)["ticker"] == "KO" and cli.json("state", second)["ticker"] == "PEP"
    assert "has ended (completed)" in cli("cancel", first, *DESK, code=FAILED).err
    assert "has ended (completed)" in cli("resume", first, *DESK, code=FAILED).err
    assert cli.json("show", second)["status"] == "waiting", "the thread's other run is left alone"


# inbox, answer


def test_a_question_is_listed_and_answered(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    row = cli.json("inbox")[0]
    assert (row["run"], row["node"], row["value"]["question"]) == (run, "approve", "Buy KO?") and len(row["shown"]) == 64
    assert "Buy KO?" in cli("inbox").out and row["question"] in cli("inbox").out
    said = cli("answer", row["question"], "--value", YES, "--why", "cheap", "--by", "ann", "--shown", row["shown"], *DESK)
    assert "status: bought" in said.out
    answered = next(e for e in cli.json("events", run) if e["type"] == "question.answered")
    assert answered["actor"] == "person:ann"
    assert (answered["payload"]["value"], answered["payload"]["why"], answered["payload"]["shown"]) == ({"yes": True}, "cheap", row["shown"])
    assert cli.json("inbox") == [] and "0 open questions" in cli("inbox").out


def test_an_answer_can_wait_for_somebody_to_go_on(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    assert cli.json("answer", cli.question(), "--value", YES, "--no-resume", *DESK)["status"] == "answered"
    assert cli.json("show", run)["status"] == "running"
    assert cli.json("resume", run, *DESK)["state"]["status"] == "bought"


def test_answers_that_fit_no_question(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    question = cli.question()
    assert "'f00' is not known in this log. `ledgergraph inbox` lists" in cli("answer", "f00", "--value", YES, *DESK, code=FAILED).all
    assert "is no JSON" in cli("answer", question, "--value", "yes", *DESK, code=FAILED).all
    assert "cannot be read" in cli("answer", question, "--value", "@missing.json", *DESK, code=FAILED).all
    assert "is not what is asked" in cli("answer", question, "--value", YES, "--shown", "0" * 64, *DESK, code=FAILED).all
    assert "Say where it is: --graph module:attribute" in cli("answer", question, "--value", YES, code=FAILED).all
    assert cli.question() == question and cli.json("show", run)["status"] == "waiting", "none of them changed anything"
    cli("answer", question, "--value", YES, "--by", "ann", *DESK)
    assert "was answered by person:ann at" in cli("answer", question, "--value", YES, "--by", "bob", *DESK, code=FAILED).all


def test_a_question_of_a_cancelled_run_says_so(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    question = cli.question()
    cli("cancel", run, *DESK)
    assert cli.json("inbox") == []
    assert "no longer waits" in cli("answer", question, "--value", YES, *DESK, code=FAILED).all


# resume, retry, cancel, fork


@pytest.mark.parametrize("command", ["resume", "retry"])
def test_a_failed_run_goes_on(command: str, cli: Cli) -> None:
    gate = cli.folder / "list"
    said = cli("run", "desk:graph", "--input", failing(gate), "--thread", "t", code=STOPPED)
    run = cli.json("runs")[0]["run"]
    assert "LookupError: the list" in said.err and f"ledgergraph resume {run}" in said.err
    assert cli.json("show", run)["status"] == "failed" and "LookupError" in cli.json("show", run)["tasks"][0]["error"]
    again = cli.json(command, run, *DESK, code=STOPPED)
    assert (again["error"], again["exit"]) == ("LookupError", STOPPED)
    gate.touch()
    cli(command, run, *DESK, code=WAITING)
    assert cli.json("show", run)["nodes"] == {"limits": 1, "sanctions": 1}, "what is recorded did not run again"


def test_a_capped_run_goes_on_with_a_higher_cap(cli: Cli) -> None:
    run = cli.run("--input", '{"ticker": "KO", "mode": "spins"}', "--max-steps", "5", code=STOPPED)
    assert cli.json("show", run)["status"] == "capped"
    said = cli("resume", run, "--max-steps", "9", *DESK, code=STOPPED)
    assert "max_steps = 9" in said.all and "approve -> limits -> approve (visits: approve 4x, limits 5x)" in said.all
    assert "did not fail: it is capped" in cli("retry", run, *DESK, code=FAILED).all


def test_a_run_is_cancelled(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    assert f"run {run} is cancelled" in cli("cancel", run, "--reason", "no need", *DESK).out
    assert cli.json("show", run)["status"] == "cancelled"
    assert "no need" in cli("events", run).out
    for command in ("cancel", "resume"):
        assert "has ended (cancelled)" in cli(command, run, *DESK, code=FAILED).all
    other = cli.run("--input", KO, code=WAITING)
    assert cli.json("cancel", other, *DESK) == {"run": other, "status": "cancelled"}


def test_a_branch_is_made_changed_and_run(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    cli("answer", cli.question(), "--value", YES, *DESK)
    said = cli("fork", run, "--at", "1", "--set", 'ticker="PEP"', "--set", "amount=5", "--why", "what if", *DESK)
    branch = next(r["run"] for r in cli.json("runs") if r["run"] != run)
    assert f"branch run {branch}: next limits, sanctions" in said.out and f"ledgergraph resume {branch} --graph desk:graph" in said.out
    state = cli.json("resume", branch, *DESK, code=WAITING)["state"]
    assert (state["ticker"], state["amount"], state["checks"]) == ("PEP", "5", ["PEP within limits", "0 hits"])
    assert cli.json("state", run)["ticker"] == "KO", "the run that it came from is as it was"
    assert cli.json("fork", run, "--at", "1", *DESK)["next"] == ["limits", "sanctions"]


def test_the_parent_of_a_branch_can_still_be_ended(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    branch = cli.json("fork", run, *DESK)["run"]
    cli("cancel", run, *DESK)
    assert cli.json("show", run)["status"] == "cancelled" and cli.json("show", branch)["status"] != "cancelled"


@pytest.mark.parametrize(("more", "says"), [
    (("--at", "999"), "has no version 999"), (("--at", "0"), "has no version 0"), (("--set", "ticker"), "is not FIELD=JSON"),
    (("--set", "ticker=KO"), "is no JSON"), (("--set", "price=1"), "no field 'price'"), (("--set", "ticker=1"), "ticker")])
def test_branches_that_cannot_be_made(more: tuple[str, ...], says: str, cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    assert says in cli("fork", run, *more, *DESK, code=FAILED).all
    assert len(cli.json("runs")) == 1, "nothing is half made"


# graph, check


def test_a_graph_is_drawn(cli: Cli) -> None:
    drawn = cli("graph", "desk:graph").out
    assert all(name in drawn for name in ("START", "limits", "sanctions", "approve", "settle", "END"))
    assert cli("graph", "desk:graph", "--format", "mermaid").out.startswith(("flowchart", "graph", "---"))
    ElementTree.fromstring(cli("graph", "desk:graph", "--format", "svg").out)
    cli("graph", "desk:graph", "--format", "svg", "--output", "desk.svg")
    assert "approve" in (cli.folder / "desk.svg").read_text()
    data = cli.json("graph", "desk:graph")
    assert data["nodes"] == ["limits", "sanctions", "approve", "settle"] and ["START", "limits"] in [
        [u.strip("_").upper(), v] for u, v in data["edges"]]
    assert set(data["routes"]["approve"]) == {"limits", "settle"} and data["loops"]["approve"]


def test_a_run_s_status_is_drawn_on_its_graph(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    assert cli.json("graph", run)["status"] == {"limits": "done", "sanctions": "done", "approve": "parked", "settle": "waiting"}
    assert "parked" in cli("graph", run).out


def test_a_graph_is_checked_without_running_it(cli: Cli) -> None:
    said = cli("check", "desk:graph")
    assert "a round begins with approve -> limits" in said.all and "every node fired" in said.all
    bad = cli.json("check", "desk:unreachable", code=FAILED)
    assert [(f["severity"], f["place"]) for f in bad["findings"] if f["severity"] == "error"] == [("error", "forgotten")]
    assert bad["rehearsal"]["never"] == ["forgotten"]
    assert cli.json("check", "desk:unreachable", "--no-rehearsal", code=FAILED)["rehearsal"] is None
    assert not list(cli.folder.glob("*.db")), "no log is needed"


def test_the_shipped_graph_passes_its_check(cli: Cli) -> None:
    assert not [f for f in cli.json("check", "factor-research")["findings"] if f["severity"] != "note"]


# replay


def test_a_replay_of_the_same_code_is_the_same(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    cli("answer", cli.question(), "--value", YES, *DESK)
    assert "the same updates, targets and schedule" in cli("replay", "verify", run, *DESK).out
    told = cli.json("replay", "verify", run, *DESK)
    assert told["ok"] and (told["nodes"], told["effects"], told["differences"]) == (4, 1, [])


def test_a_replay_of_other_code_names_the_place(cli: Cli) -> None:
    source = (Path(__file__).parent / "desk.py").read_text()
    (cli.folder / "desk_then.py").write_text(source)
    (cli.folder / "desk_now.py").write_text(source.replace("within limits", "is within limits"))
    run = cli.run("--input", KO, graph="desk_then:graph", code=WAITING)
    shown = cli("replay", "verify", run, "--graph", "desk_now:graph", code=DAMAGED).all
    first = cli.json("replay", "verify", run, "--graph", "desk_now:graph", code=DAMAGED)["differences"][0]
    assert (first["node"], first["field"], first["type"], first["version"]) == ("limits", "checks", "task.completed", 3)
    assert first["recorded_code"] != first["loaded_code"]
    for said in ("version 3 of thread:t", "limits", "KO is within limits", first["recorded_code"], first["loaded_code"]):
        assert said in shown


# doctor, db


def test_the_doctor_looks_at_log_and_installation(cli: Cli) -> None:
    assert "there is no log" in cli("doctor", code=FAILED).all
    cli.run("--input", KO, code=WAITING)
    told = {row["what"]: row for row in cli.json("doctor")}
    assert told["runs"]["found"] == "1 waiting" and told["graphs"]["found"] == "factor-research"
    assert all(row["verdict"].startswith("ok") for row in told.values())
    assert "incarnation" in cli("doctor").out


def test_a_log_is_verified_copied_upgraded_and_rebuilt(cli: Cli) -> None:
    run = cli.run("--input", KO, code=WAITING)
    events = len(cli.json("events", run))
    assert cli.json("db", "verify") == {"events": events, "streams": 1, "ok": True}
    assert f"{events} events of 1 streams" in cli("db", "verify").out
    assert cli.json("db", "upgrade") == {"upgraded": True} and "up to date" in cli("db", "upgrade").out
    before = [cli.json("runs"), cli.json("inbox"), cli.json("show", run)]
    assert cli.json("db", "rebuild") == {"runs": 1, "tasks": 1, "questions": 1} and "1 runs" in cli("db", "rebuild").out
    assert [cli.json("runs"), cli.json("inbox"), cli.json("show", run)] == before
    assert "verified" in cli("db", "backup", "copy.db").out
    assert cli.json("runs", "--log", "copy.db") == before[0] and cli.json("db", "backup", "second.db")["backup"] == "second.db"
    cli("answer", cli.question(), "--value", YES, *DESK, "--log", "copy.db")
    assert cli.json("show", run)["status"] == "waiting", "the copy is another log"


def test_a_damaged_log_is_named(cli: Cli) -> None:
    cli.run("--input", KO, code=WAITING)
    with closing(sqlite3.connect("ledgergraph.db", isolation_level=None)) as db:
        changed = db.execute("UPDATE events SET data = CAST(replace(CAST(data AS TEXT), 'KO', 'XX') AS BLOB) WHERE version = 1")
        assert changed.rowcount == 1
    said = cli("db", "verify", code=DAMAGED).all
    assert "damaged at stream 'thread:t' version 1" in said and "restore a backup" in said
    assert cli.json("db", "verify", code=DAMAGED)["error"] == "DamagedLog"


@pytest.mark.parametrize("command", [("verify",), ("rebuild",), ("backup", "copy.db")])
def test_a_log_that_is_not_there_is_not_made(command: tuple[str, ...], cli: Cli) -> None:
    assert "there is no log" in cli("db", *command, "--log", "other.db", code=FAILED).all
    assert not list(cli.folder.glob("*.db"))


def test_a_backup_never_goes_over_a_file(cli: Cli) -> None:
    cli.run("--input", KO, code=WAITING)
    (cli.folder / "taken.db").write_text("mine")
    assert "taken.db" in cli("db", "backup", "taken.db", code=FAILED).all
    assert (cli.folder / "taken.db").read_text() == "mine"
