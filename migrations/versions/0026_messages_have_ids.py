"""The ids of messages that were sent: the same one twice has one effect."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE message_receipt (
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL,
  message_id text NOT NULL,
  correlation_key text NOT NULL DEFAULT '',
  outcome jsonb NOT NULL,
  published_at timestamptz NOT NULL DEFAULT baton_clock(),
  kept_until timestamptz NOT NULL,
  CONSTRAINT pk_message_receipt PRIMARY KEY (tenant_id, name, message_id)
);
CREATE INDEX ix_message_receipt_kept ON message_receipt (kept_until);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLE)
