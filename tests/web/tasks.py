"""User tasks for web tests, as the engine would have written them: a deployed model, a case, an open task in it."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from engine.ids import new_id

MODEL = Path(__file__).parents[1] / "models" / "a_form_of_every_kind.bpmn"


def deployed(conn: psycopg.Connection, xml: bytes | None = None, *, key: str = "invoice", name: str = "Invoice approval") -> UUID:
    """The definition, stored once for each content."""
    xml = xml or MODEL.read_bytes()
    digest = sha256(xml).digest()
    found = conn.execute("SELECT id FROM process_definition WHERE key = %s AND content_hash = %s", (key, digest)).fetchone()
    if found:
        return UUID(str(found[0]))
    deployment, definition = new_id(), new_id()
    conn.execute("INSERT INTO deployment (id, deployed_by) VALUES (%s, 'olga')", (deployment,))
    conn.execute(
        "INSERT INTO process_definition (id, key, version, name, sort_key, deployment_id, resource_name, content_hash, xml)"
        " SELECT %s, %s, 1 + count(*), %s, %s, %s, 'invoice.bpmn', %s, %s FROM process_definition WHERE key = %s",
        (definition, key, name, name.casefold(), deployment, digest, xml, key),
    )
    return definition


def open_task(
    conn: psycopg.Connection,
    name: str = "Check invoice",
    *,
    groups: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
    assignee: str | None = None,
    business_key: str | None = None,
    about: str = "",
    priority: int = 50,
    due: str | None = None,
    variables: dict[str, tuple[str, object]] | None = None,
    xml: bytes | None = None,
) -> UUID:
    """A case that stands at one user task."""
    definition = deployed(conn, xml)
    instance, scope, token, task = (new_id() for _ in range(4))
    conn.execute(
        "INSERT INTO process_instance (id, root_id, definition_id, business_key, started_by) VALUES (%s, %s, %s, %s, 'olga')",
        (instance, instance, definition, business_key),
    )
    conn.execute("INSERT INTO scope (id, instance_id, path) VALUES (%s, %s, %s)", (scope, instance, [scope]))
    conn.execute(
        "INSERT INTO token (id, instance_id, root_id, scope_id, element_id, flow_id) VALUES (%s, %s, %s, %s, 'check', 'f1')",
        (token, instance, instance, scope),
    )
    for key, (kind, value) in (variables or {}).items():
        conn.execute("INSERT INTO variable (scope_id, name, type, value) VALUES (%s, %s, %s, %s)", (scope, key, kind, Jsonb(value)))
    row = {
        "id": task,
        "instance_id": instance,
        "root_id": instance,
        "definition_id": definition,
        "token_id": token,
        "element_id": "check",
        "name": name,
        "sort_key": name.casefold(),
        "process_name": "Invoice approval",
        "business_key": business_key,
        "about": about,
        "status": "claimed" if assignee else "open",
        "assignee": assignee,
        "assigned_at": datetime.now(UTC) if assignee else None,
        "candidate_users": list(users),
        "candidate_groups": list(groups),
        "priority": priority,
        "due_at": datetime.fromisoformat(due).replace(tzinfo=UTC) if due else None,
    }
    names_of, values_of = ", ".join(row), ", ".join(f"%({column})s" for column in row)
    conn.execute(f"INSERT INTO user_task ({names_of}) VALUES ({values_of})".encode(), row)
    for kind, names in (("group", groups), ("user", users)):
        for candidate in names:
            conn.execute(
                "INSERT INTO inbox_entry (task_id, kind, name, created_at) VALUES (%s, %s, %s, baton_clock())", (task, kind, candidate)
            )
    return task
