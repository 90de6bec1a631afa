"""How commands speak: tables for people, JSON for programs, errors that teach, and exit codes."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar, cast

import click
import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ledgergraph.schemas import codec
from ledgergraph.schemas.errors import (
    DamagedLog,
    FingerprintMismatch,
    ForeignLog,
    GraphRecursionError,
    LedgergraphError,
    NewerLog,
    ReplayDivergence,
    RunFailed,
    ThreadBusy,
)

OK, FAILED, USAGE, WAITING, REJECTED, STOPPED, BUSY, DAMAGED = 0, 1, 2, 3, 4, 5, 6, 7
EXIT_CODES = {
    OK: "done",
    FAILED: "it could not be done; the message says why",
    USAGE: "the command was not understood",
    WAITING: "the run waits for a person",
    REJECTED: "the run ended as rejected",
    STOPPED: "the run failed, was capped or cancelled; it can be resumed unless it was cancelled",
    BUSY: "another run holds the thread",
    DAMAGED: "the log is damaged, foreign or newer, or a replay came to another result",
}

F = TypeVar("F", bound=Callable[..., Any])
WIDE = 160
"""Columns where nobody's terminal says otherwise: a file or a pipe."""
console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
IDS = ("run", "task", "question", "version", "recorded", "started", "changed", "asked", "type")
"""Columns that are never folded: people copy from them."""


def json_option(f: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(f)


def log_option(f: F) -> F:
    return click.option("--log", default=None, metavar="URL", help="The log: sqlite:///file, postgresql+psycopg://…, or a path. "
                        "Default: $LEDGERGRAPH_LOG, else ledgergraph.db here.")(f)


def put_json(value: Any) -> None:
    """Any storable value as JSON; what JSON has not is written as the log writes it."""
    sys.stdout.write(orjson.dumps(orjson.loads(codec.encode(plain(value))), option=orjson.OPT_INDENT_2).decode() + "\n")


def plain(value: Any) -> Any:
    """Mappings, sequences and objects as what JSON has, Decimals, times and the like as texts."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return [plain(v) for v in cast(Iterable[Any], value)]
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 64 else f"{len(value):,} bytes, sha256 {codec.digest_of(value)[:16]}"
    if hasattr(value, "__dataclass_fields__"):
        return {k: plain(getattr(value, k)) for k in value.__dataclass_fields__}
    return str(value)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if title:
        console.print(title, style="italic", markup=False, soft_wrap=True)
    t = Table(header_style="bold", box=None, pad_edge=False, show_header=any(columns))
    for c in columns:
        t.add_column(c, overflow="fold", no_wrap=c in IDS)
    for row in rows:
        t.add_row(*(Text(x if isinstance(x, str) else str(x)) for x in row))
    console.print(t)


def when(at: int) -> str:
    """Microseconds since 1970 as a time in UTC, to the second."""
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at):%Y-%m-%d %H:%M:%S}Z"


def exit_code(error: LedgergraphError) -> int:
    if isinstance(error, ThreadBusy):
        return BUSY
    if isinstance(error, DamagedLog | ForeignLog | NewerLog | ReplayDivergence | FingerprintMismatch):
        return DAMAGED
    if isinstance(error, GraphRecursionError | RunFailed):
        return STOPPED
    return FAILED


def fail(error: Exception, as_json: bool, code: int) -> NoReturn:
    message = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if as_json:
        put_json({"error": type(error).__name__, "message": message, "exit": code})
    else:
        Console(stderr=True, highlight=False).print(f"[bold red]{type(error).__name__}[/]: {escape(message)}", soft_wrap=True)
    sys.exit(code)


def teaches(f: Callable[..., Any]) -> Callable[..., Any]:
    """The command with our errors shown as messages instead of tracebacks."""
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except LedgergraphError as e:
            fail(e, bool(kwargs.get("as_json")), exit_code(e))
    return run
