"""The whole error tree. Each error names the thing, its place and the remedy; a conflict carries both sides."""
from __future__ import annotations

from collections.abc import Sequence


class LedgergraphError(Exception):
    """Whatever this product raises on purpose."""


# What a caller hands in


class InvalidInput(LedgergraphError, ValueError):
    """A value that a caller gave cannot be used; nothing was stored."""


class InvalidThreadId(InvalidInput):
    def __init__(self, given: object, why: str) -> None:
        self.given = given
        shown = repr(given) if len(repr(given)) <= 60 else repr(given)[:57] + "..."
        super().__init__(f"{shown} is not a thread id: {why}. Use 1 to 200 visible characters, "
                         "for example 'factors-2010-06-30'.")


class InvalidStoreUrl(InvalidInput):
    def __init__(self, given: str, why: str) -> None:
        self.given = given
        super().__init__(f"{given!r} does not name a log: {why}. Use memory://, sqlite:///relative/path.db, "
                         "sqlite:////absolute/path.db or postgresql+psycopg://user@host/database.")


class InvalidAsOf(InvalidInput):
    def __init__(self, given: object, why: str) -> None:
        self.given = given
        super().__init__(f"as_of {given!r} cannot be used: {why}. Give a date (the end of that day in the market's "
                         "zone) or a time with its zone that is not in the future.")


# Graphs


class GraphError(LedgergraphError, ValueError):
    """A graph that cannot be built, found or served."""


class UnknownNode(GraphError):
    def __init__(self, node: str, place: str, known: Sequence[str]) -> None:
        self.node, self.place, self.known = node, place, tuple(known)
        names = ", ".join(known) if len(known) <= 12 else ", ".join(known[:12]) + ", ..."
        super().__init__(f"{place}: there is no node {node!r}. Known: {names}. Add it with add_node({node!r}, ...), "
                         "or declare another target.")


class UndeclaredTarget(GraphError):
    def __init__(self, node: str, target: str, declared: Sequence[str]) -> None:
        self.node, self.target, self.declared = node, target, tuple(declared)
        super().__init__(f"node {node!r} goes to {target!r}, which it did not declare (declared: "
                         f"{', '.join(declared) or 'nothing'}). Annotate it as Command[Literal[{target!r}, ...]], or say "
                         f"add_node({node!r}, ..., destinations=({target!r}, ...)).")


class FingerprintMismatch(GraphError):
    def __init__(self, run: str, graph: str, recorded: str, loaded: str) -> None:
        self.run, self.graph, self.recorded, self.loaded = run, graph, recorded, loaded
        super().__init__(f"run {run} was started by graph {graph!r} with fingerprint {recorded[:12]}, the graph at hand has "
                         f"{loaded[:12]}. Load the version that started it; or, where only policies, caps or code changed, "
                         "let this one take it over: `ledgergraph resume RUN --adopt 'why'`.")


# State


class InvalidUpdateError(LedgergraphError, ValueError):
    """An update that cannot be applied: unknown field, wrong type, or two that conflict."""


class UnknownField(InvalidUpdateError):
    def __init__(self, place: str, field: str, known: Sequence[str]) -> None:
        self.place, self.field, self.known = place, field, tuple(known)
        super().__init__(f"{place}: the state has no field {field!r}. Known fields: {', '.join(known)}. "
                         "Add it to the state's schema, or correct its name.")


class InvalidValue(InvalidUpdateError):
    def __init__(self, place: str, field: str, path: str, why: str, wanted: str) -> None:
        self.place, self.field, self.path = place, field, path
        super().__init__(f"{place}: {field}{path} is not {wanted}: {why}. "
                         "Values are checked without conversion: give the declared type.")


class UnstorableValue(InvalidUpdateError):
    def __init__(self, place: str, path: str, kind: str, remedy: str) -> None:
        self.place, self.path, self.kind = place, path, kind
        super().__init__(f"{place}: {path} holds a {kind}, which cannot be stored exactly. {remedy}")


class DecodeError(LedgergraphError, ValueError):
    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"the log holds {what}, which cannot be read here: {why}.")


class ConflictingUpdates(InvalidUpdateError):
    def __init__(self, field: str, tasks: Sequence[str], place: str) -> None:
        self.field, self.tasks = field, tuple(tasks)
        super().__init__(f"field {field!r} has no reducer and was written by {' and '.join(tasks)}, neither of which saw the "
                         f"other; they meet {place}. Declare a reducer (Annotated[..., reducer]), or settle it with "
                         f"update_state({{{field!r}: ...}}) and resume.")


# The log


class StoreError(LedgergraphError):
    """The log could not do what it was asked."""


class WrongExpectedVersion(StoreError):
    def __init__(self, stream: str, expected: int, actual: int, why: str = "") -> None:
        self.stream, self.expected, self.actual = stream, expected, actual
        super().__init__(f"stream {stream!r} is at version {actual}, the append expected {expected}"
                         f"{': ' + why if why else ''}. Read what came in between, decide again, and append with version {actual}.")


