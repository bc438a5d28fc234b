"""The same rules in fewer and shorter CHECKs, which the server reads anew in every statement (docs/decisions/0091)."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ENDED = "status = ANY (CASE WHEN ended_at IS NULL THEN '{%s}'::text[] ELSE '{%s}'::text[] END)"
WORK = "available,leased,failed"
LEASED = "num_nonnulls(lease_owner, lease_expires_at, leased_at) = CASE status WHEN 'leased' THEN 3 ELSE 0 END"
NUMBERS = "priority BETWEEN 0 AND 9 AND level BETWEEN 0 AND 10 AND attempts BETWEEN 0 AND max_attempts"
KINDS = "service,timer,start_timer,message,cancel,continue,throw,signal"
OF_WORK = ("attempts", "ended", "lease_if_leased", "level", "priority", "status")

# table -> (what goes, what comes)
CHECKS = {
    "process_instance": (
        ("ended", "mark", "status"),
        {"status": ENDED % ("running", "completed,cancelled"), "mark": "mark = ANY ('{suspending,suspended,cancelling}'::text[])"},
    ),
    "token": (("status",), {"status": "status = ANY ('{waiting,joining,listening,failed}'::text[])"}),
    "variable": (("type",), {"type": "type = ANY ('{string,integer,double,boolean,date,datetime,json,null}'::text[])"}),
    "user_task": (
        ("claimed", "ended", "open", "status"),
        {
            "status": "status = ANY (CASE WHEN ended_at IS NOT NULL THEN '{completed,cancelled}'::text[]"
            " WHEN assignee IS NOT NULL THEN '{claimed}'::text[] ELSE '{open}'::text[] END)"
        },
    ),
    "inbox_entry": (("kind",), {"kind": "kind = ANY ('{user,group}'::text[])"}),
    "job": (
        (*OF_WORK, "kind"),
        {
            "status": ENDED % (WORK, "completed,cancelled"),
            "lease_if_leased": LEASED,
            "numbers": NUMBERS,
            "kind": f"kind = ANY ('{{{KINDS}}}'::text[])",
        },
    ),
    "external_task": (OF_WORK, {"status": ENDED % (WORK, "completed,cancelled"), "lease_if_leased": LEASED, "numbers": NUMBERS}),
    "delivery": (OF_WORK, {"status": ENDED % (WORK, "completed,cancelled,skipped"), "lease_if_leased": LEASED, "numbers": NUMBERS}),
}


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    for table, (gone, new) in CHECKS.items():
        changes = [f"DROP CONSTRAINT ck_{table}_{name}" for name in gone]
        changes += [f"ADD CONSTRAINT ck_{table}_{name} CHECK ({rule})" for name, rule in new.items()]
        cursor.execute(f"ALTER TABLE {table} {', '.join(changes)}")
