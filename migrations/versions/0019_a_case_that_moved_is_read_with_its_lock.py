"""A command whose case moved between its look and its lock reads all that it may need with the lock."""

from alembic import op

from engine.db.functions import install_functions

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    install_functions(op.get_bind().connection.cursor())
