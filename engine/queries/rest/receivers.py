"""Who waits for a message of a name, where a program names no key: for correlation by the criteria of Camunda 7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Connection

from engine.queries.rows import rows

MOST = 100
"""Receivers of one message for all of them."""


@dataclass(frozen=True, slots=True)
class Receiver:
    instance_id: UUID
    token_id: UUID
    correlation_key: str


def receivers(
    conn: Connection,
    name: str,
    *,
    tenant_id: str,
    business_key: str | None = None,
    instance_id: UUID | None = None,
    variables: Mapping[str, Any] | None = None,
) -> list[Receiver]:
    """Those that wait now and meet all that is given, the oldest first; at most MOST and one more."""
    params = {
        "tenant": tenant_id,
        "name": name,
        "business_key": business_key,
        "instance": instance_id,
        "wanted": orjson.dumps(dict(variables or {})).decode(),
        "limit": MOST + 1,
    }
    by = (" AND i.business_key = :business_key" if business_key is not None else "") + (
        " AND s.instance_id = :instance" if instance_id is not None else ""
    )
    return rows(conn, Receiver, WAITING.format(by=by + (HAS_VARIABLES if variables else "")), params)


WAITING = """
SELECT s.instance_id, s.token_id, s.correlation_key
  FROM subscription s JOIN process_instance i ON i.id = s.instance_id JOIN process_instance r ON r.id = s.root_id
 WHERE s.tenant_id = :tenant AND s.message_name = :name AND s.kind = 'catch' AND r.mark IS DISTINCT FROM 'cancelling'{by}
 ORDER BY s.created_at, s.id LIMIT :limit
"""
HAS_VARIABLES = """ AND NOT EXISTS (SELECT FROM jsonb_each(CAST(:wanted AS jsonb)) w WHERE NOT EXISTS (
   SELECT FROM scope c JOIN variable v ON v.scope_id = c.id
    WHERE c.instance_id = s.instance_id AND c.parent_id IS NULL AND v.name = w.key AND v.value = w.value))"""
