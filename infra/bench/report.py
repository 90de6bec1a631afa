"""The results as a page."""
from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from measure import Row

LIBRARIES = ("ledgergraph", "langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "eventsourcing",
             "psycopg", "orjson")
INTRODUCTION = """Medians of n runs; both sides in one run, in turn, on the same machine, whatever else it did meanwhile. The
ratio is of the medians: how many times better ours is, and in brackets the least and the most of any pair measured together.
LangGraph runs on its own savers with durability `sync` where nothing else is said. A peer's cell is empty where there is none."""
HEAD = ["| work | store | ours | peer | unit | ratio | to reach | reached | n |", "|---|---|---|---|---|---|---|---|---|"]


def page(rows: Sequence[Row], servers: Sequence[str], flush_ms: float, load: float) -> str:
    missed = sum(r.reached is False for r in rows)
    aims = sum(r.reached is not None for r in rows)
    measured = (f"{datetime.now(UTC):%Y-%m-%d}; {machine()}, a flush of 4 kB takes {flush_ms:.2f} ms, "
                f"load before the run {load:.1f}; {', '.join(servers)}; {libraries()}.")
    return "\n".join(["# Results of `make bench`", "", measured, "", INTRODUCTION, "", f"Reached: {aims - missed} of {aims}.", "",
                      *HEAD, *map(line, rows)]) + "\n"


def line(r: Row) -> str:
    target = "" if r.target is None else f"{r.target:,.0f}" if r.alone else f"{r.target:.3g}x"
    said = {None: "", True: "yes", False: "**no**"}[r.reached]
    return (f"| {r.work} | {r.store} | {shown(r.median)} | {shown(r.peer_median)} | {r.unit} | {ratio(r)} | {target} | {said} | "
            f"{len(r.ours)} |")


def ratio(r: Row) -> str:
    if r.ratio is None:
        return ""
    between = "" if r.ratios is None else " ({:.2f} to {:.2f})".format(*r.ratios)
    return f"{r.ratio:.2f}x{between}"


def shown(x: float | None) -> str:
    return "" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:,.3g}"


def machine() -> str:
    cpu = ""
    if (info := Path("/proc/cpuinfo")).exists():
        cpu = next((line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line), "")
    return f"{os.cpu_count()} cores{f' ({cpu})' if cpu else ''}, Python {platform.python_version()}"


def libraries() -> str:
    known: list[str] = []
    for name in LIBRARIES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(known)
