"""What stands in the navigation. An entry shows up once its address is served."""

from __future__ import annotations

from flask import current_app

# (key for `here`, address, icon, words)
OPERATIONS = (
    ("overview", "/operations", "dash", "Overview"),
    ("processes", "/operations/processes", "flow", "Processes"),
    ("decisions", "/operations/decisions", "filter", "Decisions"),
    ("instances", "/operations/instances", "layers", "Instances"),
    ("jobs", "/operations/jobs", "list", "Jobs"),
    ("failed", "/operations/failed", "alert", "Failed work"),
    ("leases", "/operations/leases", "lock", "Leases"),
    ("pauses", "/operations/pauses", "pause", "Paused"),
    ("outbox", "/operations/outbox", "send", "Outbox"),
    ("messages", "/operations/messages", "mail", "Messages"),
    ("workers", "/operations/workers", "server", "Workers"),
    ("deploy", "/operations/deploy", "up", "Deploy"),
    ("sign_ins", "/operations/sign-ins", "keys", "Failed sign-ins"),
    ("mail", "/dev/mail", "mail", "Mails sent"),  # these two under `baton up` alone
    ("service", "/dev/service", "plug", "Sample service"),
)


def operations_nav() -> list[tuple[str, str, str, str]]:
    served = {rule.rule for rule in current_app.url_map.iter_rules()}
    return [entry for entry in OPERATIONS if entry[1] in served or f"{entry[1]}/" in served]
