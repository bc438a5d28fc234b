"""Who may what: `may(actor, action, object)`, and the same rules as SQL fragments for statements and lists.

Permission says who somebody is to a thing (candidate, assignee, operator); whether it can be done *now* is the state's
business. So a candidate who completes a task that another holds is refused with 409 and that name, not with 403.

An object is a `TaskView`, an `InstanceView`, or the name of a kind of thing that has no owner ("definition", "job",
"message", "person" …). What an actor may not see must be answered as if it were not there (R13).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from engine.commands.outcome import Actor

OPERATORS = frozenset({"operator", "administrator"})


@dataclass(frozen=True, slots=True)
class TaskView:
    """What permission needs to know of a user task."""

    tenant_id: str
    assignee: str | None
    candidate_users: tuple[str, ...] = ()
    candidate_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceView:
    """What permission needs to know of an instance. `sees_a_task`: by `task_visible` over the instance's tasks."""

    tenant_id: str
    started_by: str
    sees_a_task: bool = False


# Everybody signed in may do these; everything else that has no owner is for operators or administrators.
EVERYBODY = frozenset({("start", "definition"), ("see_startable", "definition")})
ADMINISTRATORS = frozenset({"person", "api_key"})


def may(actor: Actor, action: str, thing: TaskView | InstanceView | str) -> bool:
    """Whether `actor` may do `action` to `thing`, whatever state it is in.

    Actions on tasks: see, claim, unclaim, assign, complete. On instances: see, cancel. On kinds: any verb.
    """
    match thing:
        case TaskView():
            return thing.tenant_id == actor.tenant_id and _may_task(actor, action, thing)
        case InstanceView():
            return thing.tenant_id == actor.tenant_id and _may_instance(actor, action, thing)
        case str():
            return _may_kind(actor, action, thing)
    assert_never(thing)


def is_operator(actor: Actor) -> bool:
    return actor.role in OPERATORS


def is_candidate(actor: Actor, task: TaskView) -> bool:
    """Named as a candidate, or a member of a candidate group."""
    return actor.username in task.candidate_users or not actor.groups.isdisjoint(task.candidate_groups)


def _may_task(actor: Actor, action: str, task: TaskView) -> bool:
    holds_or_could = task.assignee == actor.username or is_candidate(actor, task) or is_operator(actor)
    match action:
        case "see" | "claim" | "unclaim" | "assign" | "complete":
            return holds_or_could
    raise ValueError(f"expected an action on a task, found {action!r}")


def _may_instance(actor: Actor, action: str, instance: InstanceView) -> bool:
    match action:
        case "see":
            return is_operator(actor) or instance.started_by == actor.username or instance.sees_a_task
        case "cancel" | "retry" | "suspend":
            return is_operator(actor)
    raise ValueError(f"expected an action on an instance, found {action!r}")


def _may_kind(actor: Actor, action: str, kind: str) -> bool:
    if (action, kind) in EVERYBODY:
        return True
    if kind in ADMINISTRATORS:
        return actor.role == "administrator"
    return is_operator(actor)


# ---- the same as SQL. `bind` writes a placeholder: psycopg's by default, `":{}".format` for SQLAlchemy's text()

Bind = Callable[[str], str]


def _psycopg(name: str) -> str:
    return f"%({name})s"


def may_params(actor: Actor) -> dict[str, Any]:
    """The parameters that every fragment below takes."""
    return {
        "may_tenant": actor.tenant_id,
        "may_user": actor.username,
        "may_groups": sorted(actor.groups),
        "may_all": is_operator(actor),
    }


def task_candidate(alias: str = "t", *, bind: Bind = _psycopg) -> str:
    """SQL: the actor may take this task (a candidate, a member of a candidate group, an operator)."""
    return (
        f"({bind('may_all')} OR {bind('may_user')} = ANY ({alias}.candidate_users)"
        f" OR {alias}.candidate_groups && CAST({bind('may_groups')} AS text[]))"
    )


def task_visible(alias: str = "t", *, bind: Bind = _psycopg) -> str:
    """SQL: the actor may see this task. For lists of open ones join `inbox_entry` first: it has the index."""
    return f"({alias}.tenant_id = {bind('may_tenant')} AND ({alias}.assignee = {bind('may_user')} OR {task_candidate(alias, bind=bind)}))"


def instance_visible(alias: str = "i", *, bind: Bind = _psycopg) -> str:
    """SQL: the actor may see this instance (operators, its starter, whoever sees one of its tasks)."""
    return (
        f"({alias}.tenant_id = {bind('may_tenant')} AND ({bind('may_all')} OR {alias}.started_by = {bind('may_user')}"
        f" OR EXISTS (SELECT FROM user_task seen WHERE seen.instance_id = {alias}.id AND {task_visible('seen', bind=bind)})))"
    )
