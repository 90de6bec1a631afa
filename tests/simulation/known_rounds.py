"""Random programs of steps, branches that meet, choices, loops and supervisors, written as graphs: what each of their decisions takes is
settled while the program is gone through as a person reads it, and with that how often every node fires."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ledgergraph.projections.schedule import Sent
from ledgergraph.schemas.graph import END, START, GraphSpec, NodeSpec, RouteSpec
from tests.simulation.random_graphs import Router, Task, read

ON = "on"
"""A decision that leaves its loop or team: for whatever comes next."""
FIRINGS_MAX = 150


class Step(NamedTuple):
    node: str


class Row(NamedTuple):
    parts: list[Part]


class Meet(NamedTuple):
    """Branches that run beside each other and meet in a node; from a node of their own, or from whatever comes before."""

    opener: str | None
    branches: list[Part]
    join: str


class Choice(NamedTuple):
    """A node that takes some of the branches, or goes past them."""

    opener: str
    branches: list[Part]
    join: str


class Loop(NamedTuple):
    """A body, run again until its latch goes on; by way of a node of its own or straight back."""

    body: Part
    latch: str
    by_way_of: str | None


class Team(NamedTuple):
    """A supervisor that sends to some of its workers until it goes on."""

    boss: str
    workers: list[Part]


Part = Step | Row | Meet | Choice | Loop | Team


@dataclass
class Writer:
    """Writes a random program, then the graph of it, then goes through it."""

    rng: random.Random
    names: list[str] = field(default_factory=list[str])
    edges: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    options: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Decider -> where it may go."""
    onward: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Decider -> where its `ON` leads."""
    plans: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])
    """Decider -> what it takes, by visit."""
    fired: Counter[str] = field(default_factory=Counter[str])

    def name(self) -> str:
        self.names.append(f"n{len(self.names)}")
        return self.names[-1]

    # A program

    def part(self, depth: int) -> Part:
        kind = self.rng.choice(["step", "row", "meet", "choice", "loop", "team"]) if depth else "step"
        if kind == "row":
            return Row([self.part(depth - 1) for _ in range(self.rng.randint(2, 3))])
        if kind == "meet":
            opener = self.name() if self.rng.random() < 0.6 else None
            return Meet(opener, [self.part(depth - 1) for _ in range(self.rng.randint(2, 3))], self.name())
        if kind == "choice":
            return Choice(self.name(), [self.part(depth - 1) for _ in range(self.rng.randint(1, 3))], self.name())
        if kind == "loop":
            body = self.part(depth - 1)
            return Loop(body, self.name(), self.name() if self.rng.random() < 0.3 else None)
        if kind == "team":
            return Team(self.name(), [self.part(depth - 1) for _ in range(self.rng.randint(1, 3))])
        return Step(self.name())

    # Its graph

    def starts(self, p: Part) -> list[str]:
        """The nodes that a part begins with."""
        match p:
            case Step(n) | Team(n) | Choice(n) | Meet(str() as n):
                return [n]
            case Row(parts):
                return self.starts(parts[0])
            case Meet(_, branches):
                return [n for b in branches for n in self.starts(b)]
            case Loop(body):
                return self.starts(body)

    def link(self, p: Part, to: Sequence[str]) -> None:
        """Writes a part's edges, and those from its last node to what comes next."""
        match p:
            case Step(n):
                self.lead(n, to)
            case Row(parts):
                for a, b in zip(parts, [*parts[1:], None], strict=True):
                    self.link(a, to if b is None else self.starts(b))
            case Meet(opener, branches, join):
                if opener is not None:
                    self.lead(opener, [n for b in branches for n in self.starts(b)])
                self.branch(branches, join, to)
            case Choice(opener, branches, join):
                self.options[opener] = [*(n for b in branches for n in self.starts(b)), join]
                self.branch(branches, join, to)
            case Loop(body, latch, by_way_of):
                self.link(body, [latch])
                again = self.starts(body)
                if by_way_of is not None:
                    self.lead(by_way_of, again)
                self.decide(latch, again if by_way_of is None else [by_way_of], to)
            case Team(boss, workers):
                for w in workers:
                    self.link(w, [boss])
                self.decide(boss, [n for w in workers for n in self.starts(w)], to)

    def branch(self, branches: Sequence[Part], join: str, to: Sequence[str]) -> None:
        for b in branches:
            self.link(b, [join])
        self.lead(join, to)

    def lead(self, n: str, to: Sequence[str]) -> None:
        self.edges += [(n, v) for v in to]

    def decide(self, n: str, again: Sequence[str], to: Sequence[str]) -> None:
        self.onward[n] = list(to)
        self.options[n] = [*again, *to]

    # Its run

    def go(self, p: Part) -> None:
        """Goes through a part once, deciding by chance what its decisions take."""
        match p:
            case Step(n):
                self.fired[n] += 1
            case Row(parts):
                self.through(parts)
            case Meet(opener, branches, join):
                self.fired.update([join] if opener is None else [opener, join])
                self.through(branches)
            case Choice(opener, branches, join):
                self.fired.update([opener, join])
                taken = self.some(branches, 0)
                self.through(taken)
                self.takes(opener, [n for b in taken for n in self.starts(b)] or [join])
            case Loop(body, latch, by_way_of):
                self.rounds(body, latch, by_way_of)
            case Team(boss, workers):
                for _ in range(self.rng.randint(0, 3)):
                    taken = self.some(workers, 1)
                    self.fired[boss] += 1
                    self.takes(boss, [n for w in taken for n in self.starts(w)])
                    self.through(taken)
                self.fired[boss] += 1
                self.takes(boss, [ON])

    def rounds(self, body: Part, latch: str, by_way_of: str | None) -> None:
        for last in [False] * self.rng.randint(0, 2) + [True]:
            self.go(body)
            self.fired[latch] += 1
            again = self.starts(body) if by_way_of is None else [by_way_of]
            self.takes(latch, [ON] if last else again)
            if by_way_of is not None and not last:
                self.fired[by_way_of] += 1

    def through(self, parts: Sequence[Part]) -> None:
        for p in parts:
            self.go(p)

    def takes(self, n: str, targets: list[str]) -> None:
        self.plans.setdefault(n, []).append(self.onward[n] if targets == [ON] else targets)

    def some(self, parts: Sequence[Part], least: int) -> list[Part]:
        return self.rng.sample(list(parts), self.rng.randint(least, len(parts)))


def known_rounds(rng: random.Random) -> tuple[GraphSpec, Router, Counter[str]]:
    """A graph, its routes, and how often each node is to fire."""
    while True:
        w = Writer(rng)
        program = Row([w.part(rng.randint(2, 4)), Step(w.name())])
        w.link(program, [END])
        w.go(program)
        if w.fired.total() <= FIRINGS_MAX:
            break
    names = rng.sample(w.names, len(w.names)) if rng.random() < 0.5 else w.names
    spec = GraphSpec("program", "1", tuple(map(NodeSpec, names)), (*((START, n) for n in w.starts(program)), *dict.fromkeys(w.edges)),
                     tuple(RouteSpec(n, tuple(dict.fromkeys(vs))) for n, vs in w.options.items()))

    def route(task: Task, seen: Sequence[Task]) -> list[Sent]:
        plan = w.plans.get(task[0])
        return [] if plan is None else [Sent(v) for v in plan[len({x[1] for x in seen if x[0] == task[0]})]]
    return read(spec), route, +w.fired
