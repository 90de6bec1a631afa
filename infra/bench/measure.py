"""Samples of interleaved runs, so that whatever else the machine does meets both sides, and what they come to."""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Work = Callable[[], Any]


@dataclass
class Row:
    """One line of the results: a sample of ours and one of the peer's, taken in turn, in the same unit."""

    work: str
    store: str
    unit: str
    ours: Sequence[float]
    peer: Sequence[float] = field(default=())
    """Empty: there is no peer, or it is not installed."""
    target: float | None = None
    """To reach: how many times better than the peer; where `alone`, a value of ours."""
    alone: bool = False
    higher_is_better: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.ours)

    @property
    def peer_median(self) -> float | None:
        return statistics.median(self.peer) if self.peer else None

    @property
    def ratio(self) -> float | None:
        """Of the medians: how many times better ours is."""
        return self._better(self.median, self.peer_median) if self.peer_median else None

    @property
    def ratios(self) -> tuple[float, float] | None:
        """The least and the most of what was measured together."""
        pairs = [self._better(a, b) for a, b in zip(self.ours, self.peer, strict=False)]
        return (min(pairs), max(pairs)) if len(pairs) > 1 else None

    @property
    def reached(self) -> bool | None:
        value = self.median if self.alone else self.ratio
        if self.target is None or value is None:
            return None
        return value >= self.target if self.higher_is_better or not self.alone else value <= self.target

    def _better(self, a: float, b: float) -> float:
        return a / b if self.higher_is_better else b / a


def seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turn(repeats: int, *works: Work | None) -> list[list[float]]:
    """Seconds of each, one after the other, that many times. Nothing for a side that is not there."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for t, work in zip(taken, works, strict=True):
            if work is not None:
                t.append(seconds(work))
    return taken


def per_second(amount: float, taken: Sequence[float]) -> list[float]:
    return [amount / s for s in taken]


def times(factor: float, taken: Sequence[float]) -> list[float]:
    return [factor * s for s in taken]


def flush_ms(folder: Path, writes: int = 200) -> float:
    """What the disk takes to keep 4 kB for good: the median, in milliseconds."""
    with open(folder / "flush", "wb", buffering=0) as f:
        f.write(bytes(4096 * writes))
        os.fsync(f.fileno())
        f.seek(0)

        def write() -> None:
            f.write(b"x" * 4096)
            os.fdatasync(f.fileno())
        return 1e3 * statistics.median(seconds(write) for _ in range(writes))
