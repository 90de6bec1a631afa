"""Who fires when: the tokens, firings and barriers of a run by logical time. A pure state machine over a graph's clock.

Tokens that wait at one node at one time are one firing. It is due when nothing live (waiting or running) is before it. A
waiting firing watches one live firing that is before it, and is looked at again only when that one ends: a step costs what it
touches, never the length of the run.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ledgergraph.projections.barriers import Barriers, Moved
from ledgergraph.projections.firings import Done, FiringKey
from ledgergraph.projections.live import Live
from ledgergraph.schemas.clock import LogicalClock, StepClock, clock_for
from ledgergraph.schemas.graph import START, BarrierSpec, GraphSpec
from ledgergraph.schemas.ids import Time


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
"""The payload of a task that sees the state."""


class Sent(NamedTuple):
    """A token of a decision; with a payload, a Send."""

    node: str
    payload: Any = NOTHING


class Due(NamedTuple):
    """A firing that may start: its tasks by index."""

    key: FiringKey
    rank: int
    indexes: tuple[int, ...]
    payloads: tuple[Any, ...]
    origins: tuple[Any, ...]
    """Where each Send came from: (place of its sender, its number); None: no Send."""


Origin = Any
Tasks = dict[int, tuple[Origin, Any]]
"""Index -> (origin, payload)."""


class Waiting:
    """The tokens of one firing."""

    __slots__ = ("barriers", "due", "kept", "plain", "sends", "sources")

    def __init__(self) -> None:
        self.plain = False
        self.barriers: set[int] = set()
        self.sends: list[tuple[Origin, Any]] = []
        self.kept: Tasks = {}
        """Of a firing that ran and waits again: what was not done."""
        self.sources: tuple[FiringKey, ...] = ()
        self.due: Due | None = None

    def tasks(self) -> Tasks:
        if self.kept:
            return self.kept
        first = [(None, NOTHING)] if self.plain or self.barriers else []
        return dict(enumerate(first + sorted(self.sends, key=_origin)))


def _origin(send: tuple[Origin, Any]) -> Origin:
    return send[0]


class Running:
    """A firing whose tasks run: those that are not done."""

    __slots__ = ("rank", "sources", "tasks")

    def __init__(self, rank: int, sources: tuple[FiringKey, ...], tasks: Tasks) -> None:
        self.rank, self.sources, self.tasks = rank, sources, tasks


class Schedule:
    """The scheduling state of one run."""

    def __init__(self, spec: GraphSpec, clock: LogicalClock | StepClock | None = None) -> None:
        self.spec = spec
        self.clock = clock or clock_for(spec)
        self.epoch = 0
        self.max_rank = 0
        self.done = Done(self.clock)
        self._edit_rank = 0
        self._live = Live(self.clock, self.done.before)
        self._waiting: dict[FiringKey, Waiting] = {}
        self._running: dict[FiringKey, Running] = {}
        self._due: set[FiringKey] = set()
        self._watchers: dict[FiringKey, list[FiringKey]] = {}
        self._to_place: list[FiringKey] = []
        """Waiting firings whose blocker has to be found."""
        self._barriers = Barriers(spec)

    # What is asked

    def due(self) -> list[Due]:
        """The firings that may start now, in the order of their nodes and times."""
        if len(self._due) < 2:
            return [self.offered(k) for k in self._due]
        order = self.spec.order
        return [self.offered(k) for k in sorted(self._due, key=lambda k: (order[k.node], k.time))]

    def is_due(self, key: FiringKey) -> bool:
        return key in self._due

    def offered(self, key: FiringKey) -> Due:
        """The tasks of a waiting firing, whether it may start or not: a replay follows what was recorded."""
        waiting = self._waiting[key]
        if waiting.due is None:
            waiting.sources = self.done.sources(key)
            rank = max((self.done.rank[s] for s in waiting.sources), default=0)
            tasks = waiting.tasks()
            waiting.due = Due(key, max(rank, self._edit_rank) + 1, tuple(tasks), tuple(p for _, p in tasks.values()),
                              tuple(o for o, _ in tasks.values()))
        return waiting.due

    def before(self, a: FiringKey, b: FiringKey) -> bool:
        """Whether b waits for a and sees its update."""
        return self.done.before(a, b)

    def visits(self, key: FiringKey) -> int:
        """Firings of its node that the firing sees, itself included."""
        return self.done.visits(key) + 1

    def sources(self, key: FiringKey) -> tuple[FiringKey, ...]:
        """The completed firings that it sees and that no other one that it sees has seen."""
        if key in self._running:
            return self._running[key].sources
        self.offered(key)
        return self._waiting[key].sources

    def ends(self) -> tuple[FiringKey, ...]:
        """The completed firings that no other completed one has seen."""
        return self.done.ends()

    def waiting(self) -> list[FiringKey]:
        return list(self._waiting)

    def running(self) -> list[FiringKey]:
        return list(self._running)

    def is_running(self, key: FiringKey) -> bool:
        return key in self._running

    def is_idle(self) -> bool:
        return not self._waiting and not self._running

    def starved(self) -> list[tuple[BarrierSpec, list[str]]]:
        """Barriers that got some of their sources, and what they miss: to be asked where nothing is live."""
        return self._barriers.starved()

    # What happens

    def begin(self, targets: Sequence[Sent]) -> None:
        """The tokens of START: along its edges, and where its routes went."""
        self._send(START, self.clock.start(START), (0,), targets)
        self._settle()

    def fire(self, key: FiringKey, rank: int, indexes: Iterable[int]) -> None:
        """The firing's tasks start."""
        sources = self.sources(key)
        waiting = self._waiting.pop(key)
        tasks = waiting.tasks()
        self._running[key] = Running(rank, sources, {i: tasks[i] for i in indexes})
        self._due.discard(key)
        self.max_rank = max(self.max_rank, rank)
        if waiting.barriers:
            self._move(self._barriers.fired(key.node, key.time))
            self._settle()

    def complete(self, key: FiringKey, index: int, targets: Sequence[Sent]) -> None:
        """A task of a running firing is done, and went to its node's edges and these targets."""
        running = self._running[key]
        origin, _ = running.tasks.pop(index)
        self.done.add(key, running.rank, running.sources)
        self._send(key.node, key.time, self.clock.place(running.rank, key.node, index, origin), targets)
        if not running.tasks:
            del self._running[key]
            self._end(key)
        self._settle()

    def unfire(self, key: FiringKey) -> None:
        """The firing's open tasks wait again."""
        waiting = self._waiting[key] = Waiting()
        waiting.kept = self._running.pop(key).tasks
        self._due.add(key)

    def edit(self, rank: int) -> None:
        """The state was edited at that rank: whatever starts later ranks above it."""
        self._edit_rank = rank
        self.max_rank = max(self.max_rank, rank)
        for w in self._waiting.values():
            w.due = None

    def jump(self, node: str, rank: int, targets: Sequence[Sent]) -> None:
        """Drops all tokens; the node's successors get new ones in a new epoch."""
        for key in (*self._waiting, *self._running):
            self._live.remove(key)
        for kept in (self._waiting, self._running, self._due, self._watchers):
            kept.clear()
        self._barriers.clear()
        self.epoch += 1
        self.done.begin_epoch()
        self.edit(rank)
        self._send(node, self.clock.start(node), (rank,), targets)
        self._settle()

    def redirect(self, key: FiringKey, to: str) -> None:
        """A firing over its cap goes elsewhere: its tokens are one there."""
        waiting = self._waiting.pop(key)
        self._due.discard(key)
        if waiting.barriers:
            self._move(self._barriers.fired(key.node, key.time))
        if to in self.spec.node:
            self._token(to, key.epoch, self.clock.sent(key.node, {to}, key.time)[to]).plain = True
        self._end(key)
        self._settle()

    def proceed(self, barrier: BarrierSpec) -> None:
        """A starved barrier fires with the sources that came."""
        t = self._barriers.proceed(barrier)
        if FiringKey(barrier.target, self.epoch, t) not in self.done:
            self._token(barrier.target, self.epoch, t).plain = True
            self._settle()

    # Tokens

    def _send(self, u: str, t: Time, place: tuple[Any, ...], targets: Sequence[Sent]) -> None:
        sent = [Sent(v) for v in self.spec.static.get(u, ())]
        sent += [s for s in targets if s.node in self.spec.node]
        if sent:
            times = self.clock.sent(u, {s.node for s in sent}, t)
            for k, s in enumerate(sent):
                waiting = self._token(s.node, self.epoch, times[s.node])
                if s.payload is NOTHING:
                    waiting.plain = True
                else:
                    waiting.sends.append(((place, k), s.payload))
        self._move(self._barriers.mark(u, t, self.clock))

    def _token(self, node: str, epoch: int, t: Time) -> Waiting:
        key = FiringKey(node, epoch, t)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = Waiting()
            self._live.add(key)
            self._to_place.append(key)
        waiting.due = None
        return waiting

    def _move(self, moved: Iterable[Moved]) -> None:
        """Tokens of barriers, where the time at which they fire has changed."""
        for k, target, old, new in moved:
            if new is not None:
                self._token(target, self.epoch, new).barriers.add(k)
            if old is not None:
                self._withdraw(FiringKey(target, self.epoch, old), k)

    def _withdraw(self, key: FiringKey, barrier: int) -> None:
        waiting = self._waiting[key]
        waiting.barriers.discard(barrier)
        waiting.due = None
        if not (waiting.plain or waiting.barriers or waiting.sends):
            del self._waiting[key]
            self._due.discard(key)
            self._end(key)

    def _end(self, key: FiringKey) -> None:
        """It is not live any more: who watched it looks again."""
        self._live.remove(key)
        self._to_place += self._watchers.pop(key, ())

    def _settle(self) -> None:
        """Finds for each firing that has to be placed what it waits for; due are those that wait for nothing."""
        keys, self._to_place = self._to_place, []
        for key in keys:
            if key in self._waiting:
                blocker = self._live.blocker(key)
                if blocker is None:
                    self._due.add(key)
                else:
                    self._watchers.setdefault(blocker, []).append(key)


__all__ = ["NOTHING", "Due", "FiringKey", "Schedule", "Sent"]
