"""How many requests a program made in a minute. Unlogged: what a crash forgets is a minute's count."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

TABLES = """
CREATE UNLOGGED TABLE request_count (
  who text NOT NULL,
  minute bigint NOT NULL,
  requests bigint NOT NULL,
  CONSTRAINT pk_request_count PRIMARY KEY (who, minute)
);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLES)
