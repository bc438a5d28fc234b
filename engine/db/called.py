"""Which definition a call means: found and read by one statement, and remembered by this process.

What is remembered may no longer be true: the writing statement takes every called definition FOR KEY SHARE and compares
(`locks.CALLING_ROOT`); a command whose write found that stale calls `forget` and finds anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import CallConfig, ProcessDefinition
from engine.core.known import Call, Called, NotCallable
from engine.core.reading import as_text
from engine.db.definitions import KEPT, DefinitionRefused, compiled, keep_row, unread
from engine.db.session import cursor_of

_Place = tuple[str, int, str, str, Call]
_known: dict[_Place, UUID] = {}

# As for a start: the newest version; one that is being deleted only when there is no other. Bound to a deployment: the newest
# that there was when the caller's was deployed, so that what a deployment left unchanged counts.
FIND = """
SELECT u.number - 1 AS place, f.id, f.version, f.status, f.xml, f.resource_name
FROM unnest(%(called_keys)s::text[], %(called_versions)s::int[], %(called_tags)s::text[], %(called_bys)s::uuid[])
  WITH ORDINALITY AS u (key, version, tag, by, number)
CROSS JOIN LATERAL (
  SELECT d.* FROM process_definition d
  WHERE d.tenant_id = %(tenant_id)s AND d.key = u.key AND (u.version IS NULL OR d.version = u.version)
    AND (u.tag IS NULL OR d.version_tag = u.tag)
    AND (u.by IS NULL OR d.created_at <= (SELECT b.created_at FROM process_definition b WHERE b.id = u.by))
  ORDER BY d.status = 'deleting', d.version DESC LIMIT 1
) AS f ORDER BY u.number LIMIT cardinality(%(called_keys)s)
"""


Means = dict[Call, Called | NotCallable]


def called(conn: psycopg.Connection[Any], tenant_id: str, call: Call, ahead: Iterable[Call] = ()) -> Means:
    """What `call` means, by memory if this process has called it before, else read now; then `ahead` is found by the same look."""
    if (known := _remembered(conn, tenant_id, call)) is not None:
        return {call: Called(known, compiled(conn, known))}
    calls = tuple(dict.fromkeys([call, *unknown(conn, tenant_id, ahead)]))
    return found(conn, tenant_id, calls, cursor_of(conn).execute(FIND, {"tenant_id": tenant_id, **asked(calls)}).fetchall())


def unknown(conn: psycopg.Connection[Any], tenant_id: str, calls: Iterable[Call]) -> tuple[Call, ...]:
    """Those that this process does not know the meaning of."""
    return tuple(call for call in calls if _remembered(conn, tenant_id, call) is None)


def _remembered(conn: psycopg.Connection[Any], tenant_id: str, call: Call) -> UUID | None:
    """What it meant last. None also where that is kept no longer: one look finds what it means now, and its text."""
    known = _known.get(_place(conn, tenant_id, call))
    return None if known is None or unread([known]) else known


def calls_ahead(definition: ProcessDefinition) -> Iterator[Call]:
    """The processes that a process names outright in their newest versions."""
    for node in definition.nodes.values():
        config = node.config
        if isinstance(config, CallConfig) and config.binding == "latest" and config.process.is_constant:
            yield Call(as_text(config.process.evaluate({})))


def asked(calls: Sequence[Call]) -> dict[str, Any]:
    """The parameters of FIND, without the tenant."""
    return {
        "called_keys": [call.key for call in calls],
        "called_versions": [call.version for call in calls],
        "called_tags": [call.tag for call in calls],
        "called_bys": [call.by for call in calls],
    }


def found(conn: psycopg.Connection[Any], tenant_id: str, calls: Sequence[Call], rows: Iterable[Sequence[Any]]) -> Means:
    """What FIND found, remembered."""
    by_place = {row[0]: row[1:] for row in rows}
    return {call: _meaning(conn, tenant_id, call, by_place.get(place)) for place, call in enumerate(calls)}


def _meaning(conn: psycopg.Connection[Any], tenant_id: str, call: Call, row: Sequence[Any] | None) -> Called | NotCallable:
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
        _known[_place(conn, tenant_id, call)] = definition_id
    return Called(definition_id, definition)


def forget(definition_ids: Iterable[UUID]) -> None:
    """These may no longer be what their calls mean."""
    stale = set(definition_ids)
    for place in [place for place, known in list(_known.items()) if known in stale]:  # other threads remember meanwhile
        _known.pop(place, None)


def _place(conn: psycopg.Connection[Any], tenant_id: str, call: Call) -> _Place:
    info = conn.info
    return info.host, info.port, info.dbname, tenant_id, call
