"""What a node is given beside the state: journaled effects, recorded clock and randomness, questions, a stream out."""
from __future__ import annotations

import asyncio
import random
import traceback
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import signature
from typing import Any, Literal, Protocol, TypeVar, cast

from ledgergraph.consumers.command import Parked
from ledgergraph.projections.run_tasks import Effect, Failure, Task
from ledgergraph.schemas import codec
from ledgergraph.schemas.copying import fresh
from ledgergraph.schemas.crash_points import reach
from ledgergraph.schemas.errors import EffectMismatch, ReplayDivergence
from ledgergraph.schemas.events.effect import EffectErred, EffectIntended, EffectSucceeded
from ledgergraph.schemas.events.question import QuestionAsked
from ledgergraph.schemas.events.task import ContextRecorded
from ledgergraph.schemas.ids import EffectKey, QuestionId, RunId, ThreadId, effect_key, question_id

T = TypeVar("T")
OnUnknown = Literal["retry", "ask"]
NO_REQUEST = codec.digest_of(b"null")


class Recorder(Protocol):
    """How a running node reaches the log."""

    def record(self, ctx: NodeContext, events: Sequence[Any]) -> None:
        """Returns when they are durable. Raises Abandoned where the attempt no longer counts."""
        ...

    def stream(self, chunk: Any) -> None: ...


