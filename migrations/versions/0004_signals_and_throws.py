"""Signals: subscriptions that say since when they are open; jobs of kind `throw` and `signal`, which may belong to no definition."""

from alembic import op

from engine.db.functions import install_functions

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KINDS = "'service', 'timer', 'start_timer', 'message', 'cancel', 'continue', 'throw', 'signal'"
CHECKS = {
    "job": {
        "ck_job_kind": f"kind IN ({KINDS})",
        "ck_job_case": "(kind = 'start_timer') = (instance_id IS NULL) OR kind IN ('message', 'throw', 'signal')",
        "ck_job_definition": "definition_id IS NOT NULL OR kind = 'throw'",
    },
    "subscription": {
        "ck_subscription_kind": "kind IN ('catch', 'start', 'signal', 'signal_start')",
        "ck_subscription_catch": "(kind IN ('catch', 'signal')) = (token_id IS NOT NULL)"
        " AND (kind IN ('catch', 'signal')) = (instance_id IS NOT NULL)",
    },
}


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE job ALTER COLUMN definition_id DROP NOT NULL")
    # The default apart from the column: rows that are there keep NULL, and the table is not written anew.
    cursor.execute("ALTER TABLE subscription ADD COLUMN xid xid8")
    cursor.execute("ALTER TABLE subscription ALTER COLUMN xid SET DEFAULT pg_current_xact_id()")
    for table, checks in CHECKS.items():
        for name, check in checks.items():
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}, ADD CONSTRAINT {name} CHECK ({check}) NOT VALID")
            cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
    cursor.execute(
        "CREATE UNIQUE INDEX uq_subscription_signal_start ON subscription (tenant_id, definition_id, element_id, message_name)"
        " WHERE kind = 'signal_start'"
    )
    install_functions(cursor)
