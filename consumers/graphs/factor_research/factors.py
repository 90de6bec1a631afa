"""The six factors, as panels: a value for each company at each month end, and at the last session.

Definitions as commonly used: momentum is the return from 12 months ago to one month ago (Jegadeesh and Titman 1993), low
volatility the negative of the yearly standard deviation of daily returns (Ang et al. 2006), drawdown the worst fall from a peak
within a year, short reversal the negative of the last month's return (Jegadeesh 1990), long reversal the negative of the return
from five years to one year ago (De Bondt and Thaler 1985). More is better for each. Windows are in sessions.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypedDict

import polars as pl

YEAR = 252
"""Sessions."""


class Windows(TypedDict):
    """How far each factor looks back, in sessions."""

    momentum: list[int]
    """[skipped, back to]."""
    low_volatility: int
    drawdown: int
    short_reversal: int
    long_reversal: list[int]
    """[from, back to]."""


ROUNDS: tuple[Windows, ...] = (
    {"momentum": [21, 252], "low_volatility": 252, "drawdown": 252, "short_reversal": 21, "long_reversal": [252, 1260]},
    {"momentum": [21, 126], "low_volatility": 126, "drawdown": 126, "short_reversal": 10, "long_reversal": [252, 756]},
    {"momentum": [21, 189], "low_volatility": 504, "drawdown": 504, "short_reversal": 5, "long_reversal": [252, 1008]},
)
"""First the windows that the literature uses; then, where too few factors pass, half of them, and others: each one more trial."""


class Panel(TypedDict):
    """A factor's values: `values[i][j]` is of `tickers[j]` on `days[i]` (ISO dates); None where it has no price on that day, or
    misses one that is needed."""

    days: list[str]
    tickers: list[str]
    values: list[list[float | None]]


def panel_days(prices: pl.DataFrame) -> pl.DataFrame:
    """Row numbers (`row`) and days of the last session of each month, and of the last session of all."""
    numbered = prices.select("date").with_row_index("row")
    months = numbered.group_by(pl.col("date").dt.truncate("1mo"), maintain_order=True)
    ends = months.agg(pl.col("row").last(), pl.col("date").last().alias("day"))
    return ends.select("row", "day").sort("row")


def momentum(prices: pl.DataFrame, w: Windows) -> Panel:
    skip, back = w["momentum"]
    return _panel(prices, lambda c: c.shift(skip) / c.shift(back) - 1)


def low_volatility(prices: pl.DataFrame, w: Windows) -> Panel:
    n = w["low_volatility"]
    return _panel(prices, lambda c: -(c / c.shift(1) - 1).rolling_std(n, ddof=1) * math.sqrt(YEAR))


def short_reversal(prices: pl.DataFrame, w: Windows) -> Panel:
    return _panel(prices, lambda c: 1 - c / c.shift(w["short_reversal"]))


def long_reversal(prices: pl.DataFrame, w: Windows) -> Panel:
    near, far = w["long_reversal"]
    return _panel(prices, lambda c: 1 - c.shift(near) / c.shift(far))


def drawdown(prices: pl.DataFrame, w: Windows) -> Panel:
    """The worst fall from an earlier peak within the window, at each of the panel's days."""
    n, days = w["drawdown"], panel_days(prices)
    tickers = _tickers(prices)
    values: list[list[float | None]] = []
    for row in days["row"]:
        if row + 1 < n:
            values.append([None] * len(tickers))
            continue
        window = prices.slice(row + 1 - n, n)
        falls = {t: (pl.col(t) / pl.col(t).cum_max() - 1).min() for t in tickers}
        worst = window.select(falls[t] if window[t].null_count() == 0 else pl.lit(None).alias(t) for t in tickers)
        values.append(list(worst.row(0)))
    return {"days": [d.isoformat() for d in days["day"]], "tickers": tickers, "values": values}


def momentum_over_volatility(momentum: Panel, low_volatility: Panel) -> Panel:
    """Momentum for each unit of risk taken (Barroso and Santa-Clara 2015), out of the two panels."""
    values = [[m / -v if m is not None and v is not None and v < 0 else None for m, v in zip(ms, vs, strict=True)]
              for ms, vs in zip(momentum["values"], low_volatility["values"], strict=True)]
    return {"days": momentum["days"], "tickers": momentum["tickers"], "values": values}


def _tickers(prices: pl.DataFrame) -> list[str]:
    return [c for c in prices.columns if c != "date"]


def _panel(prices: pl.DataFrame, of: Callable[[pl.Expr], pl.Expr]) -> Panel:
    tickers, days = _tickers(prices), panel_days(prices)
    values = prices.select(pl.when(pl.col(t).is_not_null()).then(of(pl.col(t))).alias(t) for t in tickers)[days["row"]]
    return {"days": [d.isoformat() for d in days["day"]], "tickers": tickers, "values": [_finite(r) for r in values.rows()]}


def _finite(row: tuple[Any, ...]) -> list[float | None]:
    return [v if v is not None and math.isfinite(v) else None for v in row]