@dataclass
class NodeContext:
    """A task's attempt, as its node sees it."""

    run: RunId
    thread: ThreadId
    node: str
    task: Task
    attempt: int
    as_of: datetime | None
    recorder: Recorder
    failures: tuple[Failure, ...] = ()
    """Of nodes before this one with on_error="continue": (node, kind, message) each."""
    calls_allowed: bool = True
    """False in a replay: what is not recorded is a divergence, never a call."""
    fresh_values: list[Any] = field(default_factory=list[Any])
    """Read of clock, randomness and ids by this attempt, not yet stored."""
    answered_by: str = ""
    """Who gave the last answer that `interrupt` returned."""
    _reads: int = 0
    _asked: int = 0
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    # Clock, randomness, ids: the same again in every later attempt and replay

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return self._read("now", lambda: datetime.now(UTC))

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._read("random", random.SystemRandom().random)

    def uuid(self) -> uuid.UUID:
        return self._read("uuid", uuid.uuid4)

    def _read(self, kind: str, make: Callable[[], T]) -> T:
        known = [*self.task.recorded, *self.fresh_values]
        at = self._reads
        self._reads += 1
        if at < len(known):
            if known[at][0] != kind:
                raise ReplayDivergence(f"node {self.node!r} asked for {kind} where it asked for {known[at][0]} before. A node "
                                       "must ask in the same order when it runs again.")
            return cast(T, known[at][1])
        self._must_be_allowed(f"{kind}()")
        value = make()
        self.fresh_values.append([kind, value])
        return value

    def _must_be_allowed(self, what: str) -> None:
        if not self.calls_allowed:
            raise ReplayDivergence(f"node {self.node!r} called {what}, of which the log has no record")

    def _flushed(self) -> list[Any]:
        values, self.fresh_values = self.fresh_values, []
        return [ContextRecorded(self.task.id, values)] if values else []

    # Effects

    def effect(self, name: str, call: Callable[..., Any], *, request: Any = None, on_unknown: OnUnknown = "ask") -> Any:
        """The result of `call`, which is made once: recorded before as an intent and after as a result, and taken from the
        record by later attempts. `call` may take the effect's key, to hand it to the service. `request`: what is asked for;
        another one under the same key is an error. `on_unknown`: what to do when an earlier attempt died between intent and
        result: `retry` calls again under the same key, `ask` parks the task until a person says what happened."""
        effect = self._begin(name, request, on_unknown)
        if effect.outcome == "succeeded":
            return fresh(effect.result)
        self.recorder.record(self, self._intent(effect, request))
        reach("intended")
        try:
            result = call(effect.key) if _takes_key(call) else call()
            reach("called")
        except Exception as e:
            self.recorder.record(self, [EffectErred(self.task.id, effect.key, type(e).__name__, str(e))])
            raise
        return self._finish(effect, result)

    async def aeffect(self, name: str, call: Callable[..., Awaitable[Any]], *, request: Any = None,
                      on_unknown: OnUnknown = "ask") -> Any:
        """`effect` for an async node and an async call."""
        effect = self._begin(name, request, on_unknown)
        if effect.outcome == "succeeded":
            return fresh(effect.result)
        await asyncio.to_thread(self.recorder.record, self, self._intent(effect, request))
        reach("intended")
        try:
            result = await (call(effect.key) if _takes_key(call) else call())
            reach("called")
        except Exception as e:
            await asyncio.to_thread(self.recorder.record, self, [EffectErred(self.task.id, effect.key, type(e).__name__, str(e))])
            raise
        return await asyncio.to_thread(self._finish, effect, result)

    def _begin(self, name: str, request: Any, on_unknown: OnUnknown) -> Effect:
        number = self._numbers.get(name, 0)
        self._numbers[name] = number + 1
        digest = NO_REQUEST if request is None else codec.digest_of(codec.encode(request, place=f"effect {name!r}", path="request"))
        key, known = self._known(name, number, digest)
        if known is None:
            self._must_be_allowed(f"effect {name!r}")
            return Effect(name, number, key, digest, on_unknown, 0)
        if known.outcome == "unknown" and known.attempt and on_unknown == "ask":
            self._settled_by_person(known)
        if known.outcome != "succeeded":
            self._must_be_allowed(f"effect {name!r} again")
        known.on_unknown = on_unknown
        return known

    def _known(self, name: str, number: int, digest: str) -> tuple[EffectKey, Effect | None]:
        """(the key, what is recorded under it). A task that was started anew, on an edited state, may ask for something else than
        before, under a key of its own. Raises EffectMismatch."""
        generation = 0
        while True:
            key = effect_key(self.run, self.task.id, f"{name}@{generation}" if generation else name, number)
            known = self.task.effects.get(key)
            if known is None or known.request == digest:
                return key, known
            if generation == self.task.generation:
                raise EffectMismatch(name, key, known.request, digest)
            generation += 1

    def _intent(self, e: Effect, request: Any) -> list[Any]:
        return [*self._flushed(), EffectIntended(self.task.id, self.attempt, e.name, e.number, e.key, e.request, e.on_unknown, request)]

    def _finish(self, effect: Effect, result: Any) -> Any:
        data = codec.encode(result, place=f"effect {effect.name!r} of node {self.node!r}", path="result")
        stored = codec.decode(data)
        self.recorder.record(self, [EffectSucceeded(self.task.id, effect.key, stored)])
        reach("recorded")
        return fresh(stored)

    def _settled_by_person(self, e: Effect) -> None:
        """Asks whether an effect of unknown outcome happened; goes on when that was answered."""
        answer = self._ask("effect", {"effect": e.name, "key": str(e.key), "node": self.node, "attempt": e.attempt,
                                      "question": f"Did effect {e.name!r} happen? Its intent is on the log, its outcome is not.",
                                      "answer": {"happened": "true or false", "result": "what it returned, if it happened"}},
                           f"effect:{e.key}:{e.attempt}")
        said = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
        if not isinstance(said.get("happened"), bool):
            raise ReplayDivergence(f"the answer {answer!r} does not say whether effect {e.name!r} happened. "
                                   "Answer {'happened': true, 'result': ...} or {'happened': false}.")
        if said["happened"]:
            self.recorder.record(self, [EffectSucceeded(self.task.id, e.key, said.get("result"))])
            e.outcome, e.result = "succeeded", said.get("result")

    # People

    def interrupt(self, value: Any) -> Any:
        """See `ledgergraph.consumers.interrupt`."""
        return self._ask("interrupt", value, None)

    def _ask(self, kind: str, value: Any, content: str | None) -> Any:
        number = self._asked
        self._asked += 1
        shown = codec.digest_of(codec.encode(value, place=f"node {self.node!r}", path="question"))
        anew = f"@{self.task.generation}" if self.task.generation else ""
        id = question_id(self.task.id, number, (content or shown) + anew)
        earlier = [q for q in self.task.questions if q.number == number]
        for q in earlier:
            if q.asked.question == id and not q.open:
                self.answered_by = q.answered_by
                return fresh(q.answer)
        self._must_be_allowed(f"interrupt({value!r})")
        raise Parked([*self._flushed(), QuestionAsked(QuestionId(id), self.task.id, number, len(earlier) + 1, kind, value, shown)])

    # Out

    def stream(self, chunk: Any) -> None:
        """Sends a value to whoever streams the run in mode `custom`; it is not stored."""
        self.recorder.stream(chunk)

    writer = stream


def _takes_key(call: Callable[..., Any]) -> bool:
    try:
        parameters = signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)


def trace_of(error: BaseException) -> str:
    """The end of its traceback: enough to find the line, bounded."""
    return "".join(traceback.format_exception(error))[-4000:]


__all__ = ["EffectKey", "NodeContext", "Recorder", "trace_of"]
