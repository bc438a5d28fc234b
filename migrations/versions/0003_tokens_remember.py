"""Tokens remember what their conditional events were last, true or false."""

from alembic import op

from engine.db.functions import install_functions

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE token ADD COLUMN memory jsonb")
    install_functions(cursor)
