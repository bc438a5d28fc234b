"""What is undone next is read by itself."""

from alembic import op

from engine.db.functions import install_functions

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("DROP INDEX ix_completed_execution_scope")
    cursor.execute("CREATE INDEX ix_completed_execution_scope ON completed_execution (scope_id, number) WHERE scope_id IS NOT NULL")
    install_functions(cursor)
