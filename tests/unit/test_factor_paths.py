"""Factor research from end to end on made prices: every path of its routes, and that nothing after as_of shows through."""
from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_prices import made_prices

from ledgergraph.consumers import Command
from ledgergraph.consumers import app as app_module
from ledgergraph.consumers.app import App
from ledgergraph.consumers.graphs.factor_research import factors, portfolio, prices, screen
from ledgergraph.consumers.graphs.factor_research import nodes as nodes_module
from ledgergraph.consumers.graphs.factor_research.graph import BASE, build
from ledgergraph.consumers.graphs.factor_research.portfolio import CapCannotBeMet
from ledgergraph.consumers.replay import verify_run
from ledgergraph.projections.history import History
from ledgergraph.schemas.errors import InvalidAsOf, InvalidInput, InvalidUpdateError
from ledgergraph.schemas.ids import RunId, StreamId

THREAD = "research"
AS_OF = "2002-08-01"
YES = {"approved": True, "why": "looked at it", "by": "person:ann"}
NO = {"approved": False, "why": "too few companies", "by": "person:ann"}


class Research:
    """One run over a price table, on a log in memory."""

    def __init__(self, folder: Path, table: pl.DataFrame | None, as_of: str = AS_OF, cap: str = "0.5", name: str = "prices.parquet") -> None:
        self.app: App = build().compile("memory://")
        path = "" if table is None else str(folder / name)
        if table is not None:
            table.write_csv(path) if name.endswith(".csv") else table.write_parquet(path)
        self.given = {"prices": path, "out": str(folder / "signals"), "cap": Decimal(cap)}
        self.as_of = as_of

    def start(self) -> dict[str, Any]:
        return self.app.invoke(self.given, thread_id=THREAD, as_of=self.as_of)

    def answer(self, answer: Any) -> dict[str, Any]:
        return self.app.invoke(Command(resume=answer), thread_id=THREAD)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return [(stored.type, event) for stored, event in self.app.history.events(StreamId(f"thread:{THREAD}"))]

    def firings(self) -> Counter[str]:
        ready = [event for kind, event in self.events if kind == "tasks.ready"]
        return Counter(t.node for e in ready for t in e.tasks)

    def replayed(self) -> bool:
        run = self.app.get_state(thread_id=THREAD).metadata["run"]
        return verify_run(History(self.app.store), self.app.binding, RunId(run)).ok


def nodes(rounds: int, *last: str) -> dict[str, int]:
    """How often each node must fire: the search `rounds` times, then the given ones once."""
    search = dict.fromkeys((*BASE, "momentum_over_volatility", "validate"), rounds)
    widened = {"widen": rounds - 1} if rounds > 1 else {}
    return {"plan": 1, **search, **widened, **dict.fromkeys(last, 1)}


TO_APPROVAL = ("construct", "risk", "decide", "narrate", "approve")


def test_no_survivor_is_no_signal(tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(8))
    state = run.start()
    assert state["status"] == "no signal" and "__interrupt__" not in state
    assert "No factor passed the gate" in state["narrative"]
    assert run.firings() == nodes(1, "no_signal")
    assert not (tmp_path / "signals").exists() and run.replayed()


@pytest.mark.parametrize(("seed", "planted", "rounds", "survivors", "thin"), [
    (6, {"drift": 1e-4}, 1, {"drawdown (252)", "momentum (21-252)", "momentum_over_volatility (21-252, 252)"}, False),
    (5, {"revert": 0.02}, 2, {"low_volatility (252)", "short_reversal (21)", "momentum (21-126)", "short_reversal (10)"}, False),
    (8, {"revert": 0.02}, 3, {"short_reversal (21)", "short_reversal (10)", "short_reversal (5)"}, False),
    (4, {}, 3, {"short_reversal (21)"}, True),
], ids=["enough at once", "widened once", "widened twice, enough", "widened twice, thin"])
def test_each_way_to_a_signal(seed: int, planted: dict[str, Any], rounds: int, survivors: set[str], thin: bool, tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(seed, **planted))
    state = run.start()
    assert run.firings() == nodes(rounds, *TO_APPROVAL)
    assert (set(state["survivors"]), state["thin"], state["round"]) == (survivors, thin, rounds - 1)
    assert len(state["verdicts"]) == 6 * rounds
    shown = state["__interrupt__"][0].value["screen"]
    assert ("THIN" in shown) == thin and ("fewer than 3 factors passed" in state["decision"]["reasons"]) == thin
    state = run.answer(YES)
    assert state["status"] == "published" and run.firings() == nodes(rounds, *TO_APPROVAL, "publish")
    assert json.loads(Path(state["published"]["path"]).read_bytes())["thin"] is thin and run.replayed()


def test_the_planted_factor_is_found() -> None:
    """A company that always gains more is held: the upper half by momentum is the upper half by drift."""
    table = made_prices(6, drift=3e-4)
    panel = factors.momentum(table, factors.ROUNDS[0])
    assert {"C6", "C7"} <= set(portfolio.best(portfolio.scores([panel])))


