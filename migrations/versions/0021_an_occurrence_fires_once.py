"""An occurrence of a schedule is a row once it has fired: it cannot fire twice, and says how many were missed."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

# No foreign keys: it outlives its case, and upkeep removes it.
TABLE = """
CREATE TABLE timer_firing (
  tenant_id text NOT NULL DEFAULT '',
  schedule_id uuid NOT NULL,
  due_at timestamptz NOT NULL,
  fired_at timestamptz NOT NULL DEFAULT baton_clock(),
  instance_id uuid NOT NULL,
  missed integer NOT NULL DEFAULT 0,
  CONSTRAINT pk_timer_firing PRIMARY KEY (tenant_id, schedule_id, due_at)
);
CREATE INDEX ix_timer_firing_fired ON timer_firing (fired_at);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLE)