class IdempotencyConflict(StoreError):
    def __init__(self, stream: str, key: str, recorded: str, offered: str) -> None:
        self.stream, self.key, self.recorded, self.offered = stream, key, recorded, offered
        super().__init__(f"key {key!r} of stream {stream!r} was used with other content (recorded {recorded[:16]}, offered "
                         f"{offered[:16]}). The first result stands; use a new key for new content.")


class StoreUnavailable(StoreError):
    """The database did not answer; nothing is known to be stored. Try again."""


class DamagedLog(StoreError):
    def __init__(self, stream: str, version: int, why: str, position: int | None = None) -> None:
        self.stream, self.version, self.position, self.why = stream, version, position, why
        at = f" (position {position})" if position is not None else ""
        super().__init__(f"the log is damaged at stream {stream!r} version {version}{at}: {why}. Do not write to it; restore "
                         "a backup and compare with `ledgergraph db verify`.")


class NewerLog(StoreError):
    def __init__(self, what: str, found: object, supported: object) -> None:
        self.what, self.found, self.supported = what, found, supported
        super().__init__(f"this log was written by a newer ledgergraph: {what} is {found}, this one reads up to {supported}. "
                         "Upgrade ledgergraph; nothing was changed.")


class NotALog(StoreError):
    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(f"{place} is no ledgergraph log: {why}. Nothing was changed; give the path of a log, or of a file that "
                         "does not exist yet.")


class OlderLog(StoreError):
    def __init__(self, place: str, found: str, needed: str) -> None:
        self.place, self.found, self.needed = place, found, needed
        super().__init__(f"the log {place} has the tables of revision {found or 'none'}, this ledgergraph needs {needed}. Back it "
                         "up (`ledgergraph db backup`), then run `ledgergraph db upgrade`; nothing was changed.")


class ForeignLog(StoreError):
    """The log is not the one that the reader's checkpoint was made on."""


class EventTooLarge(StoreError):
    def __init__(self, kind: str, size: int, limit: int) -> None:
        self.kind, self.size, self.limit = kind, size, limit
        super().__init__(f"an event {kind!r} of {size:,} bytes is over the limit of {limit:,}. Store large values as artifacts.")


# Runs


class RunError(LedgergraphError):
    """A run that cannot do what it was asked."""


class ThreadBusy(RunError):
    def __init__(self, thread: str, run: str, status: str, remedy: str) -> None:
        self.thread, self.run, self.status = thread, run, status
        super().__init__(f"thread {thread!r} is held by run {run}, which is {status}. {remedy}")


class RunNotFound(RunError):
    def __init__(self, what: str, remedy: str = "`ledgergraph runs` lists what there is.") -> None:
        self.what = what
        super().__init__(f"there is no {what} in this log. {remedy}")


class RunEnded(RunError):
    def __init__(self, run: str, status: str) -> None:
        self.run, self.status = run, status
        super().__init__(f"run {run} has ended ({status}), so that there is nothing to go on with. Start a new run in its "
                         "thread, or fork it at an earlier version.")


class GraphRecursionError(RunError, RecursionError):
    """A run reached a cap; it stopped resumable. Names the cycle's path and the counts."""


class RunFailed(RunError):
    """A node failed and the run stopped; the cause is the node's own error where it is known."""


class RunCancelled(RunError):
    """The run was cancelled."""


class BarrierStarved(RunError):
    def __init__(self, target: str, missing: Sequence[str]) -> None:
        self.target, self.missing = target, tuple(missing)
        super().__init__(f"the barrier before {target!r} waits for {', '.join(missing)}, which nothing can reach any more. "
                         "Let every source run, use single edges, or say add_edge([...], ..., on_missing='proceed').")


class NodeTimeoutError(RunError, TimeoutError):
    def __init__(self, node: str, timeout_s: float) -> None:
        self.node, self.timeout_s = node, timeout_s
        super().__init__(f"node {node!r} took longer than its timeout of {timeout_s:g} s. Its late result will be refused; "
                         "raise the timeout, or give it a retry policy.")


class QuestionError(RunError):
    """An answer that fits no open question."""


class EffectError(LedgergraphError):
    """Something went wrong with an effect."""


class EffectMismatch(EffectError):
    def __init__(self, effect: str, key: str, recorded: str, offered: str) -> None:
        self.effect, self.key, self.recorded, self.offered = effect, key, recorded, offered
        super().__init__(f"effect {effect!r} (key {key}) was recorded with request {recorded[:16]} and is now called with "
                         f"{offered[:16]}. A node must ask for the same thing when it runs again; give the second call a "
                         "name of its own.")


class ReplayDivergence(LedgergraphError):
    """A replay came to another result than the log."""
