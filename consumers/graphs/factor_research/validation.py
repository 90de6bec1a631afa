"""Whether a factor has predicted: the monthly rank correlation of its values with the returns of the next 21 sessions."""
from __future__ import annotations

import math
from typing import TypedDict

import polars as pl

from ledgergraph.consumers.graphs.factor_research.factors import Panel

AHEAD = 21
"""Sessions of the return that is predicted."""
FROM = "1991-01-01"
MONTHS_MIN = 120
T_MIN = 1.0
"""The gate: mean above 0 and t of at least this. It is no test of significance: that begins near 2, for a single trial."""
SIGNIFICANT_T = 1.96
COMPANIES_MIN = 5


class Verdict(TypedDict):
    """What the history of one factor says."""

    factor: str
    months: int
    mean: float | None
    """Of the monthly rank correlations (information coefficients)."""
    t: float | None
    """mean / (sd / sqrt n), sd with n - 1."""
    passes: bool
    why: str


def forward_returns(prices: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Day -> ticker -> return over the next 21 sessions, where they are in the table."""
    tickers = [c for c in prices.columns if c != "date"]
    ahead = prices.select("date", *((pl.col(t).shift(-AHEAD) / pl.col(t) - 1).alias(t) for t in tickers))
    return {row[0].isoformat(): {t: v for t, v in zip(tickers, row[1:], strict=True) if v is not None and math.isfinite(v)}
            for row in ahead.rows()}


def information(panel: Panel, ahead: dict[str, dict[str, float]]) -> list[float]:
    """The rank correlation (Spearman's, ties averaged) of each month end from 1991 that has values and what came after."""
    rows = [(i, v, ahead[day][t]) for i, (day, values) in enumerate(zip(panel["days"], panel["values"], strict=True))
            if day >= FROM and day in ahead
            for t, v in zip(panel["tickers"], values, strict=True) if v is not None and t in ahead[day]]
    if not rows:
        return []
    frame = pl.DataFrame(rows, schema={"month": pl.Int64, "value": pl.Float64, "ahead": pl.Float64}, orient="row")
    months = frame.group_by("month", maintain_order=True).agg(
        pl.corr(pl.col("value").rank(), pl.col("ahead").rank()).alias("ic"), pl.len().alias("n"))
    return [ic for ic, n in months.select("ic", "n").rows() if n >= COMPANIES_MIN and ic is not None and math.isfinite(ic)]


def judge(factor: str, panel: Panel, ahead: dict[str, dict[str, float]]) -> Verdict:
    """The verdict by the gate's rule."""
    ics = information(panel, ahead)
    n = len(ics)
    if n < MONTHS_MIN:
        why = f"{n} months, {MONTHS_MIN} are needed"
        return {"factor": factor, "months": n, "mean": None, "t": None, "passes": False, "why": why}
    mean = math.fsum(ics) / n
    sd = math.sqrt(math.fsum((x - mean) ** 2 for x in ics) / (n - 1))
    t = mean / (sd / math.sqrt(n)) if sd else 0.0
    passes = mean > 0 and t >= T_MIN
    why = "passes the gate" if passes else "its mean is not above 0" if mean <= 0 else f"its t is below {T_MIN:g}"
    return {"factor": factor, "months": n, "mean": mean, "t": t, "passes": passes, "why": why}


def is_significant(v: Verdict) -> bool:
    """At the usual 5 % for one trial; with many trials even that is too easy."""
    return v["t"] is not None and abs(v["t"]) >= SIGNIFICANT_T
