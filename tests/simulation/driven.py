"""The product's schedule, driven through a random interleaving, with crashes: it is then made anew from what was recorded."""
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ledgergraph.projections.schedule import FiringKey, Schedule, Sent
from ledgergraph.schemas.graph import START, GraphSpec
from tests.simulation.random_graphs import Router, Task

Record = tuple[Any, ...]


class Driven:
    """`done`: task -> (place in the fold, the tasks that it saw in their order)."""

    def __init__(self, spec: GraphSpec, route: Router, rng: random.Random, limit: int, crashes: float = 0.05) -> None:
        self.spec, self.route, self.rng, self.limit, self.crashes = spec, route, rng, limit, crashes
        self.schedule = Schedule(spec)
        self.log: list[Record] = []
        self.sources: dict[FiringKey, tuple[FiringKey, ...]] = {}
        self.of: dict[FiringKey, list[Task]] = {}
        self.running: dict[Task, tuple[Any, tuple[Task, ...]]] = {}
        self.done: dict[Task, tuple[Any, tuple[Task, ...]]] = {}

    def go(self) -> dict[Task, tuple[Any, tuple[Task, ...]]] | None:
        self.record("begin", self.route((START, self.schedule.clock.start(START), 0), ()))
        while True:
            self.start()
            if not self.running:
                assert self.schedule.is_idle(), f"nothing can fire: {self.schedule.waiting()}"
                return self.done
            task = self.rng.choice(sorted(self.running))
            self.done[task] = self.running.pop(task)
            if len(self.done) >= self.limit:
                return None
            self.of.setdefault(key(task), []).append(task)
            self.record("complete", key(task), task[2], self.route(task, self.done[task][1]))

    def record(self, what: str, *arguments: Any) -> None:
        self.log.append((what, *arguments))
        getattr(self.schedule, what)(*arguments)
        if self.rng.random() < self.crashes:
            self.recover()

    def recover(self) -> None:
        """A new schedule from the record: it must offer the same."""
        before = [(d.key, d.rank, d.indexes) for d in self.schedule.due()]
        self.schedule = Schedule(self.spec)
        for what, *arguments in self.log:
            getattr(self.schedule, what)(*arguments)
        assert [(d.key, d.rank, d.indexes) for d in self.schedule.due()] == before

    def start(self) -> None:
        due = self.schedule.due()
        self.rng.shuffle(due)
        for d in due:
            self.sources[d.key] = self.schedule.sources(d.key)
            seen = sorted((self.done[x][0], x) for k in self.seen_by(d.key) for x in self.of[k])
            for i, origin in zip(d.indexes, d.origins, strict=True):
                place = self.schedule.clock.place(d.rank, d.key.node, i, origin)
                self.running[d.key.node, d.key.time, i] = place, tuple(x for _, x in seen)
            self.record("fire", d.key, d.rank, d.indexes)

    def seen_by(self, firing: FiringKey) -> set[FiringKey]:
        """All that its sources lead back to."""
        out: set[FiringKey] = set()
        todo: Sequence[FiringKey] = self.sources[firing]
        while todo:
            new = set(todo) - out
            out |= new
            todo = [s for k in new for s in self.sources[k]]
        return out


def key(task: Task) -> FiringKey:
    return FiringKey(task[0], 0, task[1])


__all__ = ["Driven", "Sent"]
