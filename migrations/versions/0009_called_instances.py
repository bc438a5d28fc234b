"""Called instances: the running ones of a case are found without those that have ended."""

from alembic import op

from engine.db.functions import install_functions

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    where = "status = 'running' AND parent_id IS NOT NULL"
    cursor.execute(f"CREATE INDEX ix_process_instance_called ON process_instance (root_id) WHERE {where}")
    install_functions(cursor)
