"""A portfolio of the best-scored companies: capped inverse volatility, in Decimals that sum to exactly 1."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, ROUND_UP, Decimal

from ledgergraph.consumers.graphs.factor_research.factors import Panel
from ledgergraph.schemas.errors import InvalidInput, RunFailed

STEP = Decimal("0.0001")
"""Of a weight."""
FINEST = Decimal("1e-12")
"""What a cap may be told apart by; so no sum of weights is rounded."""
HELD_MIN = 2


class CannotConstruct(RunFailed, ValueError):
    """No portfolio comes out of what there is; the run fails, and goes on when its state was mended."""


class CapCannotBeMet(CannotConstruct):
    """No weights within the cap sum to 1."""

    def __init__(self, companies: int, cap: Decimal) -> None:
        self.companies, self.cap = companies, cap
        enough = (1 / Decimal(max(companies, 1))).quantize(STEP, ROUND_UP)
        super().__init__(f"{companies} companies at no more than {cap} each reach {companies * cap}, not 1. "
                         f"Raise the cap to at least {enough}, or hold more companies.")


def scores(panels: Sequence[Panel]) -> dict[str, float]:
    """Each company's mean rank over the factors at their last day, 0 (worst) to 1 (best); companies that all factors know."""
    ranks = [_ranks({t: v for t, v in zip(p["tickers"], p["values"][-1], strict=True) if v is not None}) for p in panels]
    known = set(ranks[0]).intersection(*ranks[1:]) if ranks else set[str]()
    return {t: math.fsum(r[t] for r in ranks) / len(ranks) for t in sorted(known)}


def _ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Equal values share the mean of their ranks."""
    ordered = sorted(values.values())
    below = {v: ordered.index(v) for v in ordered}
    same = {v: ordered.count(v) for v in ordered}
    last = max(len(ordered) - 1, 1)
    return {t: (below[v] + (same[v] - 1) / 2) / last for t, v in values.items()}


def best(score: Mapping[str, float]) -> list[str]:
    """The upper half, at least two; of equal scores the first by name. Raises CannotConstruct where there are no two."""
    if len(score) < HELD_MIN:
        raise CannotConstruct(f"{len(score)} companies have a value of every factor that passed and prices on all days of the "
                              f"last year, at least {HELD_MIN} are needed. Give prices of more companies.")
    return sorted(score, key=lambda t: (-score[t], t))[:max(HELD_MIN, len(score) // 2)]


def weights(volatility: Mapping[str, float], cap: Decimal) -> dict[str, Decimal]:
    """Inverse-volatility weights, none above the cap, that sum to exactly 1. What the cap cuts off goes to the others in
    proportion. Raises CapCannotBeMet; CannotConstruct for a volatility, InvalidInput for a cap that is no number above 0."""
    odd = [t for t, v in volatility.items() if not v > 0 or not math.isfinite(v)]
    if odd:
        raise CannotConstruct(f"the volatility of {odd[0]} is {volatility[odd[0]]}: weights need one above 0. "
                              "Leave that company out.")
    check_cap(cap)
    given, cap = cap, min(cap, Decimal(1)).quantize(FINEST, ROUND_DOWN)
    if len(volatility) * cap < 1:
        raise CapCannotBeMet(len(volatility), given)
    calmest = min(volatility.values())
    return _rounded(_capped({t: calmest / v for t, v in volatility.items()}, float(cap)), cap)


def check_cap(cap: Decimal) -> None:
    """Raises InvalidInput."""
    if not cap.is_finite() or cap <= 0:
        raise InvalidInput(f"the cap is {cap}: give a share above 0, for example 0.15")


def _capped(raw: dict[str, float], cap: float) -> dict[str, float]:
    out: dict[str, float] = {}
    free = dict(raw)
    while free:
        left, total = 1 - math.fsum(out.values()), math.fsum(free.values()) or 1.0
        over = [t for t, v in free.items() if v / total * left > cap]
        if not over:
            return {**out, **{t: v / total * left for t, v in free.items()}}
        for t in over:
            out[t] = cap
            del free[t]
    return out


def _rounded(exact: Mapping[str, float], cap: Decimal) -> dict[str, Decimal]:
    """Rounded down to steps; the steps that are missing to 1 go to the largest remainders within the cap. Only where no weight
    has room for a whole step (a cap between two steps) does one get a part of it."""
    out = {t: min(Decimal(repr(w)).quantize(STEP, ROUND_DOWN), cap) for t, w in exact.items()}
    order = sorted(exact, key=lambda t: (out[t] - Decimal(repr(exact[t])), t))
    missing = 1 - sum(out.values())
    while missing > 0:
        room = [t for t in order if out[t] + STEP <= cap] or [t for t in order if out[t] < cap]
        if not room:
            raise CapCannotBeMet(len(out), cap)
        for t in room:
            step = min(STEP, missing, cap - out[t])
            out[t] += step
            missing -= step
    return {t: out[t] for t in sorted(out)}
