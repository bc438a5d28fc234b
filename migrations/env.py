"""Alembic's environment: online only, one connection, lock and statement timeouts set before anything runs."""

from alembic import context
from sqlalchemy import text

from engine.db.models import Base
from engine.db.session import make_engine

LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "15min"


def run() -> None:
    connection = context.config.attributes.get("connection")
    if connection is not None:
        migrate(connection)
        return
    with make_engine(context.config.get_main_option("sqlalchemy.url")).connect() as own:
        migrate(own)


def migrate(connection) -> None:
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


run()
