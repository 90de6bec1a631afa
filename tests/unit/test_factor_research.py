"""Factor research in numbers: factors, verdicts, weights and risk against values from elsewhere, and what must always hold."""
from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_UP, Decimal
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_prices import made_prices, weekdays

from ledgergraph.consumers.graphs.factor_research import factors, portfolio, prices, risk, screen, validation
from ledgergraph.consumers.graphs.factor_research.factors import ROUNDS, Panel
from ledgergraph.consumers.graphs.factor_research.portfolio import CapCannotBeMet
from ledgergraph.consumers.graphs.factor_research.prices import PricesUnreadable
from ledgergraph.schemas.as_of import MARKET, parse_as_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)

# Momentum, yearly volatility and worst fall within a year at 2010-06-30: worked out twice, with other programs than this one.
REFERENCE = {
    "AAPL": (0.831598, 0.285950, -0.129060), "LLY": (-0.005562, 0.176575, -0.115810),
    "AMD": (1.103359, 0.595703, -0.279528), "MRK": (0.238960, 0.250701, -0.216348),
    "BAC": (0.171864, 0.403390, -0.261878), "MSFT": (0.110305, 0.244257, -0.263666),
    "BBY": (0.233619, 0.332808, -0.303006), "PEP": (0.167533, 0.171398, -0.085316),
    "CVX": (0.132891, 0.211769, -0.173082), "PFE": (0.039480, 0.222451, -0.272679),
    "GE": (0.389065, 0.335530, -0.255817), "PG": (0.233772, 0.165090, -0.084832),
    "HD": (0.463922, 0.233577, -0.225373), "RRC": (0.057931, 0.417943, -0.314775),
    "JNJ": (0.068866, 0.128675, -0.113601), "UNH": (0.161192, 0.318085, -0.196502),
    "JPM": (0.135489, 0.337721, -0.234282), "WMT": (0.074474, 0.143238, -0.136479),
    "KO": (0.094009, 0.165333, -0.145828), "XOM": (-0.130890, 0.194484, -0.243735),
}
WEIGHTS = {"PG": "0.1500", "CVX": "0.1306", "HD": "0.1184", "MSFT": "0.1133", "MRK": "0.1104", "AAPL": "0.0967", "BBY": "0.0831",
           "GE": "0.0825", "BAC": "0.0686", "AMD": "0.0464"}


def at(day: str) -> datetime:
    moment = parse_as_of(day, NOW)
    assert moment is not None
    return moment


def table_at(day: str, path: str = "") -> pl.DataFrame:
    return prices.table(prices.read(path, at(day))[1])


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return table_at("2010-06-30")


def last_of(panel: Panel) -> dict[str, float | None]:
    return dict(zip(panel["tickers"], panel["values"][-1], strict=True))


def test_factors_are_those_of_the_reference(table: pl.DataFrame) -> None:
    w = ROUNDS[0]
    found = [last_of(f(table, w)) for f in (factors.momentum, factors.low_volatility, factors.drawdown)]
    assert {t: tuple(round(f[t] or 0, 6) for f in found) for t in REFERENCE} == {t: (m, -v, d) for t, (m, v, d) in REFERENCE.items()}
    assert set(table.columns) == {"date", *REFERENCE}


def test_reversals_are_the_returns_turned_round(table: pl.DataFrame) -> None:
    p, w = table["KO"].to_list(), ROUNDS[0]
    assert last_of(factors.short_reversal(table, w))["KO"] == pytest.approx(-(p[-1] / p[-22] - 1), rel=1e-12)
    assert last_of(factors.long_reversal(table, w))["KO"] == pytest.approx(-(p[-253] / p[-1261] - 1), rel=1e-12)


def test_momentum_over_volatility_divides_one_panel_by_the_other(table: pl.DataFrame) -> None:
    m, v = factors.momentum(table, ROUNDS[0]), factors.low_volatility(table, ROUNDS[0])
    both = last_of(factors.momentum_over_volatility(m, v))
    assert {t: round(both[t] or 0, 4) for t in REFERENCE} == {t: pytest.approx(m / v, abs=1e-4) for t, (m, v, _) in REFERENCE.items()}


def test_a_panel_has_every_month_end_and_the_last_session(table: pl.DataFrame) -> None:
    days = factors.momentum(table, ROUNDS[0])["days"]
    assert days[0] == "1990-01-31" and days[-1] == "2010-06-30" and len(days) == 20 * 12 + 6
    assert factors.momentum(table_at("2010-06-14"), ROUNDS[0])["days"][-1] == "2010-06-14"


