"""Versions are suspended, with their cases or without; what starts instances is found by its version."""

from alembic import op

from engine.db.functions import install_functions

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    # Few rows: start timers, and what is on its way to start events. Jobs of cases are not in it.
    cursor.execute("CREATE INDEX ix_job_starting ON job (definition_id) WHERE instance_id IS NULL")
    install_functions(cursor)
