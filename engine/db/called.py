"""Which definition a call means: found and read by one statement, and remembered by this process.

What is remembered may no longer be true: the writing statement takes every called definition FOR KEY SHARE and compares
(`locks.CALLING_ROOT`); a command whose write found that stale calls `forget` and finds anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import psycopg

from engine.core.known import Call, Called, NotCallable
from engine.db.definitions import KEPT, DefinitionRefused, compiled, keep_row, unread
from engine.db.session import cursor_of

_Place = tuple[str, int, str, str, Call]
_known: dict[_Place, UUID] = {}

# As for a start: the newest version; one that is being deleted only when there is no other. Bound to a deployment: the newest
# that there was when the caller's was deployed, so that what a deployment left unchanged counts.
_FIND = """
SELECT d.id, d.version, d.status, d.xml, d.resource_name FROM process_definition d
WHERE d.tenant_id = %(tenant_id)s AND d.key = %(key)s AND (%(version)s::int IS NULL OR d.version = %(version)s)
  AND (%(tag)s::text IS NULL OR d.version_tag = %(tag)s)
  AND (%(by)s::uuid IS NULL OR d.created_at <= (SELECT b.created_at FROM process_definition b WHERE b.id = %(by)s))
ORDER BY d.status = 'deleting', d.version DESC LIMIT 1
"""


def called(conn: psycopg.Connection[Any], tenant_id: str, call: Call) -> Called | NotCallable:
    """The definition that `call` means, by memory if this process has called it before, else read now."""
    place = _place(conn, tenant_id, call)
    known = _known.get(place)
    if known is not None:
        return Called(known, compiled(conn, known))
    params = {"tenant_id": tenant_id, "key": call.key, "version": call.version, "tag": call.tag, "by": call.by}
    row = cursor_of(conn).execute(_FIND, params).fetchone()
    if row is None:
        which = f" in version {call.version}" if call.version is not None else f" with the version tag {call.tag}" if call.tag else ""
        return NotCallable(f"expected the process {call.key}{which}, found none that is deployed")
    definition_id, version, status, xml, resource = row
    if status != "active":
        return NotCallable(f"expected an active process {call.key}, found version {version} {status}")
    if unread([definition_id]):
        keep_row(definition_id, call.key, version, xml, resource)
    try:
        definition = compiled(conn, definition_id)
    except DefinitionRefused as refused:
        return NotCallable(str(refused))
    if call.binding != "tag":  # no write compares whether a newer version has the tag by now
        if len(_known) >= KEPT:
            _known.clear()
        _known[place] = definition_id
    return Called(definition_id, definition)


def forget(definition_ids: Iterable[UUID]) -> None:
    """These may no longer be what their calls mean."""
    stale = set(definition_ids)
    for place in [place for place, known in list(_known.items()) if known in stale]:  # other threads remember meanwhile
        _known.pop(place, None)


def _place(conn: psycopg.Connection[Any], tenant_id: str, call: Call) -> _Place:
    info = conn.info
    return info.host, info.port, info.dbname, tenant_id, call
