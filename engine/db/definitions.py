"""Compiled process definitions, kept per process: a definition row never changes, so its id is the key.

A version that was stored earlier and that newer rules refuse is flagged, never a crash: `compiled` raises
`DefinitionRefused` with the problems, each caller turns that into its own kind of refusal, and everything else goes on
(S48).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import DecisionConfig, Problem, ProcessDefinition, TimerConfig
from engine.bpmn.reader import read_files
from engine.core.effects import InvariantBroken
from engine.db.session import cursor_of

KEPT = 256
_XML = "SELECT key, version, xml, resource_name FROM process_definition WHERE id = %s"
# The same beside what another statement reads, for `keep_row`: a definition's row never changes. Parameter: `unread`.
ALONG = "LEFT JOIN process_definition d ON d.id = ANY (%(unread)s)"
ALONG_COLUMNS = "d.id, d.key, d.version, d.xml, d.resource_name"


class DefinitionRefused(Exception):
    """A stored definition that today's rules refuse."""

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        first = f": {problems[0].what}; expected {problems[0].why}" if problems else ""
        super().__init__(f"{name}: expected a model that this version supports, found {len(problems)} problems{first}")
        self.name, self.problems = name, problems


Newest = tuple[UUID, int]  # definition, version
_clocks: dict[UUID, bool] = {}
_newest: dict[tuple[str, int, str, str, str], Newest] = {}
_kept: OrderedDict[UUID, ProcessDefinition | DefinitionRefused] = OrderedDict()
_turning = Lock()


def compiled(conn: psycopg.Connection[Any], definition_id: UUID) -> ProcessDefinition:
    """The definition, read and compiled once for each process. Raises DefinitionRefused."""
    with _turning:
        found = _kept.get(definition_id)
        if found is not None:
            _kept.move_to_end(definition_id)
    if found is None:
        found = _read(conn, definition_id)
        keep(definition_id, found)
    if isinstance(found, DefinitionRefused):
        raise DefinitionRefused(found.name, found.problems)
    return found


def keep(definition_id: UUID, definition: ProcessDefinition | DefinitionRefused) -> None:
    """Remember it: what a deployment has just compiled need not be read again."""
    with _turning:
        _kept[definition_id] = definition
        _kept.move_to_end(definition_id)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)


def unread(definition_ids: Collection[UUID]) -> list[UUID]:
    """Those that this process has not read yet."""
    with _turning:
        return [each for each in definition_ids if each not in _kept]


def keep_row(definition_id: UUID, key: str, version: int, xml: bytes, resource: str) -> None:
    """Remember one that another statement has read along (ALONG)."""
    keep(definition_id, _understood(key, version, xml, resource))


def _read(conn: psycopg.Connection[Any], definition_id: UUID) -> ProcessDefinition | DefinitionRefused:
    row = cursor_of(conn).execute(_XML, (definition_id,)).fetchone()
    if row is None:
        raise InvariantBroken(f"process definition {definition_id}: expected its row, found none")
    return _understood(*row)


def _understood(key: str, version: int, xml: bytes, resource: str) -> ProcessDefinition | DefinitionRefused:
    result = read_files([(resource, bytes(xml))], stored=True)
    for _, definition in result.definitions:
        if definition.key == key and not result.problems:
            return definition
    missing = Problem(None, None, f"the file has no process {key!r} any more that can be executed", "one", resource)
    return DefinitionRefused(f"{key} version {version}", result.problems or (missing,))


# ---- starting without a look: which version of a key is the newest, remembered and re-checked by the write


def newest_known(conn: psycopg.Connection[Any], tenant_id: str, key: str) -> Newest | None:
    """What `remember_newest` was told last. Perhaps no longer true: the writing statement compares (`start_newest`)."""
    return _newest.get(_place(conn, tenant_id, key))


def remember_newest(conn: psycopg.Connection[Any], tenant_id: str, key: str, newest: Newest | None) -> None:
    """Remember the newest version of a key; None: forget it."""
    if newest is None:
        _newest.pop(_place(conn, tenant_id, key), None)
    else:
        if len(_newest) >= KEPT:
            _newest.clear()
        _newest[_place(conn, tenant_id, key)] = newest


def _place(conn: psycopg.Connection[Any], tenant_id: str, key: str) -> tuple[str, int, str, str, str]:
    info = conn.info
    return info.host, info.port, info.dbname, tenant_id, key


CLOCKS = ("now", "today", "dateTime")  # what expressions call the time


def asks_the_time(conn: psycopg.Connection[Any], definition_id: UUID) -> bool:
    """`reads_clock` of a definition that is kept, worked out once. One that today's rules refuse: yes."""
    found = _clocks.get(definition_id)
    if found is None:
        try:
            found = reads_clock(compiled(conn, definition_id))
        except DefinitionRefused:
            return True
        if len(_clocks) >= KEPT:
            _clocks.clear()
        _clocks[definition_id] = found
    return found


def reads_clock(definition: ProcessDefinition) -> bool:
    """Whether a step of this process may need the time of now: timers, due dates, or an expression that names it.

    In doubt yes: any text with "now", "today" or "dateTime" in it counts, and so does whatever may be called.
    """
    if any(node.kind == "call_activity" or isinstance(node.config, DecisionConfig) for node in definition.nodes.values()):
        return True
    return any(isinstance(part, TimerConfig) or _names_now(part) for part in _parts((definition.nodes, definition.flows)))


def _names_now(part: Any) -> bool:
    return (
        any(word in getattr(part, "text", "") for word in CLOCKS)
        or getattr(part, "due", None) is not None
        or getattr(part, "follow_up", None) is not None
    )


def _parts(value: Any) -> Iterator[Any]:
    """A configuration and everything in it, down to its expressions."""
    match value:
        case Mapping():
            for item in value.values():
                yield from _parts(item)
        case tuple() | list():
            for item in value:
                yield from _parts(item)
        case _ if is_dataclass(value) and not isinstance(value, type):
            yield value
            if not hasattr(value, "evaluate"):
                for field in fields(value):
                    yield from _parts(getattr(value, field.name))
