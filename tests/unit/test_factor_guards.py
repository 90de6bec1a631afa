"""What factor research refuses or leaves out, so that odd price files and odd portfolios come to no quiet nonsense."""
from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from made_prices import made_prices

from ledgergraph.consumers import Command
from ledgergraph.consumers.app import App
from ledgergraph.consumers.graphs.factor_research import factors, nodes, portfolio, prices, risk, screen, validation
from ledgergraph.consumers.graphs.factor_research.graph import build
from ledgergraph.consumers.graphs.factor_research.portfolio import CannotConstruct, CapCannotBeMet
from ledgergraph.consumers.graphs.factor_research.prices import PricesUnreadable
from ledgergraph.schemas.as_of import MARKET
from ledgergraph.schemas.errors import InvalidInput, LedgergraphError, RunFailed

AS_OF = datetime(2001, 7, 2, 20, 0, tzinfo=MARKET)
CUT = date(2001, 7, 2)
Change = Callable[[pl.DataFrame], pl.DataFrame]


def read(folder: Path, frame: pl.DataFrame, name: str = "prices.parquet") -> tuple[prices.Facts, pl.DataFrame]:
    path = folder / name
    frame.write_csv(path) if name.endswith(".csv") else frame.write_parquet(path)
    facts, data = prices.read(str(path), AS_OF)
    return facts, prices.table(data)


