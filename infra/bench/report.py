"""The results as a page."""
from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from measure import Row

LIBRARIES = ("ledgergraph", "langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "eventsourcing", "psycopg", "orjson")


def page(rows: Sequence[Row]) -> str:
    lines = ["# Results of `make bench`", "", f"{datetime.now(UTC):%Y-%m-%d}; {machine()}.", "",
             "Medians; both sides in one run, in turn, on the same machine. A ratio is how many times better ours is.", "",
             "| work | store | ours | peer | unit | ratio | to reach | reached | n |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        said = {None: "", True: "yes", False: "**no**"}[r.reached]
        target = "" if r.target is None else f"{r.target:,.4g}"
        lines.append(f"| {r.work} | {r.store} | {shown(r.ours)} | {'' if r.peer is None else shown(r.peer)} | {r.unit} | "
                     f"{'' if r.ratio is None else f'{r.ratio:.2f}x'} | {target} | {said} | {r.n} |")
    return "\n".join(lines) + "\n"


def shown(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:,.3g}"


def machine() -> str:
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    known = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{os.cpu_count()} cores{f' ({cpu})' if cpu else ''}, Python {platform.python_version()}, {known}"
