"""Versions are deleted: two functions that decide which version of a key is the newest."""

from alembic import op

from engine.db.functions import install_functions

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    install_functions(op.get_bind().connection.cursor())
