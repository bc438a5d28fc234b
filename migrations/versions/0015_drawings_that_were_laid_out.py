"""Drawings of models without one: laid out when a page first shows them, and kept."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE drawing (
  definition_id uuid CONSTRAINT pk_drawing PRIMARY KEY,
  xml bytea,
  note text NOT NULL DEFAULT '',
  made_at timestamptz NOT NULL DEFAULT baton_clock()
)
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLE)
