"""The first tables. Written out, so that later changes of `tables.py` do not change what this revision makes."""
from __future__ import annotations

import time
import uuid
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_Type = sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]]
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    _create_log()
    _create_rows()
    _create_caches()
    if op.get_bind().dialect.name == "sqlite":
        _create_sqlite()
    else:
        _create_postgres()


def _column(name: str, type_: _Type) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=False)


def _key(name: str, type_: _Type) -> sa.Column[Any]:
    return sa.Column(name, type_, primary_key=True, autoincrement=False)


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [_column(name, _TEXT) for name in names]


def _numbers(*names: str) -> list[sa.Column[Any]]:
    return [_column(name, sa.BigInteger) for name in names]


def _create_log() -> None:
    log = op.create_table("log", _key("incarnation", sa.String(32)), _column("format", sa.Integer), *_numbers("created_at"))
    op.bulk_insert(log, [{"incarnation": uuid.uuid4().hex, "format": 1, "created_at": time.time_ns() // 1_000}])
    op.create_table("streams", sa.Column("id", _ID, primary_key=True), sa.Column("name", _TEXT, nullable=False, unique=True),
                    *_numbers("version"), _column("hash", sa.LargeBinary), *_numbers("recorded_at"), postgresql_with={"fillfactor": 70})
    op.create_table("keys", _key("stream", sa.BigInteger), _key("key", _TEXT), _column("digest", sa.LargeBinary),
                    *_numbers("version"), sqlite_with_rowid=False)


def _create_rows() -> None:
    op.create_table("tasks", _key("task", _TEXT), *_texts("run", "stream", "node", "queue", "state"),
                    _column("attempt", sa.Integer), *_texts("worker"), *_numbers("due_at"), *_texts("graph"),
                    sqlite_with_rowid=False)
    op.create_index("tasks_run", "tasks", ["run"])
    op.create_table("runs", _key("run", _TEXT), *_texts("stream", "thread", "graph", "fingerprint", "status"),
                    *_numbers("started_at", "changed_at", "version"), sqlite_with_rowid=False)
    op.create_index("runs_thread", "runs", ["thread", "started_at"])
    op.create_index("runs_started", "runs", ["started_at"])
    op.create_table("questions", _key("question", _TEXT), *_texts("run", "stream", "task", "node", "kind"),
                    *_numbers("asked_at", "version"), sqlite_with_rowid=False)
    op.create_index("questions_run", "questions", ["run"])
    op.create_table("workers", _key("worker", _TEXT), *_texts("host"), *_numbers("pid", "born", "until"),
                    sqlite_with_rowid=False)


def _create_caches() -> None:
    op.create_table("snapshots", _key("stream", _TEXT), _key("fingerprint", _TEXT), _key("version", sa.BigInteger),
                    _column("hash", sa.LargeBinary), _column("data", sa.LargeBinary))
    op.create_table("checkpoints", _key("name", _TEXT), *_numbers("position"), _column("hash", sa.LargeBinary),
                    sqlite_with_rowid=False)
    op.create_table("artifacts", _key("digest", sa.String(64)), _column("data", sa.LargeBinary))


def _create_sqlite() -> None:
    op.create_table("events", _key("position", sa.Integer), _column("stream", sa.Integer), _column("version", sa.Integer),
                    *_texts("type"), _column("recorded_at", sa.Integer), *_texts("key"),
                    _column("hash", sa.LargeBinary), _column("data", sa.LargeBinary),
                    sa.UniqueConstraint("stream", "version", name="events_stream_version"))


def _create_postgres() -> None:
    op.create_table("events", _key("stream", sa.BigInteger), _key("version", sa.BigInteger), *_numbers("recorded_at"),
                    *_texts("type", "key"), _column("hash", sa.LargeBinary), _column("data", sa.LargeBinary))
    op.create_table("positions", _key("position", sa.BigInteger), *_numbers("stream", "first", "last"),
                    sa.UniqueConstraint("stream", "last", name="positions_stream_last"))
    op.create_table("pending", sa.Column("id", sa.BigInteger, primary_key=True), *_numbers("stream", "first", "last"),
                    postgresql_with={"autovacuum_vacuum_scale_factor": 0.0, "autovacuum_vacuum_threshold": 2_000})
    fences = op.create_table("fences", _key("name", _TEXT), *_numbers("epoch"), *_texts("holder"), *_numbers("until"))
    op.bulk_insert(fences, [{"name": "sequencer", "epoch": 0, "holder": "", "until": 0}])
