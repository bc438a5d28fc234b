"""Feeds: process events that are sent to a destination as they happen, and how far each has come."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE event_feed (
  id uuid NOT NULL,
  tenant_id text NOT NULL DEFAULT '',
  name text NOT NULL,
  destination_id uuid NOT NULL,
  kinds text[] NOT NULL DEFAULT '{}',
  definition_key text NOT NULL DEFAULT '',
  xid xid8 NOT NULL,
  event_id bigint NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT pk_event_feed PRIMARY KEY (id),
  CONSTRAINT fk_event_feed_destination FOREIGN KEY (destination_id) REFERENCES destination (id)
);
CREATE UNIQUE INDEX uq_event_feed_name ON event_feed (tenant_id, name);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(TABLE)
