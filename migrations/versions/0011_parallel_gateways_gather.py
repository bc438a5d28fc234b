"""Parallel event-based gateways: two functions by which all messages of a key come to one instance."""

from alembic import op

from engine.db.functions import install_functions

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    install_functions(op.get_bind().connection.cursor())
