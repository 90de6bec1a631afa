"""Made price tables with a planted factor: what a search over them must find is known."""
from __future__ import annotations

import random
from datetime import date, timedelta

import polars as pl


def weekdays(count: int, first: date = date(1990, 1, 1)) -> list[date]:
    return [d for i in range(count * 7 // 5 + 7) if (d := first + timedelta(days=i)).weekday() < 5][:count]


def made_prices(seed: int, *, drift: float = 0.0, revert: float = 0.0, companies: int = 8, sessions: int = 3_300) -> pl.DataFrame:
    """Noise of 1 % a day. `drift`: how much more a company gains a day than the one before it, which momentum sees.
    `revert`: the share of the last 21 sessions' returns that is taken back each day, which short reversal sees."""
    chance = random.Random(seed)
    columns = {f"C{j}": _walk(chance, drift * (j - companies / 2), revert, sessions) for j in range(companies)}
    return pl.DataFrame({"date": weekdays(sessions), **columns})


def _walk(chance: random.Random, drift: float, revert: float, sessions: int) -> list[float]:
    price, returns, prices = 100.0, list[float](), list[float]()
    for _ in range(sessions):
        returns.append(drift - revert * sum(returns[-21:]) + 0.01 * chance.gauss(0, 1))
        price *= 1 + returns[-1]
        prices.append(price)
    return prices