def test_a_rejected_run_ends_without_a_file(tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(6, drift=1e-4))
    run.start()
    state = run.answer(NO)
    assert state["status"] == "rejected" and run.firings() == nodes(1, *TO_APPROVAL, "reject")
    assert not (tmp_path / "signals").exists() and "published" not in {k for k, v in state.items() if v}
    assert "rejected by person:ann: too few companies" in screen.report(state) and run.replayed()


def test_publishing_again_leaves_one_file(tmp_path: Path) -> None:
    """Also where an attempt was killed while it wrote."""
    signal = {"last": "2010-06-30", "weights": {"KO": "1"}}
    first = nodes_module.write(tmp_path, signal, "0123456789abcdef")
    (tmp_path / "signal-2010-06-30-0123456789ab.77.part").write_text("{")
    assert nodes_module.write(tmp_path, signal, "0123456789abcdef") == first
    assert [p.name for p in tmp_path.iterdir()] == ["signal-2010-06-30-0123456789ab.json"]
    assert json.loads(Path(first["path"]).read_bytes()) == signal


@pytest.mark.parametrize(("answer", "problem"), [
    (True, "did not say whether it is approved"), ({"approved": "yes", "why": "x"}, "did not say whether it is approved"),
    ({"approved": True}, "gave no reason"), ({"approved": True, "why": "  "}, "gave no reason")])
def test_an_answer_that_does_not_decide_is_asked_again(answer: Any, problem: str, tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(6, drift=1e-4))
    first = run.start()["__interrupt__"][0]
    again = run.answer(answer)["__interrupt__"][0]
    assert again.id != first.id and problem in again.value["problem"] and again.value["screen"] == first.value["screen"]
    assert not (tmp_path / "signals").exists()
    assert run.answer(YES)["status"] == "published" and run.replayed()


def test_a_cap_that_cannot_be_met_stops_the_run_and_can_be_raised(tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(6, drift=1e-4), cap="0.2")
    with pytest.raises(CapCannotBeMet, match=r"4 companies at no more than 0\.2") as raised:
        run.start()
    assert any("ledgergraph resume" in note for note in raised.value.__notes__)
    assert run.app.get_state(thread_id=THREAD).metadata["status"] == "failed"
    run.app.update_state(None, {"cap": Decimal("0.3")}, thread_id=THREAD)
    state = run.app.invoke(None, thread_id=THREAD)
    assert sum(state["weights"].values()) == 1 and max(state["weights"].values()) <= Decimal("0.3")
    assert run.firings()["validate"] == 1


def test_without_as_of_it_says_what_to_give(tmp_path: Path) -> None:
    run = Research(tmp_path, made_prices(6, drift=1e-4))
    with pytest.raises(InvalidInput, match=r"the run has no as_of\. Give one"):
        run.app.invoke(run.given, thread_id=THREAD)
    assert run.firings() == {"plan": 1}


@pytest.mark.parametrize("as_of", ["2199-01-01", "2010-06-30T16:00:00", "last week", datetime(2010, 6, 30, 16, 0)])
def test_an_as_of_that_cannot_be_used_starts_nothing(as_of: Any, tmp_path: Path) -> None:
    run = Research(tmp_path, None, as_of=as_of)
    with pytest.raises(InvalidAsOf, match="cannot be used"):
        run.start()
    assert run.events == []


@pytest.mark.parametrize(("field", "value"), [("cap", "0.15"), ("cap", 0.15), ("prices", 3), ("window", 252)])
def test_input_of_another_type_starts_nothing(field: str, value: Any, tmp_path: Path) -> None:
    run = Research(tmp_path, None)
    run.given[field] = value
    with pytest.raises(InvalidUpdateError, match=field):
        run.start()
    assert run.events == []


def test_a_later_run_of_the_thread_sees_nothing_of_the_first(tmp_path: Path) -> None:
    """The first one knew more, and left panels and results in the thread's state."""
    table = made_prices(5, revert=0.02)
    both, alone = Research(tmp_path, table), Research(tmp_path, table, as_of="2002-01-01")
    both.start()
    assert both.answer(YES)["round"] == 1
    both.as_of = "2002-01-01"
    again, fresh = both.start(), alone.start()
    for state in (again, fresh):
        state.pop("panels"), state.pop("__interrupt__")
    assert again == fresh and again["status"] == "open" and again["answer"] == {}


# After as_of


def nothing(f: pl.DataFrame) -> pl.DataFrame:
    return f


