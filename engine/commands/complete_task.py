"""Completing a user task: its assignee ends it, and the case goes on, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from engine.commands.may import TaskView, may
from engine.commands.outcome import Actor, FieldProblem, Refusal, Rejected, TaskCompleted
from engine.commands.requests import request_for
from engine.commands.step import NEVER, Repeated, Step, answer, marked, take
from engine.commands.transaction import Connection, command
from engine.core.effects import Effects, NewTask
from engine.core.snapshot import Completed
from engine.core.values import accept
from engine.db.load import Leaf, Loaded, moment


@command
def complete_task(
    conn: Connection, task_id: UUID, *, actor: Actor, variables: Mapping[str, Any], request_id: str | None
) -> TaskCompleted | Rejected:
    """Complete a task that is mine, with values already typed by whoever read the form.

    Locks: the root, the task; lock first where the case branches or opens a subscription.
    Refuses: NOT_FOUND, NOT_ALLOWED, ALREADY_COMPLETED, ALREADY_CANCELLED, INSTANCE_…, NOT_CLAIMED, NOT_YOURS, INVALID.
    """
    request = request_for(actor, request_id, "complete_task", task_id, variables)
    accepted, problems = accept(variables)
    invalid = tuple(FieldProblem(name, text) for name, text in problems)
    step = Step(
        kind="user_task",
        leaf_id=task_id,
        actor=actor.username,
        judge=lambda loaded: _judge(loaded, actor, invalid),
        trigger=lambda loaded: Completed(_token(loaded), accepted, "task_completed", {"item_id": str(task_id)}),
        outcome=lambda loaded, effects: _outcome(task_id, loaded, effects, actor),
        request=request,
    )
    match take(conn, step):
        case Rejected() as rejected:
            refused: TaskCompleted | Rejected = answer(conn, "complete_task", actor, rejected, request)
            return refused
        case Repeated() as repeated:
            before: TaskCompleted | Rejected = repeated.outcome
            return before
        case taken:
            done = _outcome(task_id, taken.loaded, taken.effects, actor)
            return TaskCompleted(done.task_id, done.instance_id, done.root_id, taken.at, done.next_task_id)


def _judge(loaded: Loaded | None, actor: Actor, invalid: tuple[FieldProblem, ...]) -> Rejected | None:
    """R13: may not see it, may not do it, the world moved on; and then what was sent."""
    if loaded is None or not may(actor, "see", view := task_view(loaded.leaf)):
        return Rejected(Refusal.NOT_FOUND)
    if not may(actor, "complete", view):
        return Rejected(Refusal.NOT_ALLOWED)
    task, row = loaded.leaf, loaded.leaf.detail
    match task.status:
        case "completed" | "cancelled":
            refusal = Refusal.ALREADY_COMPLETED if task.status == "completed" else Refusal.ALREADY_CANCELLED
            return Rejected(refusal, by=row["ended_by"], at=moment(row["ended_at"]), item_id=task.id)
        case "open":
            return marked(loaded) or Rejected(Refusal.NOT_CLAIMED, item_id=task.id)
    if task.fence != actor.username:
        return Rejected(Refusal.NOT_YOURS, by=row["assignee"], at=moment(row["assigned_at"]), item_id=task.id)
    if refused := marked(loaded):
        return refused
    if invalid:
        return Rejected(Refusal.INVALID, problems=invalid, item_id=task.id)
    return None


def task_view(task: Leaf) -> TaskView:
    """What permission needs to know of a loaded task."""
    row = task.detail
    return TaskView(row["tenant_id"], row["assignee"], tuple(row["candidate_users"]), tuple(row["candidate_groups"]))


def _token(loaded: Loaded) -> UUID:
    assert loaded.leaf.token_id is not None, "a claimed task has a token"
    return loaded.leaf.token_id


def _outcome(task_id: UUID, loaded: Loaded, effects: Effects, actor: Actor) -> TaskCompleted:
    assert loaded.snapshot is not None, "a task belongs to an instance"
    following = next_task(effects.tasks, actor)
    return TaskCompleted(task_id, loaded.snapshot.instance_id, loaded.snapshot.root_id, NEVER, following)


def next_task(tasks: Iterable[NewTask], actor: Actor) -> UUID | None:
    """The first task that this command opened and assigned to the actor."""
    mine = [task.id for task in tasks if task.assignee == actor.username]
    return mine[0] if mine else None
