"""Decisions are deployed and versioned beside processes."""

from alembic import op

from engine.db.functions import install_functions

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE decision_definition (
  id uuid CONSTRAINT pk_decision_definition PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  key text NOT NULL,
  version integer NOT NULL,
  version_tag text,
  name text NOT NULL DEFAULT '',
  sort_key text NOT NULL DEFAULT '',
  deployment_id uuid NOT NULL CONSTRAINT fk_decision_definition_deployment REFERENCES deployment,
  resource_name text NOT NULL,
  content_hash bytea NOT NULL,
  xml bytea NOT NULL,
  documentation text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT uq_decision_definition_version UNIQUE (tenant_id, key, version)
);
CREATE INDEX ix_decision_definition_deployment ON decision_definition (deployment_id);
CREATE INDEX ix_history_decision ON history (item_id, id) WHERE kind = 'decision_evaluated'; -- the latest evaluations of a version
"""


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(TABLE)
    install_functions(cursor)
