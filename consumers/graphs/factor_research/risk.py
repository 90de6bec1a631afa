"""The portfolio's risk, and what each company adds to it: contributions that sum to the total."""
from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TypedDict

import polars as pl

from ledgergraph.consumers.graphs.factor_research.factors import YEAR

STEP = Decimal("0.000001")


class Risk(TypedDict):
    """Yearly, out of the daily returns of the last 252 sessions, by today's weights."""

    volatility: Decimal
    contributions: dict[str, Decimal]
    """w (S w) / sqrt(w S w), S the covariance of the returns: Euler's allocation. They sum to `volatility` exactly."""
    worst_day: Decimal
    worst_fall: Decimal
    """From a peak, within the window."""


def returns(prices: pl.DataFrame, tickers: list[str], sessions: int = YEAR) -> dict[str, list[float]]:
    """The daily returns of the last sessions, of companies that have a price on each of them: see `complete`."""
    frame = prices.tail(sessions + 1).select(pl.col(t).pct_change() for t in tickers).slice(1)
    return {t: [float(x) for x in frame[t]] for t in tickers}


def complete(prices: pl.DataFrame, sessions: int = YEAR) -> list[str]:
    """The companies with a price on each of the last sessions. Of others the risk is not known: days without a price would
    count as days without a move, and who was listed last month would look calm and weigh most."""
    window = prices.tail(sessions + 1)
    return [t for t in prices.columns if t != "date" and window[t].null_count() == 0]


def volatility(prices: pl.DataFrame, tickers: list[str]) -> dict[str, float]:
    """Yearly standard deviation of the daily returns, with n - 1."""
    return {t: math.sqrt(_covariance(r, r) * YEAR) for t, r in returns(prices, tickers).items()}


def measure(prices: pl.DataFrame, weights: Mapping[str, Decimal]) -> Risk:
    daily = returns(prices, list(weights))
    w = {t: float(x) for t, x in weights.items()}
    own = [math.fsum(w[t] * daily[t][i] for t in w) for i in range(len(next(iter(daily.values()))))]
    total = math.sqrt(_covariance(own, own) * YEAR)
    exact = {t: w[t] * _covariance(daily[t], own) * YEAR / total for t in w} if total else dict.fromkeys(w, 0.0)
    volatility = Decimal(repr(total)).quantize(STEP)
    return {"volatility": volatility, "contributions": _summing(exact, volatility), "worst_day": _decimal(min(own)),
            "worst_fall": _decimal(_worst_fall(own))}


def _decimal(x: float) -> Decimal:
    return Decimal(repr(x)).quantize(STEP)


def _covariance(a: list[float], b: list[float]) -> float:
    ma, mb = math.fsum(a) / len(a), math.fsum(b) / len(b)
    return math.fsum((x - ma) * (y - mb) for x, y in zip(a, b, strict=True)) / (len(a) - 1)


def _summing(exact: Mapping[str, float], total: Decimal) -> dict[str, Decimal]:
    """Rounded; what rounding leaves goes to the largest."""
    out = {t: _decimal(x) for t, x in exact.items()}
    largest = max(out, key=lambda t: (abs(out[t]), t))
    out[largest] += total - sum(out.values())
    return out


def _worst_fall(daily: list[float]) -> float:
    value = peak = 1.0
    worst = 0.0
    for r in daily:
        value *= 1 + r
        peak = max(peak, value)
        worst = min(worst, value / peak - 1)
    return worst
