"""Drives one run in the caller's thread: starts what is ready, runs it, stores what came of it, until nothing is left to do.

    start ready tasks -> commit -> run (here, or beside) -> an outcome, decided and offered -> start ready tasks -> commit ...

An outcome and the start of what it releases are one append. A single sync node runs in this very thread; several run on
threads of the pool, async ones on the event loop, and this thread waits for the first outcome.
"""
from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any

from ledgergraph.consumers import decide
from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.command import Abandoned
from ledgergraph.consumers.context import NodeContext
from ledgergraph.consumers.execute import Outcome, run_async, run_sync
from ledgergraph.consumers.ledger import Ledger
from ledgergraph.consumers.liveness import Identity
from ledgergraph.consumers.outcomes import Attempts
from ledgergraph.consumers.pool import LOOP, THREADS
from ledgergraph.projections.history import Loaded
from ledgergraph.projections.run_state import RunState
from ledgergraph.projections.run_tasks import Task
from ledgergraph.schemas.crash_points import reach
from ledgergraph.schemas.errors import NodeTimeoutError, RunCancelled, WrongExpectedVersion
from ledgergraph.schemas.events.task import Begun, TaskReleased
from ledgergraph.schemas.ids import TaskId

Message = Callable[[], None]
Chunk = tuple[str, Any]
"""(stream mode, value)."""


@dataclass
class Options:
    """How a run is driven."""

    worker: str
    concurrency: int = 128
    inline: bool = True
    """Whether a node may run in the caller's thread; not where the caller waits for its stream."""
    loop: asyncio.AbstractEventLoop | None = None
    """Of an async caller."""
    modes: frozenset[str] = frozenset()
    """Stream modes that somebody listens to."""


