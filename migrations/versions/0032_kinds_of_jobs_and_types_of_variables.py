"""What a job may hang from is said with its kind, in one shorter CHECK (docs/decisions/0091); `null` is a type of variables."""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

# A kind that needs neither version nor case; those that need no case; those of a case.
KINDS = (
    "kind = ANY (CASE WHEN definition_id IS NULL THEN '{throw,hold}'::text[]"
    " WHEN instance_id IS NULL THEN '{start_timer,message,throw,signal,hold}'::text[]"
    " ELSE '{service,timer,message,cancel,continue,throw,signal,hold}'::text[] END)"
)
# Without quotes `null` in an array is no text, and a comparison with it refuses nothing.
TYPES = "type = ANY ('{string,integer,double,boolean,date,datetime,json,\"null\"}'::text[])"
CHANGES = {
    "job": "DROP CONSTRAINT ck_job_case, DROP CONSTRAINT ck_job_definition, DROP CONSTRAINT ck_job_kind,"
    f" ADD CONSTRAINT ck_job_kind CHECK ({KINDS}) NOT VALID",
    "variable": f"DROP CONSTRAINT ck_variable_type, ADD CONSTRAINT ck_variable_type CHECK ({TYPES}) NOT VALID",
}


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for table, changes in CHANGES.items():
        cursor.execute(f"ALTER TABLE {table} {changes}")  # without looking at the rows: the lock is held for a moment
    cursor.execute("ALTER TABLE job VALIDATE CONSTRAINT ck_job_kind")
    cursor.execute("ALTER TABLE variable VALIDATE CONSTRAINT ck_variable_type")
