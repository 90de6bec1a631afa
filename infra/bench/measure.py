"""Medians of interleaved runs, so that whatever else the machine does meets both sides."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass
class Row:
    """One line of the results."""

    work: str
    store: str
    unit: str
    ours: float
    peer: float | None
    target: float | None
    """The ratio (or, without a peer, the value) to reach."""
    higher_is_better: bool = True
    n: int = 1

    @property
    def ratio(self) -> float | None:
        if not self.peer:
            return None
        return self.ours / self.peer if self.higher_is_better else self.peer / self.ours

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        value = self.ratio if self.peer else self.ours
        assert value is not None
        return value >= self.target if self.peer or self.higher_is_better else value <= self.target


def seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def medians(repeats: int, *works: Work) -> list[float]:
    """Seconds of each, in turn, that many times."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for t, work in zip(taken, works, strict=True):
            t.append(seconds(work))
    return [statistics.median(t) for t in taken]
