"""PostgreSQL's errors as ours: by SQLSTATE (documentation, appendix A), naming the database, never a password."""
from __future__ import annotations

import psycopg

from ledgergraph.schemas.errors import InvalidInput, StoreError, StoreUnavailable

LOCK_TIMEOUT_S = 30
"""How long a statement waits for what another session holds."""
_REMEDIES = {
    "53100": "its disk is full; nothing was stored. Free some space and try again.",
    "53300": "it has no connection left; nothing was stored. Close some, or raise max_connections.",
    "55P03": f"another session has kept locked what this statement needs for {LOCK_TIMEOUT_S} s; nothing was stored. See "
             "pg_stat_activity for who it is (state 'idle in transaction'), and try again.",
    "40P01": "two sessions waited for each other and this one was chosen to give way; nothing was stored. Try again.",
    "57014": "the statement was cancelled; nothing was stored. Try again.",
    "25006": "it takes no writes (a standby, or default_transaction_read_only is on). Name the primary.",
    "42501": "this user may not do that. Give it the rights, or name another user: {}",
    "42P01": "a table of the log is missing. Do not write to it; restore a backup: {}",
    "42883": "the log's functions are missing. Run `ledgergraph db upgrade`: {}",
}
_SILENT = ("08", "57P")
"""Beginnings of what says that the connection or the server is gone."""


def failure(place: str, sqlstate: str | None, message: str) -> Exception:
    """The error to raise for what the server said at `place` (a URL without password)."""
    message = message.strip()
    remedy = _REMEDIES.get(sqlstate or "")
    if remedy is not None:
        return StoreUnavailable(f"the database {place}: {remedy.format(message)}")
    if sqlstate is None or sqlstate.startswith(_SILENT):
        return unreachable(place, message)
    if sqlstate in ("22021", "22P05"):
        return InvalidInput(f"a text holds a character that PostgreSQL cannot store ({message}); nothing was stored. Leave it out.")
    if sqlstate.startswith("XX"):
        return StoreError(f"the database {place} is damaged or has a fault ({message}). Do not write to it; see the server's log.")
    return StoreError(f"the database {place} refused a statement ({sqlstate}): {message}. Nothing was stored.")


def unreachable(place: str, message: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database {place} does not answer ({' '.join(message.split())}). See that the server runs and that "
                            "host, port, database, user and password are right; then try again.")


def closed(place: str) -> StoreUnavailable:
    return StoreUnavailable(f"the log {place} was closed. Open it again with open_store(url).")


def translated(error: psycopg.Error, place: str) -> Exception:
    return failure(place, error.sqlstate, str(error))


def is_silence(error: Exception) -> bool:
    """Whether the connection is gone, so that another one may work."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        error.sqlstate is None or error.sqlstate.startswith(_SILENT))
