"""What an attempt's outcome means for its run: an update, a question, a retry, a failure, or a fact that comes too late."""
from __future__ import annotations

import hashlib
from collections.abc import Callable

from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.context import NodeContext, trace_of
from ledgergraph.consumers.execute import Outcome
from ledgergraph.consumers.ledger import Ledger
from ledgergraph.projections.history import Loaded
from ledgergraph.projections.run_state import RunState
from ledgergraph.schemas.errors import StoreUnavailable, WrongExpectedVersion
from ledgergraph.schemas.events.task import ContextRecorded, TaskCompleted, TaskFailed, TaskRefused
from ledgergraph.schemas.ids import TaskId

LATE_TRIES = 20
"""How often a late outcome's fact is offered to a stream that others write to."""


class Attempts:
    """Turns outcomes into events of one run."""

    def __init__(self, binding: Binding, ledger: Ledger) -> None:
        self.binding, self.ledger = binding, ledger
        self.errors: dict[TaskId, BaseException] = {}

    @property
    def run(self) -> RunState:
        run = self.ledger.state.run
        assert run is not None
        return run

    def settle(self, ctx: NodeContext, outcome: Outcome) -> bool:
        """Offers what the outcome means. True where it completed the task."""
        if why := self.refusal(ctx):
            self.refuse(ctx, outcome, why)
            return False
        if outcome.parked is not None:
            for event in outcome.parked.events:
                self.ledger.offer(event, code=self._code(ctx))
            return False
        if outcome.recorded:
            self.ledger.offer(ContextRecorded(ctx.task.id, outcome.recorded))
        if outcome.error is not None:
            self.fail(ctx, outcome.error)
            return False
        self.ledger.offer(TaskCompleted(ctx.task.id, ctx.attempt, outcome.update, outcome.sent), encoded=outcome.encoded,
                          code=self._code(ctx))
        return True

    def _code(self, ctx: NodeContext) -> str:
        return self.binding.nodes[ctx.node].code

    def refusal(self, ctx: NodeContext) -> str:
        """Why the attempt no longer counts; empty where it does."""
        task = self.run.tasks.get(ctx.task.id)
        if self.run.id != ctx.run or task is None:
            return "the task has ended"
        if task.attempt != ctx.attempt or task.state != "started":
            return f"attempt {task.attempt} has taken its place" if task.attempt != ctx.attempt else f"the attempt is {task.state}"
        return ""

    def refuse(self, ctx: NodeContext, outcome: Outcome, why: str) -> None:
        digest = hashlib.sha256(b"\0".join([*(k.encode() + v for k, v in outcome.encoded.items()), repr(outcome.error).encode()]))
        self.ledger.offer(TaskRefused(ctx.task.id, ctx.attempt, why, digest.hexdigest()))

    def fail(self, ctx: NodeContext, error: BaseException) -> None:
        self.errors[ctx.task.id] = error
        wait_s = self._wait_s(ctx, error)
        continued = wait_s is None and self.run.spec.node[ctx.node].on_error == "continue"
        retry_at = None if wait_s is None else self.ledger.store.now() + int(wait_s * 1e6)
        self.ledger.offer(TaskFailed(ctx.task.id, ctx.attempt, type(error).__name__, str(error), trace_of(error), retry_at, continued),
                          code=self._code(ctx))

    def _wait_s(self, ctx: NodeContext, error: BaseException) -> float | None:
        policy = self.binding.nodes[ctx.node].retry
        return None if policy is None else policy.wait_s(ctx.task.failures + 1, error)

    def late(self, ctx: NodeContext, outcome: Outcome, reload: Callable[[], Loaded] | None) -> None:
        """Keeps an outcome that came after its run was left as a fact of the stream."""
        for _ in range(LATE_TRIES):
            if reload is None:
                return
            try:
                ledger = Ledger(self.ledger.store, reload())
                late = Attempts(self.binding, ledger)
                late.refuse(ctx, outcome, late.refusal(ctx) or "nobody drove its run any more")
                ledger.commit()
                return
            except WrongExpectedVersion:
                continue
            except StoreUnavailable:
                # The log was closed meanwhile, or is gone: there is nowhere to keep the fact.
                return
