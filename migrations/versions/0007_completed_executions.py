"""Completed executions are kept where they can be compensated."""

from alembic import op

from engine.db.functions import install_functions

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE completed_execution (
  id uuid CONSTRAINT pk_completed_execution PRIMARY KEY,
  instance_id uuid NOT NULL CONSTRAINT fk_completed_execution_instance REFERENCES process_instance ON DELETE CASCADE,
  scope_id uuid, -- no foreign key: every scope that ends, in every process, would pay for it
  within_id uuid CONSTRAINT fk_completed_execution_within REFERENCES completed_execution ON DELETE CASCADE,
  element_id text NOT NULL,
  number bigint NOT NULL,
  completed_at timestamptz NOT NULL DEFAULT baton_clock(),
  variables jsonb NOT NULL DEFAULT '{}',
  CONSTRAINT ck_completed_execution_place CHECK ((scope_id IS NULL) <> (within_id IS NULL))
);
CREATE INDEX ix_completed_execution_instance ON completed_execution (instance_id);
CREATE INDEX ix_completed_execution_scope ON completed_execution (scope_id) WHERE scope_id IS NOT NULL;
CREATE INDEX ix_completed_execution_within ON completed_execution (within_id) WHERE within_id IS NOT NULL;
"""


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(TABLE)
    install_functions(cursor)
