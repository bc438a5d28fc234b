"""Forms are deployed and versioned beside processes."""

from alembic import op

from engine.db.functions import install_functions

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE form_definition (
  id uuid CONSTRAINT pk_form_definition PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  key text NOT NULL,
  version integer NOT NULL,
  version_tag text,
  deployment_id uuid NOT NULL CONSTRAINT fk_form_definition_deployment REFERENCES deployment,
  resource_name text NOT NULL,
  content_hash bytea NOT NULL,
  content bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT baton_clock(),
  CONSTRAINT uq_form_definition_version UNIQUE (tenant_id, key, version)
);
CREATE INDEX ix_form_definition_deployment ON form_definition (deployment_id);
CREATE INDEX ix_form_definition_file ON form_definition (tenant_id, resource_name, created_at);
"""


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(TABLE)
    install_functions(cursor)
