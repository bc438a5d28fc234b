"""What expired unused is seen for a day: name, key and times, without its content."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE message_expired (
  id uuid NOT NULL,
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL,
  correlation_key text NOT NULL DEFAULT '',
  published_by text NOT NULL,
  published_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT pk_message_expired PRIMARY KEY (id)
);
CREATE INDEX ix_message_expired_at ON message_expired (expires_at);
CREATE INDEX ix_message_expired_key ON message_expired (tenant_id, name, correlation_key, expires_at);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLE)
