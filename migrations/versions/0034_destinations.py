"""Destinations of deliveries: what is signed, how many at a time, in which order.

`ix_delivery_due` stays: the release before acquires by it.
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE destination (
  id uuid NOT NULL,
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL,
  kind text NOT NULL,
  address text NOT NULL,
  concurrency integer,
  retry text,
  max_attempts integer NOT NULL DEFAULT 8,
  redirects smallint NOT NULL DEFAULT 0,
  seconds double precision,
  max_bytes integer,
  salts jsonb NOT NULL DEFAULT '[]',
  turns bigint NOT NULL DEFAULT 0,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  changed_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT baton_clock(),
  removed_at timestamptz,
  CONSTRAINT pk_destination PRIMARY KEY (id),
  CONSTRAINT ck_destination_kind CHECK (kind IN ('http', 'mail')),
  CONSTRAINT ck_destination_numbers
    CHECK (concurrency >= 1 AND max_attempts >= 1 AND redirects BETWEEN 0 AND 3 AND seconds > 0 AND max_bytes >= 1)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX uq_destination_name ON destination (tenant_id, name) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX uq_destination_address ON destination (tenant_id, address) WHERE removed_at IS NULL;
"""

COLUMNS = """
ALTER TABLE delivery ADD COLUMN route text NOT NULL DEFAULT '', ADD COLUMN line text,
  ADD COLUMN address text NOT NULL DEFAULT ''
"""

INDEXES = """
CREATE INDEX ix_delivery_route ON delivery (kind, route, level, available_at, id) WHERE status = 'available' AND held = '{}';
CREATE INDEX ix_delivery_sending ON delivery (route) WHERE status = 'leased' AND route <> '';
CREATE INDEX ix_delivery_waiting_in_line ON delivery (tenant_id, route, line, created_at, id)
  WHERE line IS NOT NULL AND ended_at IS NULL AND held @> '{ordered}';
CREATE UNIQUE INDEX uq_delivery_first_in_line ON delivery (tenant_id, route, line)
  WHERE line IS NOT NULL AND ended_at IS NULL AND NOT held @> '{ordered}';
"""


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(TABLE)
    cursor.execute(COLUMNS)
    cursor.execute(INDEXES)