def each(value: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda f: f.with_columns(value.alias(c) for c in f.columns if c != "date")


def deleted(f: pl.DataFrame) -> pl.DataFrame:
    return f.head(0)


def holed(f: pl.DataFrame) -> pl.DataFrame:
    return f.filter(pl.col("date").dt.day() > 15)


def turned(f: pl.DataFrame) -> pl.DataFrame:
    return f.reverse()


def doubled(f: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([f, f])


POISONS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "NaN": each(pl.lit(float("nan"))), "infinite": each(pl.lit(float("inf"))), "missing": each(pl.lit(None, pl.Float64)),
    "zero": each(pl.lit(0.0)), "negative": each(pl.lit(-1e9)), "absurd": each(pl.lit(1e300)),
    "deleted": deleted, "holed": holed, "turned round": turned, "each day twice": doubled,
}


def poisoned(table: pl.DataFrame, how: Callable[[pl.DataFrame], pl.DataFrame], cut: date) -> pl.DataFrame:
    after = how(table.filter(pl.col("date") > cut)).cast(table.schema)
    return pl.concat([table.filter(pl.col("date") <= cut), after])


def all_of(run: Research, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Everything that the run reads, computes and prints, without the file's digest: screen, report, the published file, states, and
    the events, sorted (in which order branches end is the clock's business)."""
    with monkeypatch.context() as m:
        m.setattr(app_module, "new_run_id", lambda: RunId("run-" + "0" * 32))
        asked = run.start()
        state = run.answer(YES)
    digest = state["data"]["digest"]
    events = sorted(repr((kind, *event._asdict().items())) for kind, event in run.events)
    published = Path(state["published"]["path"]).read_text()
    texts = (asked["__interrupt__"][0].value["screen"], screen.report(state), published, repr(asked), repr(state), *events)
    without = [re.sub(r"\('(worker|blob)', '[^']*'\)|worker='[^']*'", r"\1", t) for t in texts]
    return tuple(t.replace(digest[:16], "DIGEST").replace(digest[16:], "") for t in without)


@pytest.fixture(scope="module")
def packaged() -> pl.DataFrame:
    return prices.table(prices.packaged())


def test_what_stands_after_as_of_changes_nothing_but_the_digest(packaged: pl.DataFrame, tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    cut = date(2010, 6, 30)
    clean = Research(tmp_path, packaged, as_of="2010-06-30", cap="0.15")
    expected = all_of(clean, monkeypatch)
    digests = {clean.app.get_state(thread_id=THREAD).values["data"]["digest"]}
    for name in ("NaN", "absurd", "deleted"):
        run = Research(tmp_path, poisoned(packaged, POISONS[name], cut), as_of="2010-06-30", cap="0.15")
        assert all_of(run, monkeypatch) == expected, name
        digests.add(run.app.get_state(thread_id=THREAD).values["data"]["digest"])
    assert len(digests) == 4


@pytest.mark.parametrize("name", POISONS)
def test_no_poison_shows_on_made_prices(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made_prices(6, drift=1e-4)
    expected = all_of(Research(tmp_path, table, as_of="2001-07-02"), monkeypatch)
    run = Research(tmp_path, poisoned(table, POISONS[name], date(2001, 7, 2)), as_of="2001-07-02")
    assert all_of(run, monkeypatch) == expected


def test_a_company_that_is_listed_later_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made_prices(6, drift=1e-4)
    later = table.with_columns(pl.when(pl.col("date") > date(2001, 7, 2)).then(pl.col("C1")).alias("AAA"))
    assert all_of(Research(tmp_path, later, as_of="2001-07-02"), monkeypatch) == all_of(Research(tmp_path, table, as_of="2001-07-02"), monkeypatch)


def test_text_after_as_of_in_a_csv_file_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made_prices(6, drift=1e-4)
    odd = table.with_columns(pl.when(pl.col("date") > date(2001, 7, 2)).then(pl.lit("n/a")).otherwise(pl.col(c).cast(pl.String)).alias(c)
                             for c in table.columns if c != "date")
    expected = all_of(Research(tmp_path, table, as_of="2001-07-02", name="p.csv"), monkeypatch)
    assert all_of(Research(tmp_path, odd, as_of="2001-07-02", name="p.csv"), monkeypatch) == expected


def test_a_changed_price_before_as_of_does_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the comparison above can fail."""
    table = made_prices(6, drift=1e-4)
    day = table["date"][-300]
    changed = table.with_columns(pl.when(pl.col("date") == day).then(pl.col("C7") * 1.05).otherwise(pl.col("C7")).alias("C7"))
    first, second = (all_of(Research(tmp_path, t), monkeypatch) for t in (table, changed))
    assert first != second


def test_the_demo_s_numbers(tmp_path: Path) -> None:
    run = Research(tmp_path, None, as_of="2010-06-30", cap="0.15")
    state = run.start()
    assert run.firings() == nodes(3, *TO_APPROVAL)
    assert state["survivors"] == ["momentum (21-252)", "momentum_over_volatility (21-252, 252)", "short_reversal (5)"]
    first = [v for v in state["verdicts"] if re.search(r"\((252|21|21-252|252-1260|21-252, 252)\)$", v["factor"])]
    assert len(first) == 6 and sum(v["passes"] for v in first) == 2, "two pass at first, so that the search is widened"
    assert sum(state["weights"].values()) == 1 and max(state["weights"].values()) == Decimal("0.15")
    assert sum(state["risk"]["contributions"].values()) == state["risk"]["volatility"]
    report = screen.report(run.answer(YES))
    for said in ("No factor is significant", "picked with hindsight", "adjusted later"):
        assert said in " ".join(report.split()) and said in " ".join(state["__interrupt__"][0].value["screen"].split())
