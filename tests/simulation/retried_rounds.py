"""Random stages of steps, each with a check behind it that sends any steps of its own stage, or of an earlier one, round again: what is
sent and all that follows from it then runs once more."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledgergraph.projections.schedule import Sent
from ledgergraph.schemas.graph import END, START, GraphSpec, NodeSpec, RouteSpec
from tests.simulation.random_graphs import Router, Task, read


class Stage(NamedTuple):
    """`follows`: step -> the steps after it; those that nothing comes before are its first."""

    follows: dict[str, list[str]]
    first: list[str]
    check: str
    back: list[str]
    """Where its check may go back to, in this stage and earlier ones."""


def stage(rng: random.Random, k: int, earlier: Sequence[Stage]) -> Stage:
    steps = [f"s{k}_{i}" for i in range(rng.randint(1, 5))]
    follows: dict[str, list[str]] = {n: [] for n in steps}
    first: list[str] = []
    for i, n in enumerate(steps):
        before = rng.sample(steps[:i], rng.randint(0, min(2, i)))
        for p in before:
            follows[p].append(n)
        if not before:
            first.append(n)
    known = [*(n for s in earlier if rng.random() < 0.5 for n in s.follows), *steps]
    return Stage(follows, first, f"check{k}", rng.sample(known, rng.randint(1, min(3, len(known)))))


def follows_from(s: Stage, starts: Iterable[str]) -> set[str]:
    out: set[str] = set()
    todo = list(starts)
    while todo:
        n = todo.pop()
        if n not in out:
            out.add(n)
            todo += s.follows[n]
    return out


class Walk:
    """Goes through the stages as their author would: each check decides by chance, each a few times at most."""

    def __init__(self, rng: random.Random, stages: Sequence[Stage]) -> None:
        self.rng, self.stages = rng, stages
        self.fired: Counter[str] = Counter()
        self.plans: dict[str, list[list[str]]] = {s.check: [] for s in stages}
        self.left = {s.check: rng.randint(0, 3) for s in stages}

    def go(self, sent: dict[int, set[str]]) -> None:
        """`sent`: stage -> the steps of it that have tokens."""
        while sent:
            k = min(sent)
            s = self.stages[k]
            self.fired.update([*follows_from(s, sent.pop(k)), s.check])
            for n in self.decide(s, last=k + 1 == len(self.stages)):
                at = next((i for i, other in enumerate(self.stages) if n in other.follows), None)
                if at is not None:
                    sent.setdefault(at, set()).add(n)

    def decide(self, s: Stage, last: bool) -> list[str]:
        onward = [END] if last else self.stages[self.stages.index(s) + 1].first
        again = self.left[s.check] > 0
        self.left[s.check] -= 1
        self.plans[s.check].append(self.rng.sample(s.back, self.rng.randint(1, len(s.back))) if again else onward)
        return self.plans[s.check][-1]


def retried_rounds(rng: random.Random) -> tuple[GraphSpec, Router, Counter[str]]:
    """A graph, its routes, and how often each node is to fire."""
    stages: list[Stage] = []
    for k in range(rng.randint(1, 3)):
        stages.append(stage(rng, k, stages))
    walk = Walk(rng, stages)
    walk.go({0: set(stages[0].first)})
    names = [n for s in stages for n in (*s.follows, s.check)]
    rng.shuffle(names)
    edges = [(START, n) for n in stages[0].first]
    edges += [(u, v) for s in stages for u, vs in s.follows.items() for v in vs or [s.check]]
    onward = [*(s.first for s in stages[1:]), [END]]
    routes = [RouteSpec(s.check, tuple(dict.fromkeys([*s.back, *on]))) for s, on in zip(stages, onward, strict=True)]
    spec = read(GraphSpec("retried", "1", tuple(map(NodeSpec, names)), tuple(edges), tuple(routes)))

    def route(task: Task, seen: Sequence[Task]) -> list[Sent]:
        plan = walk.plans.get(task[0])
        return [] if plan is None else [Sent(v) for v in plan[len({x[1] for x in seen if x[0] == task[0]})] if v != END]
    return spec, route, walk.fired
