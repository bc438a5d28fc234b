"""Looped activities go on in steps: jobs of kind `continue`."""

from alembic import op

from engine.db.functions import install_functions

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    kinds = "'service', 'timer', 'start_timer', 'message', 'cancel', 'continue'"
    cursor.execute(f"ALTER TABLE job DROP CONSTRAINT ck_job_kind, ADD CONSTRAINT ck_job_kind CHECK (kind IN ({kinds})) NOT VALID")
    cursor.execute("ALTER TABLE job VALIDATE CONSTRAINT ck_job_kind")
    install_functions(cursor)
