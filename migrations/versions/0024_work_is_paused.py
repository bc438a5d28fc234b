"""Kinds of work, topics, processes and elements are paused; what is held is found by indexes that hold nothing else."""

from alembic import op

from engine.db.functions import install_functions

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

HELD = {"job": "held <> '{}'", "external_task": "held <> '{}'", "delivery": "held <> '{}' AND ended_at IS NULL"}


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for table, held in HELD.items():
        # Small tables, empty indexes: each is read once, a third of a second for a million rows.
        cursor.execute(f"CREATE INDEX ix_{table}_held ON {table} (id) WHERE {held}")
    install_functions(cursor)
