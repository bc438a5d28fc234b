"""Large variables stay where they are until they are needed: the reads of a case get an argument."""

from alembic import op

from engine.db.functions import install_functions

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    # With a default for the new argument, older replicas go on calling them with three.
    cursor.execute("DROP FUNCTION IF EXISTS baton_read_case(text, uuid, boolean)")
    cursor.execute("DROP FUNCTION IF EXISTS baton_lock_case(text, uuid, boolean)")
    install_functions(cursor)
