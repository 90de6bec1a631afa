"""What users import: the names that LangGraph's users know, over an event-sourced log."""
from ledgergraph.consumers.command import END, START, Command, Interrupt, Send, get_stream_writer, interrupt
from ledgergraph.consumers.context import NodeContext
from ledgergraph.consumers.graph import StateGraph
from ledgergraph.consumers.retry import RetryPolicy
from ledgergraph.consumers.snapshots import StateSnapshot
from ledgergraph.schemas.errors import GraphRecursionError, InvalidUpdateError, ThreadBusy
from ledgergraph.schemas.reducers import reducer

__all__ = [
    "END",
    "START",
    "Command",
    "GraphRecursionError",
    "Interrupt",
    "InvalidUpdateError",
    "NodeContext",
    "RetryPolicy",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "ThreadBusy",
    "get_stream_writer",
    "interrupt",
    "reducer",
]
