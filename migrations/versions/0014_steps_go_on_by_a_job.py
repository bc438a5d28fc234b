"""A job goes on at a token that owns no scope: asynchronous elements. The read of a case knows that one."""

from alembic import op

from engine.db.functions import install_functions

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    install_functions(op.get_bind().connection.cursor())
