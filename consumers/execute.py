"""One attempt of a task: calls the node on what it sees, and says what came of it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledgergraph.consumers.binding import Binding
from ledgergraph.consumers.command import CURRENT, Abandoned, Command, Parked
from ledgergraph.consumers.context import NodeContext
from ledgergraph.projections.schedule import NOTHING
from ledgergraph.projections.views import View
from ledgergraph.schemas import codec
from ledgergraph.schemas.copying import IMMUTABLE, fresh
from ledgergraph.schemas.crash_points import reach
from ledgergraph.schemas.errors import GraphError, InvalidUpdateError


@dataclass(slots=True)
class Outcome:
    """What an attempt came to: an update with where to go, a question, or an error."""

    update: dict[str, Any] = field(default_factory=dict[str, Any])
    encoded: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    sent: list[Any] = field(default_factory=list[Any])
    recorded: list[Any] = field(default_factory=list[Any])
    """Values read of clock, randomness and ids that are not stored yet."""
    parked: Parked | None = None
    error: BaseException | None = None


def run_sync(binding: Binding, view: View, ctx: NodeContext) -> Outcome:
    """The outcome of a sync node, in this thread. Never raises but for what ends the process."""
    token = CURRENT.set(ctx)
    try:
        node = binding.nodes[ctx.node]
        state = given(binding, view, ctx)
        reach("claimed")
        result = node.action(state, ctx) if node.wants_context else node.action(state)
        reach("ran")
        return outcome(binding, view, ctx, result)
    except Parked as e:
        return Outcome(parked=e)
    except (Exception, Abandoned) as e:
        return Outcome(error=e, recorded=ctx.fresh_values)
    finally:
        CURRENT.reset(token)


async def run_async(binding: Binding, view: View, ctx: NodeContext) -> Outcome:
    """The same for an async node, on the running loop."""
    token = CURRENT.set(ctx)
    try:
        node = binding.nodes[ctx.node]
        state = given(binding, view, ctx)
        reach("claimed")
        result = await (node.action(state, ctx) if node.wants_context else node.action(state))
        reach("ran")
        return outcome(binding, view, ctx, result)
    except Parked as e:
        return Outcome(parked=e)
    except (Exception, Abandoned) as e:
        return Outcome(error=e, recorded=ctx.fresh_values)
    finally:
        CURRENT.reset(token)


def given(binding: Binding, view: View, ctx: NodeContext) -> Any:
    """What the node receives: a copy of its own of the state, or of the payload that was sent to it."""
    if ctx.task.payload is not NOTHING:
        return fresh(ctx.task.payload)
    return binding.schema.view(view.totals)


def outcome(binding: Binding, view: View, ctx: NodeContext, result: Any) -> Outcome:
    """The node's result as update and targets, checked and encoded. Raises where it cannot be applied or stored."""
    place = f"node {ctx.node!r}"
    goto: Any = ()
    if isinstance(result, Command):
        if result.answers:
            raise GraphError(f"{place} returned Command(resume=...): only a caller answers questions. Return update= and goto=.")
        result, goto = result.update, result.goto
    update = binding.schema.check(result, place=place) if result is not None else {}
    encoded = binding.schema.encode_update(update, place=place)
    stored = {k: update[k] if type(update[k]) in IMMUTABLE else codec.decode(v) for k, v in encoded.items()}
    sent = decided(binding, view, ctx, stored, goto)
    return Outcome(stored, encoded, sent, ctx.fresh_values)


def decided(binding: Binding, view: View, ctx: NodeContext, update: Mapping[str, Any], goto: Any) -> list[Any]:
    """Where the node goes beside its static edges. A route sees the state with the node's own update folded in."""
    name = ctx.node
    if name not in binding.routes and not goto:
        return []
    state: Any = None
    if name in binding.routes:
        state = binding.schema.view(folded(binding, view, update))
    sent = binding.decide(name, state, ctx, goto)
    for target in sent:
        if not isinstance(target, str):
            target[1] = codec.decode(codec.encode(target[1], place=f"the Send of node {name!r} to {target[0]!r}", path="arg"))
    return sent


def folded(binding: Binding, view: View, update: Mapping[str, Any]) -> dict[str, Any]:
    from ledgergraph.schemas import reducers
    totals = dict(view.totals)
    for k, v in update.items():
        reducer = binding.schema.fields[k].reducer
        totals[k] = reducers.get(reducer)(totals[k], v) if reducer and k in totals else v
    return totals


__all__ = ["InvalidUpdateError", "Outcome", "run_async", "run_sync"]
