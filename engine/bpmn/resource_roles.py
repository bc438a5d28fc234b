"""Resource roles of user tasks (BPMN 2.0.2, 10.3.1 and 10.3.4): potentialOwner, humanPerformer, performer -> candidates and assignee.

An assignment expression is a list of `user(x)` and `group(y)`. What stands there alone is a group for a potential owner, and the user
for a performer. A resource is a group of its name. Where other engines read something else than we do, the deployment warns: decision 0070.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from engine.bpmn import names
from engine.bpmn.context import Context, named, split_list
from engine.bpmn.names import Element
from engine.bpmn.noted import note
from engine.expressions import Expression, limits

OWNERS = "potentialOwner"
PERFORMERS = ("humanPerformer", "performer")
EXPECTED = "an expression such as user(ada), group(sales)"
ROLES = frozenset({OWNERS, *PERFORMERS})
LANGUAGES = ("juel", "uel", "xpath")  # XPath is what files declare for all their expressions when nobody chose one

_ONE = re.compile(r"(user|group)\s*\((.*)\)", re.DOTALL)


@dataclass(slots=True)
class Roles:
    """Who a task is for, as far as its roles say it."""

    assignee: list[Expression] = field(default_factory=list)
    users: list[Expression] = field(default_factory=list)
    groups: list[Expression] = field(default_factory=list)


def read(task: Element, context: Context) -> Roles:
    """All roles of a task together."""
    roles = Roles()
    for role in names.bpmn(task, *sorted(ROLES)):
        context.report_unread(role)
        said = [child for child in names.elements(role) if names.local(child) not in ("documentation", "extensionElements")]
        if not said:
            context.warn(role, f"{named(role)} of {named(task)} says nobody", EXPECTED)
        for child in said:
            note(child)
            match names.local(child):
                case "resourceAssignmentExpression":
                    _expression(child, role, task, roles, context)
                case "resourceRef":
                    _resource(child, role, task, roles, context)
                case other:
                    what = f"{other} of {named(role)} of {named(task)} is not supported"
                    context.problem(child, what, EXPECTED)
    if len(roles.assignee) > 1:
        context.problem(task, f"{named(task)} has {len(roles.assignee)} performers", "one: it has one assignee")
    return roles


def _expression(holder: Element, role: Element, task: Element, roles: Roles, context: Context) -> None:
    where = f"{names.local(role)} of {named(task)}"
    formal = next(names.bpmn(holder, "formalExpression"), None)
    if formal is None:
        context.problem(holder, f"{where} has no formal expression", EXPECTED)
        return
    context.report_unread(formal)
    text, language = names.text(formal).strip(), (formal.get("language") or "juel").strip()
    if not language.lower().rstrip("/").endswith(LANGUAGES):
        context.problem(formal, f"{where} is written in {language[:80]}", "user(ada), group(sales); with ${…} in them if you like")
        return
    if len(text) > limits.SOURCE_LENGTH:
        context.problem(formal, f"{where} has {len(text)} characters", f"at most {limits.SOURCE_LENGTH}")
        return
    if not text:
        context.warn(formal, f"{where} says nobody", EXPECTED)
    for part in split_list(text):
        _one(part, formal, role, where, roles, context)


def _one(part: str, formal: Element, role: Element, where: str, roles: Roles, context: Context) -> None:
    found = _ONE.fullmatch(part)
    kind, who = (found[1], found[2].strip()) if found else ("", part)
    owner = names.local(role) == OWNERS
    if not who or (found is None and "(" in who and not who.startswith(("${", "#{"))):
        context.problem(formal, f"{where} has {part[:80]!r}", "user(ada) or group(sales)")
        return
    if not owner and kind == "group":
        context.problem(formal, f"{where} has the group {who[:80]!r}", "a user, or a potentialOwner instead")
        return
    if owner and not kind:
        context.warn(formal, f"{where} has {who[:80]!r}, which is read as a group", f"user({who[:80]}), or group({who[:80]})")
    expression = context.expression(formal, who, where)
    if expression is not None:
        (roles.assignee if not owner else roles.users if kind == "user" else roles.groups).append(expression)


def _resource(reference: Element, role: Element, task: Element, roles: Roles, context: Context) -> None:
    """10.3.1: a resource may be a person, a group, a role. Whoever performs the task is found in the group of its name."""
    key = names.reference(names.text(reference))
    resource = context.resources.get(key or "")
    where = f"{names.local(role)} of {named(task)}"
    if resource is None:
        context.problem(reference, f"{where} refers to the resource {key!r}, which does not exist", "the id of a resource of this file")
        return
    name = " ".join((resource.get("name") or "").split())
    if not name:
        context.problem(resource, f"{named(resource)} is who {where} is, and has no name", "the name of a group")
        return
    context.warn(reference, f"{where} is the resource {name!r}, which is read as the group of that name", f"user({name}), or group({name})")
    group = context.expression(resource, name, f"the name of {named(resource)}")
    if group is not None:
        roles.groups.append(group)
