"""Alembic runs this file; the connection, and the transaction that it is in, come from `run_migrations`."""
from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection)
with context.begin_transaction():
    context.run_migrations()