def test_the_information_coefficient_is_that_of_the_reference() -> None:
    """371 month ends from December 1991: mean .028197, t 1.7029."""
    table = table_at("2022-12-30")
    panel = factors.momentum(table, ROUNDS[0])
    months = [i for i, day in enumerate(panel["days"]) if day >= "1991-12"]
    part: Panel = {"days": [panel["days"][i] for i in months], "tickers": panel["tickers"], "values": [panel["values"][i] for i in months]}
    verdict = validation.judge("momentum", part, validation.forward_returns(table))
    assert (verdict["months"], round(verdict["mean"] or 0, 6), round(verdict["t"] or 0, 4)) == (371, 0.028197, 1.7029)


def test_verdicts_at_the_demo_s_day(table: pl.DataFrame) -> None:
    ahead = validation.forward_returns(table)
    m, v = factors.momentum(table, ROUNDS[0]), factors.low_volatility(table, ROUNDS[0])
    both = validation.judge("both", factors.momentum_over_volatility(m, v), ahead)
    alone, calm = validation.judge("alone", m, ahead), validation.judge("calm", v, ahead)
    assert [(x["months"], round(x["mean"] or 0, 3), round(x["t"] or 0, 1)) for x in (alone, both)] == [(233, 0.034, 1.5), (233, 0.036, 1.7)]
    assert alone["passes"] and both["passes"] and not calm["passes"] and (calm["mean"] or 0) < 0
    assert not any(map(validation.is_significant, (alone, both, calm)))


def test_the_future_of_a_month_end_is_never_beyond_the_table(table: pl.DataFrame) -> None:
    """The last month ends have no return of 21 sessions yet: May 28 has 22 sessions after it, June 30 none."""
    ahead = validation.forward_returns(table)
    assert ahead["2010-05-28"] and not ahead["2010-06-30"]
    assert ahead["2010-05-28"]["KO"] == pytest.approx(table["KO"][-2] / table.filter(pl.col("date") == date(2010, 5, 28))["KO"][0] - 1)


def test_fewer_than_120_months_are_no_verdict() -> None:
    table = made_prices(6, drift=1e-4, sessions=252 + 119 * 21)
    verdict = validation.judge("momentum", factors.momentum(table, ROUNDS[0]), validation.forward_returns(table))
    assert not verdict["passes"] and verdict["mean"] is None and "120 are needed" in verdict["why"]


def test_weights_of_the_demo_by_hand(table: pl.DataFrame) -> None:
    """Inverse volatility of the ten, the largest cut to the cap, the rest in proportion."""
    inverse = {t: 1 / REFERENCE[t][1] for t in WEIGHTS}
    free = math.fsum(x for t, x in inverse.items() if t != "PG")
    by_hand = {t: 0.15 if t == "PG" else 0.85 * x / free for t, x in inverse.items()}
    found = portfolio.weights(risk.volatility(table, list(WEIGHTS)), Decimal("0.15"))
    assert {t: str(w) for t, w in found.items()} == WEIGHTS
    assert {t: float(w) for t, w in found.items()} == {t: pytest.approx(x, abs=1e-4) for t, x in by_hand.items()}


volatilities = st.dictionaries(st.text("ABCDEFGH", min_size=1, max_size=3), st.floats(0.001, 5), min_size=1, max_size=40)


@given(volatilities, st.decimals("0.001", "1.5", places=6))
def test_weights_sum_to_exactly_1_within_any_cap_that_can_be_met(volatility: dict[str, float], cap: Decimal) -> None:
    if len(volatility) * cap < 1:
        with pytest.raises(CapCannotBeMet, match="Raise the cap to at least"):
            portfolio.weights(volatility, cap)
        return
    found = portfolio.weights(volatility, cap)
    assert sum(found.values()) == 1
    assert all(0 <= w <= cap for w in found.values())
    assert set(found) == set(volatility)


@given(st.integers(1, 40), st.floats(0.001, 5))
def test_the_tightest_cap_gives_equal_weights(companies: int, volatility: float) -> None:
    tightest = (1 / Decimal(companies)).quantize(portfolio.FINEST, ROUND_UP)
    found = portfolio.weights({f"C{i}": volatility * (i + 1) for i in range(companies)}, tightest)
    assert sum(found.values()) == 1 and max(found.values()) <= tightest


@given(volatilities)
def test_calmer_companies_never_weigh_less(volatility: dict[str, float]) -> None:
    found = portfolio.weights(volatility, Decimal(1))
    ordered = sorted(volatility, key=lambda t: volatility[t])
    assert all(found[a] >= found[b] - portfolio.STEP for a, b in pairwise(ordered))


