"""What nodes and callers say to the runtime: Send, Command, interrupt. The names and forms that LangGraph's users know."""
from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ledgergraph.schemas.errors import RunError
from ledgergraph.schemas.graph import END, START

if TYPE_CHECKING:
    from ledgergraph.consumers.context import NodeContext

__all__ = ["END", "START", "Abandoned", "Command", "Interrupt", "Parked", "Send", "get_stream_writer", "interrupt"]

N = TypeVar("N")
CURRENT: ContextVar[NodeContext] = ContextVar("ledgergraph_node")


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()


@dataclass(frozen=True, slots=True)
class Send:
    """One task of `node` with `arg` in place of the state."""

    node: str
    arg: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[N]):
    """From a node: an update and where to go. To a run: `resume`, the answer to its question, or answers by question id."""

    update: Any = None
    goto: Send | str | Sequence[Send | str] = ()
    resume: Any = UNSET

    @property
    def answers(self) -> bool:
        return self.resume is not UNSET


@dataclass(frozen=True, slots=True)
class Interrupt:
    """An open question of a run."""

    value: Any
    id: str


class Parked(BaseException):
    """A node stopped at a question. No `except Exception` of a node can swallow it."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.events = list(events)
        super().__init__("the task waits for an answer")


class Abandoned(BaseException):
    """The attempt no longer counts (its time was up, its run was cancelled): the node is to stop. A BaseException for the
    same reason."""


def interrupt(value: Any) -> Any:
    """Asks a person: parks the task, and returns the answer when the task runs again after it was given. The node runs
    again from its top: what must not happen twice before the question belongs into `ctx.effect`."""
    return _node("interrupt()").interrupt(value)


def get_stream_writer() -> Any:
    """A function that sends a value to whoever streams the run in mode `custom`."""
    return _node("get_stream_writer()").stream


def _node(what: str) -> NodeContext:
    try:
        return CURRENT.get()
    except LookupError:
        raise RunError(f"{what} was called outside of a node; only a running node has somebody to ask.") from None
