"""What an attempt reports while it runs: how far it is, and log lines. Kept for a month, beside the history."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE attempt_report (
  item_id uuid NOT NULL,
  lease_number bigint NOT NULL,
  tenant_id text NOT NULL DEFAULT '',
  progress real,
  doing text NOT NULL DEFAULT '',
  lines integer NOT NULL DEFAULT 0,
  reported_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT pk_attempt_report PRIMARY KEY (item_id, lease_number),
  CONSTRAINT ck_attempt_report_progress CHECK (progress BETWEEN 0 AND 1)
);
CREATE INDEX ix_attempt_report_at ON attempt_report (reported_at);
CREATE TABLE attempt_line (
  id bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id text NOT NULL DEFAULT '',
  item_id uuid NOT NULL,
  lease_number bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT baton_clock(),
  level text NOT NULL DEFAULT 'info',
  text text NOT NULL,
  CONSTRAINT pk_attempt_line PRIMARY KEY (id),
  CONSTRAINT ck_attempt_line_level CHECK (level IN ('debug', 'info', 'warning', 'error'))
);
CREATE INDEX ix_attempt_line_item ON attempt_line (item_id, lease_number, id);
CREATE INDEX ix_attempt_line_at ON attempt_line (at);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLES)
