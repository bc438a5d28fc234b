"""What an API key may be limited to.

A scope only ever takes away. Who the key's person is, `may` asks all the same; a key without scopes (NULL) may what its person may.
Each operation of `/api/v1` and `/engine-rest` names the one scope that it needs (webapp.auth.scopes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.commands.outcome import FieldProblem

ROLES = ("user", "operator", "administrator")  # each may what those before it may


@dataclass(frozen=True, slots=True)
class Scope:
    """`least_role`: whose keys may have it. `opens`: what it is for, in words for people."""

    least_role: str
    opens: str


SCOPES: Mapping[str, Scope] = {
    "read": Scope("user", "See tasks, instances, definitions and what else its person may see"),
    "tasks": Scope("user", "Claim, assign and complete user tasks"),
    "start": Scope("user", "Start processes"),
    "messages": Scope("operator", "Send messages and signals"),
    "external_tasks": Scope("operator", "Acquire external tasks and answer them, as a worker does"),
    "deploy": Scope("operator", "Deploy processes, decisions and forms"),
    "operate": Scope("operator", "Cancel, suspend, retry, pause and repair"),
    "administer": Scope("administrator", "Change people, groups and keys"),
}


def scopes_of(role: str) -> tuple[str, ...]:
    """The scopes that a key of somebody with this role may have."""
    return tuple(name for name, scope in SCOPES.items() if ROLES.index(scope.least_role) <= ROLES.index(role))


def scope_problems(wanted: list[str] | None, role: str) -> list[FieldProblem]:
    """What is wrong with these scopes for a key of somebody with this role; None: no limit, which is always right."""
    if wanted is None:
        return []
    allowed = scopes_of(role)
    if not wanted:
        return [FieldProblem("scopes", f"expected at least one of {', '.join(allowed)}, found none")]
    unknown = [name for name in wanted if name not in SCOPES]
    if unknown:
        return [FieldProblem("scopes", f"expected some of {', '.join(SCOPES)}, found {', '.join(map(repr, unknown))}")]
    beyond = [name for name in wanted if name not in allowed]
    return [FieldProblem("scopes", f"expected what a {role} may: {', '.join(allowed)}; found {', '.join(beyond)}")] if beyond else []
