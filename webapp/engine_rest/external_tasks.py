"""What a worker answers for the external tasks that it holds, and what operators do to them. Fetching is in fetching.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from flask import Response, current_app

from engine.commands.external_tasks import (
    complete_external_task,
    fail_external_task,
    renew_external_task,
    throw_external_error,
)
from engine.commands.outcome import Lease
from engine.commands.worker_tasks import held_lease, lock_external_task, set_priority, set_retries, unlock_external_task
from engine.config import Settings
from webapp.auth.identity import current_actor
from webapp.db import command_connection
from webapp.engine_rest.blueprint import blueprint, done, known, missing, told
from webapp.engine_rest.reading import Sent, body, uuid_of
from webapp.outside import note_worker

LONGEST_LOCK = 24 * 3_600_000
"""Milliseconds. A worker that takes longer extends its lock."""

WHAT = 1_000_000  # characters of an error's message or details; what is kept of them is less


@blueprint.post("/external-task/<task_id>/complete")
def complete_task(task_id: str) -> Response:
    sent = body()
    variables, local = sent.variables("variables"), sent.variables("localVariables")
    return _under_lease(task_id, sent, "complete", lambda lease: complete_external_task(
        command_connection(), lease.item_id, actor=current_actor(), lease_number=lease.number, variables=variables, local=local,
        keeps=True))  # fmt: skip


@blueprint.post("/external-task/<task_id>/failure")
def fail_task(task_id: str) -> Response:
    """Missing retries are none, which is an incident; a missing timeout is none either: the next attempt may begin at once."""
    sent = body()
    retries = sent.whole("retries", 0, most=1_000_000)
    milliseconds = sent.whole("retryTimeout", 0, least=0, most=2**53)
    error = sent.text("errorMessage", longest=WHAT) or "The worker reported a failure without a message."
    detail = sent.text("errorDetails", "", longest=WHAT) or ""
    sent.variables("variables"), sent.variables("localVariables")  # read, so that what is wrong is told; a failure keeps none
    return _under_lease(task_id, sent, "fail", lambda lease: fail_external_task(
        command_connection(), lease.item_id, actor=current_actor(), lease_number=lease.number, error=error, detail=detail,
        retry_in=(milliseconds or 0) / 1000, attempts_left=retries))  # fmt: skip


@blueprint.post("/external-task/<task_id>/bpmnError")
def throw_bpmn_error(task_id: str) -> Response:
    sent = body()
    code = sent.need("errorCode")
    message = sent.text("errorMessage", "") or ""
    variables = sent.variables("variables")
    return _under_lease(task_id, sent, "throw a BPMN error from", lambda lease: throw_external_error(
        command_connection(), lease.item_id, actor=current_actor(), lease_number=lease.number, code=code, message=message,
        variables=variables))  # fmt: skip


@blueprint.post("/external-task/<task_id>/lock")
def lock_task(task_id: str) -> Response:
    sent = body()
    worker_id, seconds = sent.need("workerId"), milliseconds(sent, "lockDuration") / 1000
    settings: Settings = current_app.config["BATON"]
    note_worker(worker_id)
    known(
        lock_external_task(
            command_connection(), _id(task_id), actor=current_actor(), worker_id=worker_id, lease_seconds=seconds,
            forgiven=settings.forgiven_topics,
        ),
        what=f"lock external task {task_id}",
    )  # fmt: skip
    return done()


@blueprint.post("/external-task/<task_id>/extendLock")
def extend_lock(task_id: str) -> Response:
    sent = body()
    seconds = milliseconds(sent, "newDuration") / 1000
    return _under_lease(task_id, sent, "extend the lock of", lambda lease: renew_external_task(
        command_connection(), lease.item_id, actor=current_actor(), lease_number=lease.number, lease_seconds=seconds))  # fmt: skip


@blueprint.post("/external-task/<task_id>/unlock")
def unlock_task(task_id: str) -> Response:
    """Whatever body, and whether or not anybody holds it."""
    known(unlock_external_task(command_connection(), _id(task_id), actor=current_actor()), what=f"unlock external task {task_id}")
    return done()


@blueprint.put("/external-task/<task_id>/retries")
def set_task_retries(task_id: str) -> Response:
    retries = needed(body(), "retries", least=0)
    known(set_retries(command_connection(), _id(task_id), actor=current_actor(), retries=retries), what=f"set retries of {task_id}")
    return done()


@blueprint.put("/external-task/<task_id>/priority")
def set_task_priority(task_id: str) -> Response:
    priority = needed(body(), "priority", least=-(2**63))
    known(set_priority(command_connection(), _id(task_id), actor=current_actor(), priority=priority), what=f"set priority of {task_id}")
    return done()


# ---- what they share


def milliseconds(sent: Sent, key: str) -> int:
    """A duration that must be there: more than none, a day at most."""
    return needed(sent, key, least=1, most=LONGEST_LOCK)


def needed(sent: Sent, key: str, *, least: int, most: int = 2**63 - 1) -> int:
    found = sent.whole(key, least=least, most=most)
    if found is None:
        raise told(400, f"{key}: expected a whole number, found none")
    return found


def _id(task_id: str) -> UUID:
    found = uuid_of(task_id)
    if found is None:
        raise missing("External task", task_id)
    return found


def _under_lease(task_id: str, sent: Sent, verb: str, run: Callable[[Lease], Any]) -> Response:
    """Find the lease under which this worker holds the task, and answer under its number."""
    what = f"{verb} external task {task_id}"
    worker_id = sent.need("workerId")
    lease = known(held_lease(command_connection(), _id(task_id), actor=current_actor(), worker_id=worker_id), what=what)
    known(run(lease), what=what)
    return done()
