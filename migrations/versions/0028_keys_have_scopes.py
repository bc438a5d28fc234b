"""API keys have scopes and an ending by which a leaked one is known; service accounts; records say by which program they came."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

# Columns are added empty first: what stands there already did not come by this migration's session.
CHANGES = """
ALTER TABLE person ADD COLUMN kind text NOT NULL DEFAULT 'person' CONSTRAINT ck_person_kind CHECK (kind IN ('person', 'service'));
ALTER TABLE person ADD CONSTRAINT ck_person_service_has_no_password CHECK (kind <> 'service' OR password_hash IS NULL);
ALTER TABLE api_key
  ADD COLUMN scopes text[] CONSTRAINT ck_api_key_scopes CHECK (cardinality(scopes) > 0
    AND scopes <@ ARRAY['read', 'tasks', 'start', 'messages', 'external_tasks', 'deploy', 'operate', 'administer']),
  ADD COLUMN ending text,
  ADD COLUMN made_by text,
  ADD COLUMN revoked_by text,
  ADD COLUMN last_used_from text;
ALTER TABLE audit ADD COLUMN via text NOT NULL DEFAULT '';
ALTER TABLE audit ALTER COLUMN via SET DEFAULT current_setting('application_name');
ALTER TABLE history ADD COLUMN via text NOT NULL DEFAULT '';
ALTER TABLE history ALTER COLUMN via SET DEFAULT current_setting('application_name');
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(CHANGES)