def long(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.unpivot(index="date", variable_name="ticker", value_name="price")


# What is read


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Europe/London", "America/New_York", "UTC", None])
def test_midnight_in_any_zone_is_of_its_own_day(zone: str | None, tmp_path: Path) -> None:
    """In Tokyo it is still the day before in UTC: taken for that day, each price would be read a day too early."""
    frame = made_prices(6)
    midnight = frame.with_columns(pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone(zone))
    facts, table = read(tmp_path, midnight)
    assert facts.last == CUT and table.equals(read(tmp_path, frame)[1])


@pytest.mark.parametrize("name", ["long.parquet", "long.csv"])
def test_a_row_a_price_is_read_as_a_column_a_ticker(name: str, tmp_path: Path) -> None:
    frame = made_prices(6).with_columns(pl.when(pl.col("date") != date(1999, 1, 4)).then(pl.col("C3")).alias("C3"))
    rows = long(frame).sample(fraction=1, shuffle=True, seed=1).rename({"ticker": "Ticker", "price": "Price"})
    (wide_facts, wide), (facts, table) = read(tmp_path, frame), read(tmp_path, rows, name)
    assert table.equals(wide) and (facts.sessions, facts.companies, facts.missing) == (wide_facts.sessions, 8, 1)


@pytest.mark.parametrize("name", ["long.parquet", "long.csv"])
@pytest.mark.parametrize("after", [
    lambda rows: rows.head(0), lambda rows: pl.concat([rows, rows]),
    lambda rows: rows.with_columns(pl.lit("ZZZ").alias("ticker")),
    lambda rows: rows.with_columns(pl.lit(None, pl.String).alias("ticker")),
    lambda rows: rows.with_columns(pl.col("price") * -1e9)],
    ids=["deleted", "twice", "another company", "no company", "absurd"])
def test_rows_after_as_of_change_nothing_but_the_digest(name: str, after: Change, tmp_path: Path) -> None:
    rows = long(made_prices(6))
    odd = pl.concat([rows.filter(pl.col("date") <= CUT), after(rows.filter(pl.col("date") > CUT))])
    (clean_facts, clean), (facts, table) = read(tmp_path, rows, name), read(tmp_path, odd, name)
    assert table.equals(clean) and facts.digest != clean_facts.digest
    assert {**vars(facts), "digest": ""} == {**vars(clean_facts), "digest": ""}


@pytest.mark.parametrize(("change", "says"), [
    (lambda rows: rows.rename({"price": "value"}), "column `ticker` and none called `price`"),
    (lambda rows: pl.concat([rows, rows.head(1)]), "the price of C0 on 1990-01-01 more than once"),
    (lambda rows: rows.with_columns(pl.when(pl.col("price") > 99).then(pl.col("ticker")).alias("ticker")), "without a ticker")])
def test_rows_that_cannot_be_used_say_why(change: Change, says: str, tmp_path: Path) -> None:
    with pytest.raises(PricesUnreadable, match=says):
        read(tmp_path, change(long(made_prices(6))))


# What is held


def listed_late(seed: int, sessions: int) -> pl.DataFrame:
    """C0 has prices in the last sessions only, and moves less than anybody."""
    frame = made_prices(seed, revert=0.02)
    calm = pl.Series("C0", [None] * (frame.height - sessions) + [100 + 0.001 * (i % 2) for i in range(sessions)], pl.Float64)
    return frame.with_columns(calm)


def test_who_was_listed_last_month_is_not_held_as_the_calmest() -> None:
    """Short reversal needs a few sessions only; the risk is measured over a year."""
    table = listed_late(8, 60)
    assert portfolio.scores([factors.short_reversal(table, factors.ROUNDS[0])]).keys() == {f"C{i}" for i in range(8)}
    assert risk.complete(table) == [f"C{i}" for i in range(1, 8)]
    panel = factors.short_reversal(table, factors.ROUNDS[0])
    known = {"f": {**panel, "values": [[9.0, *range(7)]]}}
    state: Any = {"survivors": ["f"], "panels": known, "cap": Decimal("0.5"), "frame": parquet(table)}
    assert set(nodes.construct(state)["weights"]) == {"C5", "C6", "C7"}


def parquet(table: pl.DataFrame) -> bytes:
    out = BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def test_a_gap_in_the_last_year_is_no_year_of_prices() -> None:
    table = made_prices(8)
    day = table["date"]
    for back, held in ((1, False), (253, False), (254, True)):
        hole = table.with_columns(pl.when(pl.col("date") != day[-back]).then(pl.col("C2")).alias("C2"))
        assert ("C2" in risk.complete(hole)) is held, back


@pytest.mark.parametrize("score", [{}, {"A": 0.5}])
def test_fewer_than_two_companies_are_no_portfolio(score: dict[str, float]) -> None:
    with pytest.raises(CannotConstruct, match=f"{len(score)} companies have a value of every factor"):
        portfolio.best(score)


def test_what_cannot_be_built_is_in_the_tree_of_errors() -> None:
    assert issubclass(CapCannotBeMet, CannotConstruct) and issubclass(CannotConstruct, RunFailed)
    assert issubclass(RunFailed, LedgergraphError)
    with pytest.raises(CapCannotBeMet, match=r"^2 companies at no more than 0\.05 each reach 0\.10, not 1\. .*at least 0\.5000,"):
        portfolio.weights({"A": 0.1, "B": 0.2}, Decimal("0.05"))


@pytest.mark.parametrize("cap", ["0", "-0.1"])
def test_a_cap_that_is_none_is_refused_before_anything_is_read(cap: str) -> None:
    app = build().compile("memory://")
    with pytest.raises(InvalidInput, match=f"the cap is {cap}: give a share above 0"):
        app.invoke({"cap": Decimal(cap)}, thread_id="t", as_of="2010-06-30")
    assert "effect.intended" not in {stored.type for stored in app.store.read_all(0, 100)}
    assert app.get_state(thread_id="t").next == ("plan",)


# What is said


def verdict(factor: str, mean: float, t: float) -> validation.Verdict:
    return {"factor": factor, "months": 233, "mean": mean, "t": t, "passes": mean > 0 and t >= 1, "why": ""}


def test_what_is_significant_against_its_direction_is_said() -> None:
    """"None passes a 5 % test" would be false where one does with its sign turned round."""
    weak, against, good = verdict("weak", 0.03, 1.5), verdict("against", -0.04, -2.4), verdict("good", 0.05, 2.5)
    data = {"source": "packaged"}
    assert screen.warnings([weak], data)[0].startswith("No factor is significant: none of the 1")
    said = screen.warnings([weak, against], data)[0]
    assert "No factor is significant in its direction" in said and said.endswith("Against it: against.")
    assert screen.warnings([weak, against, good], data)[0].startswith("Significant at 5 % as single trials: good; among 3 trials")


# What is written


def test_the_same_key_writes_the_same_file(tmp_path: Path) -> None:
    signal, out = {"last": "2010-06-30", "weights": {"KO": "1.0000"}}, tmp_path / "new" / "folder"
    first, before = nodes.write(out, signal, "k" * 40), sorted(out.iterdir())
    content = before[0].read_bytes()
    assert nodes.write(out, signal, "k" * 40) == first and sorted(out.iterdir()) == before and before[0].read_bytes() == content
    assert nodes.write(out, signal, "m" * 40)["path"] != first["path"] and len(list(out.iterdir())) == 2


def approved(app: App, out: Path) -> dict[str, Any]:
    app.invoke({"out": str(out), "cap": Decimal("0.15")}, thread_id="t", as_of="2010-06-30")
    return app.invoke(Command(resume={"approved": True, "why": "seen"}), thread_id="t")


def test_a_publication_that_died_before_it_was_recorded_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there, the log does not say so: the task runs again, under the same key."""
    app, write = build().compile("memory://"), nodes.write

    def killed(folder: Path, signal: dict[str, Any], key: str) -> dict[str, Any]:
        write(folder, signal, key)
        raise OSError("the connection broke after the file was written")
    monkeypatch.setattr(nodes, "write", killed)
    with pytest.raises(OSError, match="broke after the file was written"):
        approved(app, tmp_path)
    left = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    monkeypatch.setattr(nodes, "write", write)
    state = app.invoke(None, thread_id="t")
    assert state["status"] == "published" and {p.name: p.read_bytes() for p in tmp_path.iterdir()} == left and len(left) == 1
    assert state["published"]["path"] == str(tmp_path / next(iter(left)))


def test_a_day_s_close_is_of_that_day_in_new_york() -> None:
    """20:30 UTC is 16:30 there; 19:59 is a minute before the close."""
    assert prices.last_known_day(datetime(2010, 6, 30, 20, 30, tzinfo=UTC)) == date(2010, 6, 30)
    assert prices.last_known_day(datetime(2010, 6, 30, 19, 59, tzinfo=UTC)) == date(2010, 6, 29)
    assert prices.last_known_day(datetime(2010, 12, 1, 20, 59, tzinfo=UTC)) == date(2010, 11, 30)
