"""To whom a message goes that has no key: by business key, instance or variables, and to one receiver alone.

A message with a key is published: it meets the oldest subscription of that key, and may be stored. One with criteria is for
an instance that waits now, so it is not stored; where several wait that meet them nobody has it, and the sender is told who.

Variables are those of the process scope, compared as JSON values: 42 is 42.0, and "42" is neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

import orjson

from engine.commands.outcome import FieldProblem, Refusal, Rejected
from engine.core.values import accept

MAX_NAMED = 10  # receivers that a refusal names


@dataclass(frozen=True, slots=True)
class Criteria:
    """All that are given must hold. `key`: of the subscription, besides. A business key alone may also start an instance."""

    business_key: str | None = None
    instance_id: UUID | None = None
    variables: Mapping[str, Any] | None = None
    key: str | None = None

    @property
    def may_start(self) -> bool:
        return self.business_key is not None and self.instance_id is None and not self.variables and self.key is None

    def problems(self, time_to_live: float | None) -> list[FieldProblem]:
        """What is wrong with them."""
        _, wrong = accept(self.variables or {})
        found = [FieldProblem(f"correlation_variables.{field}", text) for field, text in wrong]
        if time_to_live:
            why = "expected none with business_key, process_instance_id or correlation_variables: nothing is stored for them"
            found.append(FieldProblem("time_to_live_seconds", why))
        return found

    def asked(self) -> list[Any]:
        """What they are, for the key of a request."""
        return [self.business_key, self.instance_id, self.variables, self.key]

    def params(self) -> dict[str, Any]:
        accepted, _ = accept(self.variables or {})
        return {
            "business_key": self.business_key,
            "wanted_instance": self.instance_id,
            "wanted_key": self.key,
            "wanted": orjson.dumps({name: variable.value for name, variable in accepted.items()}).decode(),
        }

    @property
    def look(self) -> str:
        """The statement that finds who meets them."""
        given = ("business_key", self.business_key is not None), ("instance_id", self.instance_id is not None)
        return _look_by(
            *(name for name, is_there in (*given, ("key", self.key is not None), ("variables", bool(self.variables))) if is_there)
        )

    def shown(self) -> str:
        """In words, for who is refused."""
        parts = [
            f"the key {self.key!r}" if self.key is not None else "",
            f"the business key {self.business_key!r}" if self.business_key is not None else "",
            f"the instance {self.instance_id}" if self.instance_id is not None else "",
            f"the variables {orjson.dumps(dict(self.variables)).decode()[:200]}" if self.variables else "",
        ]
        return " and ".join(part for part in parts if part)


@cache
def _look_by(*given: str) -> str:
    """Only of what is given, so that its index is looked into: a condition that may be none would read all who wait for the name."""
    return LOOK_BY.format(by="".join(f" AND {_BY[name]}" for name in given))


def criteria_of(
    business_key: str | None, instance_id: UUID | None, variables: Mapping[str, Any] | None, key: str | None
) -> Criteria | None:
    """None: none is given, so the key alone counts."""
    if business_key is None and instance_id is None and not variables:
        return None
    return Criteria(business_key, instance_id, variables, key or None)


def ambiguous(name: str, criteria: Criteria, found: list[Any]) -> Rejected:
    """Several wait. `found`: (instance, element, business key, correlation key) of each, MAX_NAMED and one more at most."""
    many = f"more than {MAX_NAMED}" if len(found) > MAX_NAMED else str(len(found))
    text = f"{many} wait for {name} with {criteria.shown()}; expected one: give more criteria, or the instance"
    problems = tuple(
        FieldProblem("process_instance_id", f"{instance} waits at {element}, business key {business_key!r}, correlation key {key!r}")
        for instance, element, business_key, key in found[:MAX_NAMED]
    )
    return Rejected(Refusal.AMBIGUOUS, text, problems=problems)


_BY = {
    "business_key": "i.tenant_id = %(tenant_id)s AND i.business_key = %(business_key)s",
    "instance_id": "s.instance_id = %(wanted_instance)s",
    "key": "s.correlation_key = %(wanted_key)s",
    "variables": (
        "NOT EXISTS (SELECT FROM jsonb_each(%(wanted)s::jsonb) w WHERE NOT EXISTS ("
        "SELECT FROM scope c JOIN variable v ON v.scope_id = c.id"
        " WHERE c.instance_id = s.instance_id AND c.element_id IS NULL AND v.name = w.key AND v.value = w.value))"
    ),
}
# `revision`: that of the root, which every change of a variable raises; who correlates compares it under the lock.
LOOK_BY = f"""
SELECT s.id, s.instance_id, s.definition_id, s.element_id, baton_now(), false, r.revision, i.business_key, s.correlation_key
FROM subscription s JOIN process_instance i ON i.id = s.instance_id JOIN process_instance r ON r.id = s.root_id
WHERE s.tenant_id = %(tenant_id)s AND s.message_name = %(name)s AND s.kind = 'catch' AND r.mark IS DISTINCT FROM 'cancelling'{{by}}
ORDER BY s.created_at, s.id LIMIT {MAX_NAMED + 1}
"""
LOOK_START = (
    "SELECT s.id, NULL::uuid, s.definition_id, s.element_id, baton_now(), d.status = 'suspended', NULL::bigint, NULL, NULL"
    " FROM subscription s JOIN process_definition d ON d.id = s.definition_id WHERE s.tenant_id = %(tenant_id)s"
    " AND s.message_name = %(name)s AND s.kind = 'start'"  # those of a version that is deleted went with it
    " ORDER BY d.status, s.created_at, s.id LIMIT 1"  # one that is active first
)
