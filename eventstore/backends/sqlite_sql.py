"""The statements of the SQLite backend: their texts never change, so that each is prepared once a connection."""
from __future__ import annotations

from ledgergraph.eventstore.tables import QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS, WORKER_COLUMNS


def _put(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _listing(table: str, columns: tuple[str, ...], order: str, *filters: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    """One text for each set of columns that is compared, so that each uses its index."""
    names = ", ".join(columns)
    return {f: f"SELECT {names} FROM {table}{' WHERE ' if f else ''}{' AND '.join(f'{c} = ?' for c in f)} ORDER BY {order} LIMIT ?"
            for f in filters}


# The append

LAST_POSITION = "SELECT ifnull(max(position), 0) FROM events"
STREAM_ID = "SELECT id FROM streams WHERE name = ?"
NEW_STREAM = "INSERT INTO streams (name, version, hash, recorded_at) VALUES (?, ?, ?, ?)"
MOVE_HEAD = "UPDATE streams SET version = ?, hash = ?, recorded_at = ? WHERE id = ? AND version = ? AND hash = ?"
"""The compare and the set: it moves a row, or the append conflicts."""
HEAD_BY_ID = "SELECT version, hash FROM streams WHERE id = ?"
KEEP_KEY = "INSERT OR IGNORE INTO keys (stream, key, digest, version) VALUES (?, ?, ?, ?)"
DROP_KEY = "DELETE FROM keys WHERE stream = ? AND key = ?"
BY_KEY = "SELECT digest, version FROM keys WHERE stream = ? AND key = ?"
NEW_EVENT = "INSERT INTO events (position, stream, version, type, recorded_at, key, hash, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
NEW_EVENTS = {n: NEW_EVENT + ", (?, ?, ?, ?, ?, ?, ?, ?)" * (n - 1) for n in (250, 25)}
"""Many at once: the driver gives up the interpreter's lock for every statement that it runs, and a busy thread is slow to return it."""

PUT_TASK = _put("tasks", TASK_COLUMNS)
PUT_RUN = _put("runs", RUN_COLUMNS)
PUT_QUESTION = _put("questions", QUESTION_COLUMNS)
DROP_TASK = "DELETE FROM tasks WHERE task = ?"
DROP_QUESTION = "DELETE FROM questions WHERE question = ?"

# Reading the log

HEAD = "SELECT version, hash, recorded_at FROM streams WHERE name = ?"
HEADS = "SELECT name, version, hash, recorded_at FROM streams WHERE name > ? ORDER BY name LIMIT ?"
READ_STREAM = ("SELECT position, ?1, version, type, recorded_at, key, hash, data FROM events WHERE stream = "
               "(SELECT id FROM streams WHERE name = ?1) AND version > ?2 AND version <= ?3 ORDER BY version LIMIT ?4")
READ_ALL = ("SELECT e.position, s.name, e.version, e.type, e.recorded_at, e.key, e.hash, e.data FROM events e "
            "JOIN streams s ON s.id = e.stream WHERE e.position > ? ORDER BY e.position LIMIT ?")

# Rows

TASKS = _listing("tasks", TASK_COLUMNS, "due_at, task", (), ("run",), ("state",), ("run", "state"))
RUNS = _listing("runs", RUN_COLUMNS, "started_at DESC, run DESC", (), ("thread",), ("status",), ("thread", "status"))
QUESTIONS = _listing("questions", QUESTION_COLUMNS, "asked_at, question", (), ("run",))
RUN = f"SELECT {', '.join(RUN_COLUMNS)} FROM runs WHERE run = ?"

# What lies beside the log

PUT_WORKER = _put("workers", WORKER_COLUMNS)
WORKER = f"SELECT {', '.join(WORKER_COLUMNS)} FROM workers WHERE worker = ?"
PUT_SNAPSHOT = _put("snapshots", ("stream", "version", "hash", "fingerprint", "data"))
DROP_SNAPSHOTS = "DELETE FROM snapshots WHERE stream = ? AND version < ?"
SNAPSHOT = ("SELECT stream, version, hash, fingerprint, data FROM snapshots WHERE stream = ? AND fingerprint = ? AND version <= ? "
            "ORDER BY version DESC LIMIT 1")
PUT_CHECKPOINT = _put("checkpoints", ("name", "position", "hash"))
CHECKPOINT = "SELECT position, hash FROM checkpoints WHERE name = ?"
PUT_ARTIFACT = "INSERT OR IGNORE INTO artifacts (digest, data) VALUES (?, ?)"
HAS_ARTIFACT = "SELECT 1 FROM artifacts WHERE digest = ?"
ARTIFACT = "SELECT data FROM artifacts WHERE digest = ?"
