"""What the pages of one task are made of: the task, its form, its case; and why something was refused, in words' reach."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from flask import abort, request, url_for
from sqlalchemy import Connection
from werkzeug.routing import BuildError

from engine.bpmn.definition import FormField, Node, ProcessDefinition, StartConfig, UserTaskConfig
from engine.commands.may import is_operator
from engine.commands.outcome import Actor, Refusal, Rejected
from engine.core.values import Variable
from engine.db.definitions import DefinitionRefused, compiled
from engine.db.forms import FoundForm, NoForm
from engine.queries.inbox import next_free
from engine.queries.instance import flows_taken
from engine.queries.rows import reading
from engine.queries.task import (
    CaseEvent,
    TaskDetail,
    case_events,
    definition_xml,
    display_name,
    possible_assignees,
    task_detail,
    task_variables,
)
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.forms.deployed import deployed_form, drawn_before
from webapp.forms.fields import Control, Form, fresh_form
from webapp.inbox.views import view_of
from webapp.security import local_path
from webapp.tasks.purpose import purpose
from webapp.tasks.where import Where, where_it_stands

log = logging.getLogger("baton.web")


@dataclass(frozen=True, slots=True)
class TaskForm:
    """The step as its model describes it. `node` None: today's rules refuse the stored model, so it has no form to show."""

    task: TaskDetail
    definition: ProcessDefinition | None
    node: Node | None
    variables: Mapping[str, Variable]
    deployed: FoundForm | NoForm | None = None  # None: the step refers to no form

    @property
    def fields(self) -> tuple[Any, ...]:
        if isinstance(self.deployed, FoundForm):
            return self.deployed.form.fields
        config = self.node.config if self.node else None
        return config.fields if isinstance(config, UserTaskConfig) else ()

    @property
    def purpose(self) -> str:
        """What the step is for, with the values of the case."""
        return purpose(self.node.documentation, self.variables) if self.node else ""

    @property
    def beside(self) -> dict[str, Variable]:
        """What the case knows and the form does not show already."""
        shown = {field.id for field in self.fields}
        return {name: variable for name, variable in self.variables.items() if name not in shown}

    @property
    def known_fields(self) -> dict[str, FormField]:
        """Every form field of the process by its variable: what forms call a value, the task page calls it, too."""
        configs = (node.config for node in self.definition.nodes.values()) if self.definition else ()
        found = {field.id: field for config in configs if isinstance(config, StartConfig | UserTaskConfig) for field in config.fields}
        return found | {field.id: field for field in self.fields}


def load_form(task_id: UUID) -> TaskForm:
    """The task and its form for whoever may see it; 404 otherwise, the same for a task that never was (S61)."""
    actor = current_actor()
    with reading(reader()) as conn:
        task = task_detail(conn, actor, task_id)
        if task is None:
            abort(404)
        variables = task_variables(conn, task)
    try:
        definition = compiled(command_connection(), task.definition_id)
    except DefinitionRefused as refused:
        log.warning("definition_refused name=%s problems=%d", refused.name, len(refused.problems))
        return TaskForm(task, None, None, variables)
    node = definition.nodes.get(task.element_id)
    return TaskForm(task, definition, node, variables, deployed_form(node, task.definition_id, variables))


def page_context(found: TaskForm, form: Form | None = None) -> dict[str, Any]:
    """Everything that templates/tasks/show.html shows."""
    actor, task = current_actor(), found.task
    standing = standing_refusal(task, actor)
    with reading(reader()) as conn:
        events = case_events(conn, task)
        may_assign = not task.is_over and (task.mine or is_operator(actor))
        return {
            "task": task,
            "found": found,
            "form": form or fresh_form(found.fields, found.variables),
            "deployed": found.deployed,
            "drawn": drawn_before(found.deployed),
            "events": events,
            "assignees": possible_assignees(conn, actor, task, anybody=is_operator(actor)) if may_assign else [],
            "refusal": standing,
            "offer": next_free(conn, actor, task.id) if standing else None,
            "where": _where(found, events, conn),
            "back": way_back(),
            "here": here(),
            "live_topics": f"inbox,task:{task.id}",
        }


def _where(found: TaskForm, events: list[CaseEvent], conn: Connection) -> Where | None:
    """Where the step stands in its process, drawn and in words."""
    if found.definition is None or found.node is None:
        return None
    task = found.task
    completed = [event.task_name or "" for event in reversed(events) if event.kind == "task_completed" and event.item_id != task.id]
    return where_it_stands(
        task.definition_id,
        definition_xml(conn, task),
        found.definition,
        found.node,
        taken=flows_taken(conn, task.instance_id),
        done=[name for name in completed if name],
    )


def standing_refusal(task: TaskDetail, actor: Actor) -> Rejected | None:
    """How the task stands for somebody who comes too late: Back, another tab and a second press say the same."""
    match task.status:
        case "completed":
            return Rejected(Refusal.ALREADY_COMPLETED, "", task.ended_by, task.ended_by_name, task.ended_at, item_id=task.id)
        case "cancelled":
            return Rejected(Refusal.ALREADY_CANCELLED, "", task.ended_by, task.ended_by_name, task.ended_at, item_id=task.id)
        case "claimed" if task.assignee != actor.username:
            return Rejected(Refusal.ALREADY_CLAIMED, "", task.assignee, task.assignee_name, task.assigned_at, item_id=task.id)
    return None


def with_name(rejected: Rejected) -> Rejected:
    """The refusal with what people call whoever came first."""
    if rejected.by is None or rejected.by_name is not None:
        return rejected
    return replace(rejected, by_name=display_name(reader(), current_actor(), rejected.by))


def way_back() -> str:
    """The list that this task was opened from."""
    return local_path(request.args.get("back") or request.form.get("back"), url_for("inbox.index"))


def here() -> str:
    """Which view of the navigation that list was."""
    return view_of(way_back())


def stored_beside(typed: Control, variables: Mapping[str, Variable]) -> tuple[str, bool]:
    """What the winner stored for a field, in the words that the form would show; and whether it differs in value."""
    stored = variables.get(typed.field.id)
    shown = fresh_form((typed.field,), variables).controls[0].said if stored is not None else ""
    return shown, typed.means != stored


def instance_url(instance_id: UUID) -> str:
    """The page of a case, once operations serve it."""
    try:
        return url_for("operations.instance", instance_id=instance_id)
    except BuildError:
        return ""
