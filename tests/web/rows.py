"""Rows for screens: each method inserts one thing and returns its id, building on what was made before."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from engine.ids import new_id


class Rows:
    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn

    def insert(self, table: str, **values: Any) -> UUID:
        values.setdefault("id", new_id())
        names = ", ".join(values)
        marks = ", ".join(f"%({name})s" for name in values)
        self.conn.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)
        return values["id"]

    def now(self) -> datetime:
        row = self.conn.execute("SELECT baton_now()").fetchone()
        assert row is not None
        return row[0]

    def at(self, **ahead: float) -> datetime:
        return self.now() + timedelta(**ahead)

    def person(self, username: str, display_name: str, role: str = "user", groups: tuple[str, ...] = ()) -> UUID:
        id = self.insert("person", username=username, display_name=display_name, sort_key=display_name.casefold(), role=role)
        for group in groups:
            self.conn.execute("INSERT INTO person_group (person_id, group_key) VALUES (%s, %s)", (id, group))
        return id

    def definition(self, key: str = "invoice", version: int = 1, *, name: str = "", xml: bytes = b"<x/>", by: str = "olga") -> UUID:
        deployment = self.insert("deployment", deployed_by=by)
        return self.insert(
            "process_definition", key=key, version=version, name=name or key, sort_key=(name or key).casefold(), deployment_id=deployment,
            resource_name=f"{key}.bpmn", content_hash=hashlib.sha256(xml + bytes([version])).digest(), xml=xml,
        )  # fmt: skip

    def instance(self, definition: UUID, *, business_key: str | None = None, started_by: str = "ada", **more: Any) -> UUID:
        id = more.pop("id", None) or new_id()
        root = more.pop("root_id", id)
        self.insert(
            "process_instance", id=id, root_id=root, definition_id=definition, business_key=business_key, started_by=started_by, **more
        )
        return id

    def scope(self, instance: UUID, **more: Any) -> UUID:
        id = new_id()
        return self.insert("scope", id=id, instance_id=instance, path=[id], **more)

    def token(self, instance: UUID, scope: UUID, element: str, **more: Any) -> UUID:
        return self.insert("token", instance_id=instance, root_id=instance, scope_id=scope, element_id=element, **more)

    def variable(self, scope: UUID, name: str, type: str, value: Any) -> None:
        self.conn.execute("INSERT INTO variable (scope_id, name, type, value) VALUES (%s, %s, %s, %s)", (scope, name, type, Jsonb(value)))

    def task(self, instance: UUID, definition: UUID, *, token: UUID | None = None, name: str = "Check invoice", **more: Any) -> UUID:
        more.setdefault("element_id", "check")
        return self.insert(
            "user_task", instance_id=instance, root_id=instance, definition_id=definition, token_id=token, name=name,
            sort_key=name.casefold(), **more,
        )  # fmt: skip

    def job(self, definition: UUID, *, instance: UUID | None = None, token: UUID | None = None, kind: str = "service", **more: Any) -> UUID:
        now = self.now()
        values = {"element_id": "book", "topic": "ledger.book", "due_at": now, "available_at": now} | more
        return self.insert("job", kind=kind, definition_id=definition, instance_id=instance, root_id=instance, token_id=token, **values)

    def external_task(self, definition: UUID, instance: UUID, token: UUID, **more: Any) -> UUID:
        now = self.now()
        values = {"element_id": "ship", "topic": "ship", "due_at": now, "available_at": now} | more
        return self.insert("external_task", definition_id=definition, instance_id=instance, root_id=instance, token_id=token, **values)

    def delivery(self, definition: UUID, instance: UUID, **more: Any) -> UUID:
        now = self.now()
        values = {
            "kind": "http", "destination": "accounting-hook", "element_id": "send", "due_at": now, "available_at": now,
            "request": Jsonb({"url": "x"}),
        } | more  # fmt: skip
        return self.insert("delivery", definition_id=definition, instance_id=instance, root_id=instance, **values)

    def lease(
        self, owner: str | UUID, *, seconds_left: float = 30, total: float = 30, number: int = 1, attempts: int = 1
    ) -> dict[str, Any]:
        """The columns of a leased item."""
        expires = self.at(seconds=seconds_left)
        return {
            "status": "leased", "lease_owner": str(owner), "lease_expires_at": expires, "leased_at": expires - timedelta(seconds=total),
            "lease_number": number, "attempts": attempts,
        }  # fmt: skip

    def worker(self, host: str = "fra-7", pid: int = 4711, *, silent_seconds: float = 1, **more: Any) -> UUID:
        beat = self.at(seconds=-silent_seconds)
        return self.insert("worker", host=host, pid=pid, started_at=self.at(hours=-6), heartbeat_at=beat, **more)

    def incident(
        self, message: str, *, definition: UUID | None = None, instance: UUID | None = None, element: str = "book", **leaf: Any
    ) -> UUID:
        return self.insert(
            "incident", kind=leaf.pop("kind", "attempts_exhausted"), message=message, definition_id=definition, instance_id=instance,
            root_id=instance, element_id=element, **leaf,
        )  # fmt: skip

    def event(
        self, kind: str, *, instance: UUID | None = None, actor: str = "engine", data: dict[str, Any] | None = None, **more: Any
    ) -> None:
        values = {"kind": kind, "instance_id": instance, "root_id": instance, "actor": actor, "data": Jsonb(data or {})} | more
        names, marks = ", ".join(values), ", ".join(f"%({name})s" for name in values)
        self.conn.execute(f"INSERT INTO history ({names}) VALUES ({marks})", values)
