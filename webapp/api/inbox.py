"""The inbox as its page has it: views, filters, orders, counts; the next free task; and what the page of one task shows beside its form."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, current_app, jsonify

from engine.commands.may import is_operator
from engine.commands.outcome import Refusal, Rejected
from engine.commands.tasks import take_next
from engine.config import Settings
from engine.core.lifecycle import USER_TASK
from engine.core.values import Variable
from engine.queries.inbox import (
    ASSIGNEES,
    DUES,
    SORTS,
    VIEWS,
    InboxFilter,
    InboxRow,
    inbox_counts,
    inbox_page,
    next_free,
)
from engine.queries.rows import reading
from engine.queries.task import CaseEvent, case_events, possible_assignees, task_detail
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text
from webapp.api.describing import Sent, operation, paged
from webapp.api.schemas import Items, Moment, words
from webapp.api.shapes import CASE_OVER, each, refused, shaped
from webapp.api.tasks import TaskShape, answer_with_task
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.inbox.views import FALLS
from webapp.tasks.page import load_form


class InboxItemShape(TypedDict):
    """`about`: what tells it from others of its kind. `may_claim`: it is free, and you are a candidate; `mine`: you hold it."""

    id: UUID
    name: str
    about: str
    process_name: str
    business_key: str | None
    status: Annotated[str, words(*USER_TASK)]
    assignee: str | None
    assignee_name: str | None
    assigned_at: Moment | None
    priority: int
    due_at: Moment | None
    created_at: Moment
    ended_at: Moment | None
    process_instance_id: UUID
    may_claim: bool
    mine: bool


class InboxShape(TypedDict):
    """`total`: how many the filter finds, counted up to 1,000."""

    items: list[InboxItemShape]
    next_cursor: str | None
    total: int


class InboxCountsShape(TypedDict):
    """Tasks by view, each counted up to 1,000."""

    mine: int
    groups: int
    today: int
    overdue: int
    all: int


class OfferShape(TypedDict):
    """A free task of the same step, for whoever came too late."""

    id: UUID
    name: str
    about: str
    business_key: str | None
    due_at: Moment | None


class NextFreeShape(TypedDict):
    task: OfferShape | None


class TaskStandingShape(TypedDict):
    """How a task stands for you. `purpose`: what it is for, with the values of its case. `suspended_…`: who suspended its case, and why."""

    id: UUID
    status: Annotated[str, words(*USER_TASK)]
    purpose: str
    process_name: str
    process_definition_key: str
    assignee: str | None
    assignee_name: str | None
    assigned_at: Moment | None
    assigned_by: str | None
    candidate_users: list[str]
    candidate_groups: list[str]
    follow_up_at: Moment | None
    ended_at: Moment | None
    ended_by: str | None
    suspended_by_name: str | None
    suspended_at: Moment | None
    suspended_because: str | None
    may_claim: bool
    may_assign: bool
    mine: bool


class TypedVariableShape(TypedDict):
    name: str
    type: str
    value: Any


class CaseEventShape(TypedDict):
    """What a person did to the case of a task. `task_id`: to which of its tasks."""

    at: Moment
    kind: str
    actor: str
    actor_name: str
    task_id: UUID | None
    task_name: str | None
    data: dict[str, Any]


class AssigneeShape(TypedDict):
    username: str
    display_name: str


@blueprint.get("/inbox")
@operation(
    scope="read",
    query={
        "view": Field(one_of(*VIEWS), "groups", about="`mine`: claimed by you; `done`: completed by you."),
        "q": Field(text(longest=200), "", about="Part of the name, of what it is about or of the business key."),
        "process_definition_key": Field(text(), ""),
        "assignee": Field(one_of(*ASSIGNEES), "any"),
        "due": Field(one_of(*DUES), "any"),
        "sort": Field(one_of(*SORTS), None, about="Without it: `priority`; in the view `done`: `ended`."),
        "direction": Field(one_of("asc", "desc"), None, about="Without it: `desc` for priority, age and ended, else `asc`."),
        **paged(usual=25),
    },
    answers=InboxShape,
)
def list_inbox(asked: Sent) -> Response:
    """One list of the inbox, in the order of its page.

    Blanks stand last in both directions, and each task that stays open is on one page exactly once.
    """
    sort = asked["sort"] or ("ended" if asked["view"] == "done" else "priority")
    wanted = InboxFilter(
        view=asked["view"],
        q=asked["q"],
        process=asked["process_definition_key"],
        assignee=asked["assignee"],
        due=asked["due"],
        sort=sort,
        descending=(asked["direction"] or ("desc" if sort in FALLS else "asc")) == "desc",
        after=asked["cursor"],
        zone=_zone(),
        limit=asked["limit"],
    )
    with reading(reader()) as conn:
        page = inbox_page(conn, current_actor(), wanted)
    return jsonify(items=each(page.items, inbox_shape), next_cursor=page.next_cursor, total=page.total)


@blueprint.get("/inbox/counts")
@operation(scope="read", answers=InboxCountsShape)
def count_inbox() -> Response:
    """The numbers beside the views of the inbox."""
    with reading(reader()) as conn:
        return jsonify(shaped(InboxCountsShape, inbox_counts(conn, current_actor(), zone=_zone())))


@blueprint.post("/tasks/take-next")
@operation(scope="tasks", answers=TaskShape, refusals=(Refusal.NOTHING_FREE, *CASE_OVER))
def take_next_task() -> Response:
    """Claim the best free task of your groups: the most important, then the one that is due first."""
    outcome = take_next(command_connection(), actor=current_actor(), request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with_task(outcome.task_id)


@blueprint.get("/tasks/<uuid:task_id>/next-free")
@operation(scope="read", answers=NextFreeShape)
def next_free_task(task_id: UUID) -> Response:
    """The best free task of the same step that you could claim instead of this one; null if there is none."""
    actor = current_actor()
    with reading(reader()) as conn:
        if task_detail(conn, actor, task_id) is None:
            abort(404)
        found = next_free(conn, actor, task_id)
    return jsonify(task=None if found is None else shaped(OfferShape, found))


@blueprint.get("/tasks/<uuid:task_id>/standing")
@operation(scope="read", answers=TaskStandingShape)
def task_standing(task_id: UUID) -> Response:
    """What the page of a task says beside its form: what it is for, whose it is, who could have it, and whether its case rests."""
    found, actor = load_form(task_id), current_actor()
    task = found.task
    may_assign = not task.is_over and (task.mine or is_operator(actor))
    return jsonify(
        shaped(TaskStandingShape, task, purpose=found.purpose, process_definition_key=task.definition_key, may_assign=may_assign)
    )


@blueprint.get("/tasks/<uuid:task_id>/variables")
@operation(scope="read", answers=Items[TypedVariableShape])
def task_variables(task_id: UUID) -> Response:
    """What a task may read, by name: its inputs, its scope and those around it; of one that is over, what its case knew then."""
    found = load_form(task_id)
    return jsonify(items=[variable_shape(name, found.variables[name]) for name in sorted(found.variables)])


@blueprint.get("/tasks/<uuid:task_id>/history")
@operation(scope="read", answers=Items[CaseEventShape])
def task_history(task_id: UUID) -> Response:
    """What people did to the case of a task, newest first, up to 30."""
    with reading(reader()) as conn:
        task = task_detail(conn, current_actor(), task_id)
        if task is None:
            abort(404)
        return jsonify(items=each(case_events(conn, task), case_event_shape))


@blueprint.get("/tasks/<uuid:task_id>/assignees")
@operation(scope="read", answers=Items[AssigneeShape])
def task_assignees(task_id: UUID) -> Response:
    """To whom you may give a task, up to 500: its candidates; for operators, everybody. Nobody, if it is not yours to give."""
    actor = current_actor()
    with reading(reader()) as conn:
        task = task_detail(conn, actor, task_id)
        if task is None:
            abort(404)
        theirs = not task.is_over and (task.mine or is_operator(actor))
        found = possible_assignees(conn, actor, task, anybody=is_operator(actor)) if theirs else []
    return jsonify(items=[shaped(AssigneeShape, person) for person in found])


def _zone() -> str:
    settings: Settings = current_app.config["BATON"]
    return settings.time_zone


def inbox_shape(row: InboxRow) -> InboxItemShape:
    return shaped(InboxItemShape, row, process_instance_id=row.instance_id)


def variable_shape(name: str, variable: Variable) -> TypedVariableShape:
    return {"name": name, "type": variable.type, "value": variable.value}


def case_event_shape(event: CaseEvent) -> CaseEventShape:
    return shaped(CaseEventShape, event, task_id=event.item_id, data=dict(event.data))
