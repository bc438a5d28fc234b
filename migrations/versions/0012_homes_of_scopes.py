"""Scopes of other instances say so beside the scopes: a replica of before reads these as ever."""

from alembic import op

from engine.db.functions import install_functions

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    install_functions(op.get_bind().connection.cursor())
