"""Which decision a call means: all that a step asks for found by one statement; what was read and compiled is kept by the process.

A row of a decision never changes and never goes, so its id is the key, and no lock is needed: a step decides by the versions that
there were when it looked.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import UUID

import psycopg

from engine.core.known import Decidable, DecisionCall, NotDecidable
from engine.db.definitions import KEPT
from engine.db.session import cursor_of
from engine.dmn.definition import DecisionGraph
from engine.dmn.reader import read_decisions

_kept: OrderedDict[UUID, Decidable | NotDecidable] = OrderedDict()
_turning = Lock()

_MEMBERS = (
    "SELECT jsonb_object_agg(m.key, jsonb_build_array(m.id, m.version)) FROM decision_definition m"
    " WHERE m.deployment_id = f.deployment_id AND m.resource_name = f.resource_name"
)
_ONE = f"SELECT f.key, f.version, f.resource_name, f.xml, ({_MEMBERS}) FROM decision_definition f WHERE f.id = %(id)s"
# The newest of the versions that a call allows. What this process has read before comes without its text.
FIND = f"""
SELECT u.number - 1 AS place, f.id, f.version, f.resource_name, CASE WHEN NOT f.id = ANY (%(kept)s) THEN f.xml END AS xml,
  CASE WHEN NOT f.id = ANY (%(kept)s) THEN ({_MEMBERS}) END AS members
FROM unnest(%(keys)s::text[], %(versions)s::int[], %(tags)s::text[], %(bys)s::uuid[]) WITH ORDINALITY AS u (key, version, tag, by, number)
CROSS JOIN LATERAL (
  SELECT d.* FROM decision_definition d WHERE d.tenant_id = %(tenant_id)s AND d.key = u.key
    AND (u.version IS NULL OR d.version = u.version) AND (u.tag IS NULL OR d.version_tag = u.tag)
    AND (u.by IS NULL OR d.created_at <= (SELECT b.created_at FROM process_definition b WHERE b.id = u.by))
  ORDER BY d.version DESC LIMIT 1
) AS f ORDER BY u.number LIMIT cardinality(%(keys)s)
"""


def decided(
    conn: psycopg.Connection[Any], tenant_id: str, calls: Sequence[DecisionCall]
) -> Mapping[DecisionCall, Decidable | NotDecidable]:
    """The decision that each call means, or why there is none."""
    asked, kept = asking(calls)
    return found(calls, kept, cursor_of(conn).execute(FIND, {"tenant_id": tenant_id, **asked}).fetchall())


Kept = Mapping[UUID, Decidable | NotDecidable]


def asking(calls: Sequence[DecisionCall]) -> tuple[dict[str, Any], Kept]:
    """The parameters of FIND, without the tenant; and what comes without its text, which other threads may drop meanwhile.

    Of what is kept those of these keys alone: the driver pays for each id.
    """
    keys = {call.key for call in calls}
    with _turning:
        kept = {row_id: known for row_id, known in _kept.items() if isinstance(known, NotDecidable) or known.key in keys}
    return {
        "keys": [call.key for call in calls],
        "versions": [call.version for call in calls],
        "tags": [call.tag for call in calls],
        "bys": [call.by for call in calls],
        "kept": list(kept),
    }, kept


def found(calls: Sequence[DecisionCall], kept: Kept, rows: Iterable[Sequence[Any]]) -> dict[DecisionCall, Decidable | NotDecidable]:
    """What FIND found, for each call."""
    meant: dict[DecisionCall, Decidable | NotDecidable] = {call: _missing(call) for call in calls}
    for place, row_id, version, resource, xml, members in rows:
        meant[calls[place]] = kept.get(row_id) or _compiled(row_id, calls[place].key, version, resource, xml, members)
    return meant


def graph_of(conn: psycopg.Connection[Any], row_id: UUID) -> DecisionGraph | NotDecidable:
    """What the file of a version says, as today's rules read it; kept by the process."""
    with _turning:
        known = _kept.get(row_id)
    if known is None:
        row = cursor_of(conn).execute(_ONE, {"id": row_id}).fetchone()
        if row is None:
            return NotDecidable(f"expected the version {row_id} of a decision, found none")
        known = _compiled(row_id, *row)
    return known.graph if isinstance(known, Decidable) else known


def _read(key: str, version: int, resource: str, xml: bytes) -> DecisionGraph | NotDecidable:
    read = read_decisions([(resource, xml)])
    graph = next((graph for _, graph in read.graphs if key in graph.decisions), None)
    if read.problems or graph is None:
        what = f": {read.problems[0].what}; expected {read.problems[0].why}" if read.problems else ""
        return NotDecidable(f"decision {key} version {version}: expected a file that this version supports, found problems{what}")
    return graph


def _missing(call: DecisionCall) -> NotDecidable:
    which = (
        f" in version {call.version}" if call.version is not None else f" with the version tag {call.tag!r}" if call.tag is not None else ""
    )
    then = ", as its process was deployed" if call.by is not None else ""
    return NotDecidable(f"expected the decision {call.key}{which}, found none that is deployed{then}")


def _compiled(row_id: UUID, key: str, version: int, resource: str, xml: bytes, members: Mapping[str, Any]) -> Decidable | NotDecidable:
    """Read it, and keep it: the least recently read goes first."""
    graph = _read(key, version, resource, bytes(xml))
    if isinstance(graph, NotDecidable):
        found: Decidable | NotDecidable = graph
    else:
        found = Decidable(key, graph, {each: (UUID(pair[0]), pair[1]) for each, pair in members.items()})
    with _turning:
        _kept[row_id] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found
