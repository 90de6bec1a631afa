"""A rehearsal: the graph runs with stub nodes, so that its shape is seen at work before any node is.

Nothing of the nodes is called. The real schedule decides who fires; routes take, of their declared targets, the one that was taken
least so far, until each was taken or a run brings nothing new.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ledgergraph.consumers.binding import Binding
from ledgergraph.projections.schedule import Schedule, Sent
from ledgergraph.schemas.clock import clock_for
from ledgergraph.schemas.graph import END, START, GraphSpec

RUNS_MAX = 200
STALE_MAX = 20
"""Runs in a row that bring nothing new, before it is given up."""
FIRINGS_MAX = 20
"""Of a run, for each node of the graph: a cycle that no route leaves stops there."""


@dataclass
class Rehearsal:
    """What came of it."""

    runs: int = 0
    firings: Counter[str] = field(default_factory=Counter[str])
    never: list[str] = field(default_factory=list[str])
    """Nodes that did not fire in any run."""
    untaken: list[str] = field(default_factory=list[str])
    """Route targets that no run came to."""
    starved: list[str] = field(default_factory=list[str])
    """Barriers that got some of their sources in a run that then had nothing left to do."""
    endless: bool = False
    """A run did not end by itself."""

    @property
    def text(self) -> str:
        parts = [f"{self.runs} runs, {self.firings.total()} firings"]
        parts += [f"never fired: {', '.join(self.never)}"] if self.never else ["every node fired"]
        if self.untaken:
            parts.append(f"targets never taken: {', '.join(self.untaken)}")
        if self.starved:
            parts.append(f"starved: {', '.join(self.starved)}")
        if self.endless:
            parts.append("a run went round until it was stopped: only a cap ends that cycle, or what its nodes return")
        return "; ".join(parts)


def rehearse(binding: Binding) -> Rehearsal:
    """Runs the graph's schedule until every declared target was taken, or a run brings nothing new."""
    return rehearse_spec(binding.spec)


def rehearse_spec(spec: GraphSpec) -> Rehearsal:
    out, taken = Rehearsal(), {(u, v): 0 for u, vs in spec.route.items() for v in vs}
    clock, stale, known = clock_for(spec), 0, -1
    while out.runs < RUNS_MAX and stale < STALE_MAX:
        _run(spec, Schedule(spec, clock), taken, out)
        out.runs += 1
        if all(taken.values()):
            break
        now = sum(n > 0 for n in taken.values())
        stale, known = (stale + 1 if now == known else 0), now
    out.never = [n for n in spec.names if not out.firings[n]]
    out.untaken = [f"{u} -> {v}" for (u, v), n in taken.items() if not n]
    return out


def _run(spec: GraphSpec, schedule: Schedule, taken: dict[tuple[str, str], int], out: Rehearsal) -> None:
    limit = FIRINGS_MAX * (len(spec.nodes) + 1)
    schedule.begin(_choice(spec, START, taken))
    while due := schedule.due():
        limit -= len(due)
        if limit < 0:
            out.endless = True
            return
        for d in due:
            schedule.fire(d.key, d.rank, d.indexes)
        for d in due:
            out.firings[d.key.node] += 1
            for i in d.indexes:
                schedule.complete(d.key, i, _choice(spec, d.key.node, taken))
    for barrier, missing in schedule.starved():
        text = f"{barrier.target} (waits for {', '.join(missing)})"
        if text not in out.starved:
            out.starved.append(text)


def _choice(spec: GraphSpec, node: str, taken: dict[tuple[str, str], int]) -> list[Sent]:
    """The target that was taken least; of equals a node before the end."""
    targets = spec.route.get(node, ())
    if not targets:
        return []
    chosen = min(targets, key=lambda v: (taken[node, v], v == END))
    taken[node, chosen] += 1
    return [Sent(chosen)] if chosen != END else []
