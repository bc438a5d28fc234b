"""Indexes and foreign keys that every command paid for and nothing needed (docs/decisions/0031).

Lists of jobs and deliveries follow the key, whose first part is a time. Foreign keys stay where a cascade is what a
cancel works by: from a leaf to its token, from a token to its scope, from a scope to its instance.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INDEXES = ("ix_job_list", "ix_delivery_list", "ix_user_task_root")
BY_KEY = ("job", "external_task", "delivery")
FOREIGN_KEYS = {
    "process_instance": ("fk_process_instance_definition",),
    "user_task": ("fk_user_task_instance",),
    "inbox_entry": ("fk_inbox_entry_task",),
    "job": ("fk_job_instance", "fk_job_definition"),
    "external_task": ("fk_external_task_instance",),
    "subscription": ("fk_subscription_instance",),
}


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for table, names in FOREIGN_KEYS.items():
        cursor.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP CONSTRAINT {name}" for name in names))
    cursor.execute(f"DROP INDEX {', '.join(INDEXES)}")
    for table in BY_KEY:
        cursor.execute(f"DROP INDEX ix_{table}_failed")
        cursor.execute(f"CREATE INDEX ix_{table}_failed ON {table} (tenant_id, id) WHERE status = 'failed'")