@dataclass
class Runner:
    """One run that this process works on. `step` returns whether there is more to do."""

    binding: Binding
    ledger: Ledger
    options: Options
    as_of: datetime | None = None
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    """What the stream's listener has not taken yet."""

    identity: Identity | None = None
    """Told which stream is driven here, for others who ask whether its worker lives."""
    reload: Callable[[], Loaded] | None = None
    """Loads the stream again, after somebody else wrote to it."""

    def __post_init__(self) -> None:
        self.thread = threading.get_ident()
        self.flying: dict[tuple[TaskId, int], NodeContext] = {}
        """Attempts that run beside this thread."""
        self.batch: list[tuple[NodeContext, Outcome]] = []
        """Outcomes that the next append holds."""
        self.closed = False
        self.launched: list[NodeContext] = []
        self.drives = False
        self.mailbox: SimpleQueue[Message] = SimpleQueue()
        self.attempts = Attempts(self.binding, self.ledger)
        self.deadlines: list[tuple[float, TaskId, int]] = []
        self.futures: dict[tuple[TaskId, int], Future[Any]] = {}
        self.key = ""
        """Idempotency key of the next append."""

    @property
    def run(self) -> RunState:
        run = self.ledger.state.run
        assert run is not None
        return run

    @property
    def errors(self) -> dict[TaskId, BaseException]:
        """What nodes raised in this process, by task."""
        return self.attempts.errors

    def steps(self) -> Iterator[None]:
        """Works until nothing is left to do; yields after every append, so that a stream can be drained."""
        launched = self.launched
        while True:
            launched = self.commit(launched)
            yield
            if self.run.ended or (self.run.running == 0 and not self.waits_for_time()):
                break
            launched = self.work(launched)
        self.ledger.settle()

    def close(self) -> None:
        """What comes later is recorded as refused."""
        self.closed = True
        self.abandon()
        for future in self.futures.values():
            future.cancel()
        self.ledger.close()

    def commit_first(self) -> list[NodeContext]:
        """Stores what the caller decided, with the start of what that released. Raises WrongExpectedVersion where somebody
        else wrote: the caller decides again."""
        if self.identity is not None:
            self.identity.enter(self.ledger.state.stream)
            self.drives = True
        launched = self.launch()
        self.key = ""
        self.ledger.commit()
        self.ledger.settle()
        return launched

    def abandon(self) -> None:
        """Tells that it is no longer driven here."""
        if self.drives and self.identity is not None:
            self.drives = False
            self.identity.leave(self.ledger.state.stream)

    def work(self, launched: Sequence[NodeContext]) -> list[NodeContext]:
        """Runs what was started, takes at least one outcome, and starts what that released."""
        if len(launched) == 1 and self.run.running == 1 and self.may_run_here(launched[0]):
            ctx = launched[0]
            self.settled(ctx, run_sync(self.binding, self.run.pre[ctx.task.key], ctx))
        else:
            for ctx in launched:
                self.spawn(ctx)
            self.receive()
        return self.launch()

    def may_run_here(self, ctx: NodeContext) -> bool:
        return self.options.inline and not self.binding.nodes[ctx.node].is_async and self.run.spec.node[ctx.node].timeout_s is None

    # Starting

    def launch(self) -> list[NodeContext]:
        """Starts ready tasks within the limit: offers their starts."""
        run = self.run
        if run.ended or run.halting or not run.startable:
            return []
        now = self.ledger.store.now() if any(run.tasks[id].due_at for id in run.startable) else 0
        out: list[NodeContext] = []
        for id in list(run.startable):
            if run.running >= self.options.concurrency:
                break
            task = run.tasks[id]
            if task.due_at <= now or task.state == "ready":
                out.append(self.start(task))
        return out

    def start(self, task: Task) -> NodeContext:
        run, node = self.run, task.key.node
        attempt = task.attempt + 1
        self.ledger.begin(Begun(task.id, attempt, self.options.worker, self.binding.nodes[node].code))
        self.key = self.key or f"{task.id}/{attempt}/started"
        return NodeContext(run.id, run.thread, node, task, attempt, self.as_of, self, run.failures_before(task.key))

    def spawn(self, ctx: NodeContext) -> None:
        view = self.run.pre[ctx.task.key]
        self.flying[ctx.task.id, ctx.attempt] = ctx
        timeout = self.run.spec.node[ctx.node].timeout_s
        if timeout is not None:
            heapq.heappush(self.deadlines, (time.monotonic() + timeout, ctx.task.id, ctx.attempt))
        if self.binding.nodes[ctx.node].is_async:
            future = LOOP.submit(run_async(self.binding, view, ctx), self.options.loop)
            self.futures[ctx.task.id, ctx.attempt] = future
            future.add_done_callback(lambda f: None if f.cancelled() else self.post(ctx, f.result()))
        else:
            THREADS.run(lambda: self.post(ctx, run_sync(self.binding, view, ctx)))

    # Outcomes

    def post(self, ctx: NodeContext, outcome: Outcome) -> None:
        if self.closed:
            self.attempts.late(ctx, outcome, self.reload)
        else:
            self.mailbox.put(lambda: self.settled(ctx, outcome))

    def settled(self, ctx: NodeContext, outcome: Outcome) -> None:
        """Decides what an outcome means; nothing of it is stored before `commit`."""
        self.futures.pop((ctx.task.id, ctx.attempt), None)
        self.flying.pop((ctx.task.id, ctx.attempt), None)
        self.batch.append((ctx, outcome))
        self.apply(ctx, outcome)

    def apply(self, ctx: NodeContext, outcome: Outcome) -> None:
        if not self.attempts.refusal(ctx):
            # A refused outcome has no key: the one of its attempt is that of the outcome which counts.
            self.key = self.key or f"{ctx.task.id}/{ctx.attempt}/ended"
        if self.attempts.settle(ctx, outcome) and "updates" in self.options.modes:
            self.chunks.append(("updates", {ctx.node: outcome.update or None}))
        decide.react(self.ledger.offer, self.run)
        if "values" in self.options.modes and outcome.error is None and outcome.parked is None:
            self.chunks.append(("values", dict(self.run.view().totals)))

    def receive(self) -> None:
        """Waits for a message, a deadline or a timer; then takes all messages that are there."""
        try:
            self.mailbox.get(timeout=self.patience())()
        except Empty:
            self.expire()
            return
        while True:
            try:
                self.mailbox.get_nowait()()
            except Empty:
                return

    def patience(self) -> float | None:
        """Seconds until the next deadline of an attempt or time of a retry; None: there is none."""
        while self.deadlines and not self.is_running(*self.deadlines[0][1:]):
            heapq.heappop(self.deadlines)
        waits = [self.deadlines[0][0] - time.monotonic()] if self.deadlines else []
        due = [t.due_at for t in map(self.run.tasks.__getitem__, self.run.startable) if t.state == "retry"]
        if due and not self.run.halting:
            waits.append((min(due) - self.ledger.store.now()) / 1e6)
        return max(0.0, min(waits)) if waits else None

    def waits_for_time(self) -> bool:
        return not self.run.ended and not self.run.halting and bool(self.run.startable)

    def is_running(self, id: TaskId, attempt: int) -> bool:
        task = self.run.tasks.get(id)
        return task is not None and task.state == "started" and task.attempt == attempt

    def expire(self) -> None:
        """Fails the attempts whose time is up; what they return later is refused."""
        while self.deadlines and self.deadlines[0][0] <= time.monotonic():
            _, id, attempt = heapq.heappop(self.deadlines)
            if self.is_running(id, attempt):
                task = self.run.tasks[id]
                node = task.key.node
                error = NodeTimeoutError(node, self.run.spec.node[node].timeout_s or 0)
                ctx = NodeContext(self.run.id, self.run.thread, node, task, attempt, self.as_of, self)
                future = self.futures.pop((id, attempt), None)
                self.settled(ctx, Outcome(error=error))
                if future is not None:
                    future.cancel()

    # The log

    def commit(self, launched: list[NodeContext]) -> list[NodeContext]:
        """Stores what was offered; returns what is to run now. Where somebody else wrote in between, decides again on what
        they wrote."""
        while True:
            key, self.key = self.key, ""
            reach("offered")
            try:
                self.ledger.commit(key)
                reach("committed")
                if self.chunks or self.run.questions or self.run.ended:
                    self.ledger.settle()
                self.batch.clear()
                return launched
            except WrongExpectedVersion:
                launched = self.rebase()

    def rebase(self) -> list[NodeContext]:
        """Loads what others wrote, and applies to it what this thread had not stored."""
        if self.reload is None:
            raise RuntimeError("a runner without a way to load its stream met a conflict")
        mine = self.run.id
        self.ledger.restart(self.reload())
        if self.run.id != mine:
            raise RunCancelled(f"run {mine} has ended while it ran here; run {self.run.id} goes on in its thread")
        batch, self.batch = self.batch, []
        self.chunks.clear()
        kept = {(c.task.id, c.attempt) for c, _ in batch} | self.flying.keys()
        for t in [t for t in self.run.tasks.values() if t.state == "started" and t.worker == self.options.worker]:
            if (t.id, t.attempt) not in kept:
                self.ledger.offer(TaskReleased(t.id, t.attempt, "its start was not stored in time", False))
        for ctx, outcome in batch:
            self.batch.append((ctx, outcome))
            self.apply(ctx, outcome)
        decide.react(self.ledger.offer, self.run)
        return self.launch()

    # Recorder, for nodes

    def record(self, ctx: NodeContext, events: Sequence[Any]) -> None:
        """Stores a node's events; returns when they are durable. From the node's thread or from this one."""
        if threading.get_ident() == self.thread:
            self.store(ctx, events)
            return
        if self.closed:
            raise Abandoned(f"node {ctx.node!r}: nobody drives its run any more")
        done: Future[None] = Future()

        def write() -> None:
            try:
                self.store(ctx, events)
                done.set_result(None)
            except Abandoned as e:
                done.set_exception(e)
            except BaseException as e:
                done.set_exception(e)
                raise
        self.mailbox.put(write)
        done.result()

    def store(self, ctx: NodeContext, events: Sequence[Any]) -> None:
        while True:
            if why := self.attempts.refusal(ctx):
                raise Abandoned(f"node {ctx.node!r}: {why}")
            for e in events:
                self.ledger.offer(e, code=self.binding.nodes[ctx.node].code)
            try:
                self.ledger.commit()
                self.ledger.settle()
                self.batch.clear()
                return
            except WrongExpectedVersion:
                self.flying[ctx.task.id, ctx.attempt] = ctx
                for late in self.rebase():
                    self.spawn(late)

    def stream(self, chunk: Any) -> None:
        if "custom" in self.options.modes:
            self.mailbox.put(lambda: self.chunks.append(("custom", chunk)))
