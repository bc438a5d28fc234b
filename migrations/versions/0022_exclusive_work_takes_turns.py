"""Exclusive work of a case takes turns.

The indexes have nothing in them yet; building them reads both tables once, and keeps writers out meanwhile.
"""

from alembic import op

from engine.db.functions import install_functions

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TABLES = ("job", "external_task")


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE process_instance ADD COLUMN takes_turns boolean NOT NULL DEFAULT false")
    for table in TABLES:
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN exclusive boolean NOT NULL DEFAULT false")
    for table in TABLES:
        cursor.execute(
            f"CREATE UNIQUE INDEX uq_{table}_turn ON {table} (root_id)"
            " WHERE exclusive AND status <> 'failed' AND NOT held @> '{exclusive}'"
        )
        cursor.execute(
            f"CREATE INDEX ix_{table}_waiting_turn ON {table} (root_id, (held <> '{{exclusive}}'::text[]), created_at, id)"
            " WHERE exclusive AND held @> '{exclusive}'"
        )
    install_functions(cursor)