def test_a_cap_that_cannot_be_met_says_which_could() -> None:
    with pytest.raises(CapCannotBeMet) as raised:
        portfolio.weights({"A": 0.1, "B": 0.2, "C": 0.3}, Decimal("0.3"))
    assert (raised.value.companies, raised.value.cap) == (3, Decimal("0.3"))
    assert "at least 0.3334" in str(raised.value)


@pytest.mark.parametrize(("volatility", "cap", "says"), [
    ({"A": 0.0, "B": 0.1}, "1", "the volatility of A is 0.0"), ({"A": math.nan}, "1", "the volatility of A is nan"),
    ({"A": 0.1}, "NaN", "the cap is NaN"), ({"A": 0.1}, "-1", "the cap is -1"), ({"A": 0.1}, "Infinity", "the cap is Infinity")])
def test_odd_numbers_are_refused(volatility: dict[str, float], cap: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        portfolio.weights(volatility, Decimal(cap))


def test_the_upper_half_is_held_and_ties_go_by_name() -> None:
    assert portfolio.best({"D": 0.5, "A": 0.5, "C": 0.9, "B": 0.5}) == ["C", "A"]
    assert portfolio.best({"A": 0.1, "B": 0.2, "C": 0.3}) == ["C", "B"]
    rows: list[list[float | None]] = [[1.0, 1.0, 3.0], [3.0, 2.0, None]]
    panels: list[Panel] = [{"days": ["d"], "tickers": ["A", "B", "C"], "values": [row]} for row in rows]
    assert portfolio.scores(panels) == {"A": (0.25 + 1) / 2, "B": (0.25 + 0) / 2}


def test_risk_contributions_sum_to_the_total_exactly(table: pl.DataFrame) -> None:
    found = risk.measure(table, {t: Decimal(w) for t, w in WEIGHTS.items()})
    assert sum(found["contributions"].values()) == found["volatility"] == Decimal("0.192936")
    assert found["contributions"]["AMD"] == Decimal("0.017114")
    assert (round(found["worst_fall"], 3), round(found["worst_day"], 3)) == (Decimal("-0.166"), Decimal("-0.039"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 1_000), min_size=2, max_size=8))
def test_risk_contributions_sum_for_any_weights(shares: list[int]) -> None:
    table = made_prices(1, sessions=260)
    weights = {f"C{i}": (Decimal(n) / sum(shares)).quantize(Decimal("0.0001")) for i, n in enumerate(shares)}
    found = risk.measure(table, weights)
    assert sum(found["contributions"].values()) == found["volatility"] > 0


def test_a_portfolio_of_one_has_the_company_s_own_risk(table: pl.DataFrame) -> None:
    found = risk.measure(table, {"KO": Decimal(1)})
    assert float(found["volatility"]) == pytest.approx(REFERENCE["KO"][1], abs=1e-6)
    assert float(found["worst_fall"]) == pytest.approx(REFERENCE["KO"][2], abs=1e-6)


# What is read


def test_the_close_of_a_day_is_known_from_four_o_clock_in_new_york() -> None:
    close = datetime(2010, 6, 30, 16, 0, tzinfo=MARKET)
    assert prices.read("", close)[0].last == date(2010, 6, 30)
    assert prices.read("", close - timedelta(seconds=1))[0].last == date(2010, 6, 29)
    assert prices.read("", at("2010-07-04"))[0].last == date(2010, 7, 2)


def test_what_was_read_is_said() -> None:
    facts, _ = prices.read("", at("2010-06-30"))
    assert (facts.source, facts.companies, facts.sessions, facts.missing) == ("packaged", 20, 5167, 0)
    assert (facts.first, facts.last, facts.cut) == (date(1990, 1, 2), date(2010, 6, 30), date(2010, 6, 30))


def written(folder: Path, frame: pl.DataFrame, name: str = "prices.parquet") -> str:
    path = folder / name
    frame.write_csv(path) if name.endswith(".csv") else frame.write_parquet(path)
    return str(path)


def test_csv_and_parquet_are_read_alike(tmp_path: Path) -> None:
    frame = made_prices(1, sessions=2_200)
    as_csv, as_parquet = (table_at("2000-01-01", written(tmp_path, frame, name)) for name in ("p.csv", "p.parquet"))
    assert as_csv.equals(as_parquet) and as_csv.height == 2_200


