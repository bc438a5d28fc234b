"""Compiled process definitions, kept per process: a definition row never changes, so its id is the key.

A version that was stored earlier and that newer rules refuse is flagged, never a crash: `compiled` raises
`DefinitionRefused` with the problems, each caller turns that into its own kind of refusal, and everything else goes on
(S48).
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import Problem, ProcessDefinition
from engine.bpmn.reader import read_files
from engine.core.effects import InvariantBroken
from engine.db.session import cursor_of

KEPT = 256
_XML = "SELECT key, version, xml, resource_name FROM process_definition WHERE id = %s"


class DefinitionRefused(Exception):
    """A stored definition that today's rules refuse."""

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        first = f": {problems[0].what}; expected {problems[0].why}" if problems else ""
        super().__init__(f"{name}: expected a model that this version supports, found {len(problems)} problems{first}")
        self.name, self.problems = name, problems


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


def _read(conn: psycopg.Connection[Any], definition_id: UUID) -> ProcessDefinition | DefinitionRefused:
    row = cursor_of(conn).execute(_XML, (definition_id,)).fetchone()
    if row is None:
        raise InvariantBroken(f"process definition {definition_id}: expected its row, found none")
    key, version, xml, resource = row
    result = read_files([(resource, bytes(xml))])
    for _, definition in result.definitions:
        if definition.key == key and not result.problems:
            return definition
    missing = Problem(None, None, f"the file has no process {key!r} any more that can be executed", "one", resource)
    return DefinitionRefused(f"{key} version {version}", result.problems or (missing,))
