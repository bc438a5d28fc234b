"""External tasks keep the detail of their last failure, and whether somebody set their retries; who works on them is seen by address."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE external_task ADD COLUMN error_detail text;
ALTER TABLE external_task ADD COLUMN retries_set boolean NOT NULL DEFAULT false;
CREATE TABLE external_worker (
  tenant_id text NOT NULL DEFAULT '',
  worker_id text NOT NULL,
  address text NOT NULL,
  first_seen_at timestamptz NOT NULL DEFAULT baton_clock(),
  last_seen_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT pk_external_worker PRIMARY KEY (tenant_id, worker_id, address)
);
CREATE INDEX ix_external_worker_seen ON external_worker (last_seen_at);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLES)
