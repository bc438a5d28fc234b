"""Alembic's environment: online only, one connection, lock and statement timeouts in each transaction."""

from alembic import context
from sqlalchemy import text

from engine.db.functions import create_functions
from engine.db.migrate import limit
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
    limit(connection, lock_timeout=LOCK_TIMEOUT, statement_timeout=STATEMENT_TIMEOUT)
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.execute(text("SELECT 1"))  # begins a transaction
    create_functions(connection.connection.cursor())
    connection.commit()


run()