def test_a_company_without_a_price_on_the_last_day_has_no_factor(tmp_path: Path) -> None:
    frame = made_prices(1, sessions=2_200)
    gone = frame.with_columns(pl.when(pl.col("date") < frame["date"][-1]).then(pl.col("C3")).alias("C3"))
    table = table_at("2000-01-01", written(tmp_path, gone))
    panels = [f(table, ROUNDS[0]) for f in (factors.momentum, factors.low_volatility, factors.drawdown, factors.short_reversal,
                                            factors.long_reversal)]
    assert [last_of(p)["C3"] for p in panels] == [None] * 5
    assert "C3" not in portfolio.scores(panels) and "C2" in portfolio.scores(panels)


def test_a_missing_price_makes_no_calm_company(tmp_path: Path) -> None:
    """A gap is not a day without a move: the windows that hold it have no value."""
    frame = made_prices(1, sessions=2_200)
    hole = frame.with_columns(pl.when(pl.col("date") != frame["date"][-100]).then(pl.col("C3")).alias("C3"))
    table = table_at("2000-01-01", written(tmp_path, hole))
    assert last_of(factors.low_volatility(table, ROUNDS[0]))["C3"] is None
    assert last_of(factors.drawdown(table, ROUNDS[0]))["C3"] is None
    assert last_of(factors.momentum(table, ROUNDS[0]))["C3"] is not None


def other_days(frame: pl.DataFrame, days: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.Series("date", days))


@pytest.mark.parametrize(("change", "says"), [
    (lambda f: f.rename({"date": "when"}), "no column `date`"),
    (lambda f: f.select("date", "C0", "C1", "C2", "C3"), "at least 5 columns of prices, one a ticker; it has 4"),
    (lambda f: f.head(1_999), "1999 sessions up to 2000-01-01, at least 2000 are needed"),
    (lambda f: pl.concat([f, f.tail(1)]), "more than once"),
    (lambda f: f.with_columns(pl.lit("a lot").alias("C2")), "a price that is no number.*C2"),
    (lambda f: f.with_columns(pl.col("C0").alias("rate") > 0), "the column 'rate', which holds no numbers"),
    (lambda f: f.with_columns(pl.when(pl.col("C1") < 0).then(pl.col("date")).alias("date")), "a row without a day"),
    (lambda f: other_days(f, ["06/30/2010"] * f.height), "days that are not written as 2010-06-30"),
    (lambda f: f.with_columns((-pl.col(c)).alias(c) for c in ("C0", "C1", "C2", "C3")), "it has 4"),
])
def test_files_that_cannot_be_used_say_why(change: object, says: str, tmp_path: Path) -> None:
    assert callable(change)
    path = written(tmp_path, change(made_prices(1, sessions=2_200)))
    with pytest.raises(PricesUnreadable, match=says):
        prices.read(path, at("2000-01-01"))


@pytest.mark.parametrize(("name", "content", "says"), [
    ("p.parquet", b"no parquet", "no parquet or csv file"), ("p.csv", b"", "no parquet or csv file"), ("missing.csv", None, "cannot be read")])
def test_files_that_are_none_say_so(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PricesUnreadable, match=says):
        prices.read(str(tmp_path / name), at("2000-01-01"))


# The screen

tickers = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30)
verdicts = st.lists(st.builds(
    lambda factor, mean, t: {"factor": factor, "months": 233, "mean": mean, "t": t, "passes": True, "why": "passes the gate"},
    st.sampled_from([f"momentum_over_volatility ({i}-252, 252)" for i in range(10, 28)]), st.floats(0.001, 1), st.floats(1, 99)),
    min_size=1, max_size=18, unique_by=lambda v: str(v["factor"]))


@given(st.dictionaries(tickers, st.decimals("0.0001", "1", places=4), min_size=1, max_size=300), verdicts, st.booleans(),
       st.sampled_from(["packaged", "/data/prices.csv"]))
def test_the_approval_fits_on_one_screen(weights: dict[str, Decimal], verdicts: list[validation.Verdict], thin: bool, source: str) -> None:
    text = screen.approval({
        "verdicts": verdicts, "weights": weights, "thin": thin, "round": 2, "decision": {"action": "publish as a paper signal, without capital"},
        "data": {"last": date(2010, 6, 30), "companies": 4_321, "sessions": 12_345, "missing": 1_234_567, "source": source},
        "risk": {"volatility": Decimal("0.1929"), "worst_fall": Decimal("-0.166"), "worst_day": Decimal("-0.039")}})
    lines = text.split("\n")
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert f"{len(verdicts)} of {len(verdicts)} trials passed" in text


def test_made_days_are_weekdays() -> None:
    assert len(weekdays(3_300)) == 3_300 and all(d.weekday() < 5 for d in weekdays(3_300))
