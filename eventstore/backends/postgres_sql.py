"""The statements of the PostgreSQL backend; its functions are in sql/, one a file."""
from __future__ import annotations

from functools import cache
from importlib.resources import files

from ledgergraph.eventstore.tables import QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS, WORKER_COLUMNS

FUNCTIONS = ("append_events", "sequence_events")


@cache
def functions() -> str:
    """The text that makes the log's functions, or makes them anew."""
    folder = files("ledgergraph.eventstore.backends") / "sql"
    return "\n".join((folder / f"{name}.sql").read_text(encoding="utf-8") for name in FUNCTIONS)


def _put(table: str, columns: tuple[str, ...], key: tuple[str, ...]) -> str:
    others = [c for c in columns if c not in key]
    return (f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))}) "
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in others)}")


def _listing(table: str, columns: tuple[str, ...], order: str, *filters: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    """One text for each set of columns that is compared, so that each uses its index."""
    names = ", ".join(columns)
    return {f: f"SELECT {names} FROM {table}{' WHERE ' if f else ''}{' AND '.join(f'{c} = %s' for c in f)} ORDER BY {order} "
               "LIMIT %s::int8" for f in filters}


# Opening

OPENED = "SELECT incarnation, format, (SELECT version_num FROM alembic_version) FROM log"
INCARNATION = "SELECT incarnation FROM log"
RELATIONS = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') LIMIT 1"""
"""Tables and views of the schema, but for those of extensions."""
LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(7091427348191026)"
"""Held while tables are made or changed; the number is ours, drawn at random."""
NEW_LOG = "INSERT INTO log (incarnation, format, created_at) VALUES (%s, %s, %s)"
NEW_REVISION = "INSERT INTO alembic_version (version_num) VALUES (%s)"
NEW_FENCE = "INSERT INTO fences (name, epoch, holder, until) VALUES ('sequencer', 0, '', 0)"
ENCODING = "SELECT current_setting('server_encoding')"
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8"
ROW_TYPES = """
    SELECT t.typname::text, t.oid::int8, t.typarray::int8, array_agg(a.atttypid::int8 ORDER BY a.attnum)
    FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0
    WHERE t.typrelid IN ('tasks'::regclass, 'runs'::regclass, 'questions'::regclass) GROUP BY t.oid"""

# Reading the log

HEAD = "SELECT version, hash, recorded_at FROM streams WHERE name = %s"
HEADS = "SELECT name, version, hash, recorded_at FROM streams WHERE name > %s ORDER BY name LIMIT %s::int8"
READ_STREAM = """
    SELECT (SELECT p.position - p.last + e.version FROM positions p WHERE p.stream = e.stream AND p.last >= e.version
            ORDER BY p.last LIMIT 1), %s::text, e.version, e.type, e.recorded_at, e.key, e.hash, e.data
    FROM events e WHERE e.stream = (SELECT id FROM streams WHERE name = %s) AND e.version > %s::int8 AND e.version <= %s::int8
    ORDER BY e.version LIMIT %s::int8"""
READ_ALL = """
    SELECT p.position - p.last + e.version AS at, (SELECT name FROM streams WHERE id = p.stream),
        e.version, e.type, e.recorded_at, e.key, e.hash, e.data
    FROM (SELECT * FROM positions WHERE position > %s::int8 ORDER BY position LIMIT %s::int8) p
    CROSS JOIN LATERAL (
        SELECT * FROM events WHERE stream = p.stream AND version BETWEEN p.first AND p.last ORDER BY version) e
    WHERE p.position - p.last + e.version > %s::int8 ORDER BY at LIMIT %s::int8"""
"""A row of `positions` stands for one event or more: as many rows as events are asked for are enough. The inner ORDER BY keeps
the planner from reading events in any other way than range by range."""
SEQUENCE = "SELECT numbered, last_position FROM sequence_events(%s::int4)"
IS_STORED = """
    SELECT 1 FROM streams s JOIN events e ON e.stream = s.id WHERE s.name = %s AND e.version = %s::int8 AND e.hash = %s"""

# Rows

TASKS = _listing("tasks", TASK_COLUMNS, "due_at, task", (), ("run",), ("state",), ("run", "state"))
RUNS = _listing("runs", RUN_COLUMNS, "started_at DESC, run DESC", (), ("thread",), ("status",), ("thread", "status"))
QUESTIONS = _listing("questions", QUESTION_COLUMNS, "asked_at, question", (), ("run",))
RUN = f"SELECT {', '.join(RUN_COLUMNS)} FROM runs WHERE run = %s"
PUT_TASK = _put("tasks", TASK_COLUMNS, ("task",))
PUT_RUN = _put("runs", RUN_COLUMNS, ("run",))
PUT_QUESTION = _put("questions", QUESTION_COLUMNS, ("question",))

# What lies beside the log

PUT_WORKER = _put("workers", WORKER_COLUMNS, ("worker",))
WORKER = f"SELECT {', '.join(WORKER_COLUMNS)} FROM workers WHERE worker = %s"
PUT_SNAPSHOT = _put("snapshots", ("stream", "version", "hash", "fingerprint", "data"), ("stream", "fingerprint", "version"))
DROP_SNAPSHOTS = "DELETE FROM snapshots WHERE stream = %s AND version < %s"
SNAPSHOT = ("SELECT stream, version, hash, fingerprint, data FROM snapshots WHERE stream = %s AND fingerprint = %s "
            "AND version <= %s::int8 ORDER BY version DESC LIMIT 1")
PUT_CHECKPOINT = _put("checkpoints", ("name", "position", "hash"), ("name",))
CHECKPOINT = "SELECT position, hash FROM checkpoints WHERE name = %s"
PUT_ARTIFACT = "INSERT INTO artifacts (digest, data) VALUES (%s, %s) ON CONFLICT (digest) DO NOTHING"
HAS_ARTIFACT = "SELECT 1 FROM artifacts WHERE digest = %s"
ARTIFACT = "SELECT data FROM artifacts WHERE digest = %s"
