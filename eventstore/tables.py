"""The tables of the log. Names are for ever: a stored log of every release must open.

Event rows are written once and never updated. On SQLite the writer gives the position in the append (`events.position`
is the rowid); on PostgreSQL the sequencer gives it later, in `positions`.
"""
from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

LOG_FORMAT = 1
"""What `log.format` says: the newest layout that this code reads. Raised only where older code must not open the log."""
REVISIONS = ("0001",)
"""The migrations in migrations/versions, oldest first."""
REVISION = REVISIONS[-1]

metadata = MetaData()
"""Tables that both databases have."""
sqlite_metadata = MetaData()
"""SQLite's own `events`: the dense position is its rowid."""
postgres_metadata = MetaData()
"""PostgreSQL's own tables: events without position, and the sequencer's."""

ID = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit whole number; SQLite gives rowids only to a column declared INTEGER."""
TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Compared by its bytes on both databases: names have one order, and an index does not depend on the system's locales."""

log = Table(
    "log", metadata,
    Column("incarnation", String(32), primary_key=True),
    Column("format", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

streams = Table(
    "streams", metadata,
    Column("id", ID, primary_key=True),
    Column("name", TEXT, nullable=False, unique=True),
    Column("version", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    postgresql_with={"fillfactor": 70},
)
"""The end of each stream's chain: what an append compares and moves."""

keys = Table(
    "keys", metadata,
    Column("stream", BigInteger, primary_key=True, autoincrement=False),
    Column("key", TEXT, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Idempotency keys: what was stored under each, and the version after it."""

tasks = Table(
    "tasks", metadata,
    Column("task", TEXT, primary_key=True),
    Column("run", TEXT, nullable=False),
    Column("stream", TEXT, nullable=False),
    Column("node", TEXT, nullable=False),
    Column("queue", TEXT, nullable=False),
    Column("state", TEXT, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", TEXT, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("graph", TEXT, nullable=False),
    Index("tasks_run", "run"),
    sqlite_with_rowid=False,
)

runs = Table(
    "runs", metadata,
    Column("run", TEXT, primary_key=True),
    Column("stream", TEXT, nullable=False),
    Column("thread", TEXT, nullable=False),
    Column("graph", TEXT, nullable=False),
    Column("fingerprint", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("runs_thread", "thread", "started_at"),
    Index("runs_started", "started_at"),
    sqlite_with_rowid=False,
)

questions = Table(
    "questions", metadata,
    Column("question", TEXT, primary_key=True),
    Column("run", TEXT, nullable=False),
    Column("stream", TEXT, nullable=False),
    Column("task", TEXT, nullable=False),
    Column("node", TEXT, nullable=False),
    Column("kind", TEXT, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("questions_run", "run"),
    sqlite_with_rowid=False,
)

workers = Table(
    "workers", metadata,
    Column("worker", TEXT, primary_key=True),
    Column("host", TEXT, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("born", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

snapshots = Table(
    "snapshots", metadata,
    Column("stream", TEXT, primary_key=True),
    Column("fingerprint", TEXT, primary_key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

checkpoints = Table(
    "checkpoints", metadata,
    Column("name", TEXT, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

artifacts = Table(
    "artifacts", metadata,
    Column("digest", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)


sqlite_events = Table(
    "events", sqlite_metadata,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("stream", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("recorded_at", Integer, nullable=False),
    Column("key", TEXT, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("stream", "version", name="events_stream_version"),
)

postgres_events = Table(
    "events", postgres_metadata,
    Column("stream", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("key", TEXT, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Whole numbers first: PostgreSQL pads between columns of other sizes."""

positions = Table(
    "positions", postgres_metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", BigInteger, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    UniqueConstraint("stream", "last", name="positions_stream_last"),
)
"""Given by the sequencer, in the order in which it found the appends committed: one row an append. `position` is that of
version `last` of the stream; the versions from `first` on stand before it without a gap."""

pending = Table(
    "pending", postgres_metadata,
    Column("id", BigInteger, primary_key=True),
    Column("stream", BigInteger, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    postgresql_with={"autovacuum_vacuum_scale_factor": 0.0, "autovacuum_vacuum_threshold": 2_000},
)
"""The outbox: committed appends that have no position yet; the sequencer takes its rows out. An id is drawn under the lock of
the stream's head, after all that led to the append was committed: what comes later in a stream, or because of it, has a higher one."""

fences = Table(
    "fences", postgres_metadata,
    Column("name", TEXT, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", TEXT, nullable=False),
    Column("until", BigInteger, nullable=False),
)
"""Who may sequence. Every write of a holder compares its epoch, so that one that was replaced can write nothing. The row
`sequencer` is locked by each statement that gives positions: one at a time."""

alembic_version = Table(
    "alembic_version", metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table: the revision that the tables have."""

TASK_COLUMNS = tuple(c.name for c in tasks.columns)
RUN_COLUMNS = tuple(c.name for c in runs.columns)
QUESTION_COLUMNS = tuple(c.name for c in questions.columns)
WORKER_COLUMNS = tuple(c.name for c in workers.columns)
"""In the order of the row types of `store.py`; a test compares them."""

# No foreign keys: the writer makes a stream and its events in one transaction, and `verify` compares them.
