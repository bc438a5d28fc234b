"""What rests: instances and versions suspended and resumed, work paused, listed and let go on."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from flask import Response, jsonify

from engine.commands.outcome import DefinitionResumed, DefinitionSuspended, Refusal, Rejected
from engine.commands.pause import KINDS, pause_work, unpause_work
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.queries.resting import MOST, PauseRow, pauses
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, one_of, request_id, text, truth
from webapp.api.describing import Sent, operation
from webapp.api.instances import InstanceDetailShape, answer_with
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.versions import version_or_404

REASON = Field(
    text(longest=500, empty=True), "", about="Why: shown to whoever is refused because of it.", example="Until the audit is over."
)
KIND = Field(one_of(*KINDS), example="external_task")
TOPIC = Field(text(longest=600, empty=True), "", about="A topic or `*`, a process key, or key/element, as the kind asks.", example="print")
CASE = (Refusal.CALLED_INSTANCE, Refusal.INSTANCE_ENDED, Refusal.INSTANCE_CANCELLING)


class SettledVersionShape(TypedDict):
    """`with_instances`: its running instances go along."""

    id: UUID
    key: str
    version: int
    status: Literal["suspended", "active"]
    with_instances: bool


class PauseShape(TypedDict):
    """`waiting`: how many items wait, counted up to 1,000."""

    kind: Annotated[str, words(*KINDS)]
    topic: str
    paused_by: str
    paused_at: Moment
    reason: str
    waiting: int


class PausedShape(TypedDict):
    kind: Annotated[str, words(*KINDS)]
    topic: str
    outcome: Literal["paused", "unpaused"]


@blueprint.post("/process-instances/<uuid:instance_id>/suspend")
@operation(
    scope="operate", of="show_instance", body={"reason": REASON}, answers=InstanceDetailShape, refusals=(Refusal.ALREADY_SUSPENDED, *CASE)
)
def suspend(instance_id: UUID, sent: Sent) -> Response:
    """Suspend a case as a whole.

    409 `already_suspended` says who, when and why.
    """
    outcome = suspend_instance(command_connection(), instance_id, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with(instance_id)


@blueprint.post("/process-instances/<uuid:instance_id>/resume")
@operation(
    scope="operate", of="show_instance", body={"reason": REASON}, answers=InstanceDetailShape, refusals=(Refusal.NOT_SUSPENDED, *CASE)
)
def resume(instance_id: UUID, sent: Sent) -> Response:
    """Let a suspended case go on.

    409 `not_suspended` says who resumed it last.
    """
    outcome = resume_instance(command_connection(), instance_id, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with(instance_id)


@blueprint.post("/process-definitions/<key>/versions/<int:version>/suspend")
@operation(
    scope="operate",
    body={"reason": REASON, "with_instances": Field(truth, False, about="Its running instances go along.")},
    answers=SettledVersionShape,
    refusals=(Refusal.ALREADY_SUSPENDED, Refusal.DEFINITION_DELETING),
)
def suspend_version(key: str, version: int, sent: Sent) -> Response:
    """Suspend a version: nothing starts by it."""
    outcome = suspend_definition(
        command_connection(),
        version_or_404(key, version).id,
        actor=current_actor(),
        reason=sent["reason"],
        with_cases=sent["with_instances"],
        request_id=request_id(),
    )
    return refused(outcome) if isinstance(outcome, Rejected) else _settled(outcome, "suspended")


@blueprint.post("/process-definitions/<key>/versions/<int:version>/resume")
@operation(
    scope="operate",
    body={"reason": REASON},
    answers=SettledVersionShape,
    refusals=(Refusal.NOT_SUSPENDED, Refusal.DEFINITION_DELETING),
)
def resume_version(key: str, version: int, sent: Sent) -> Response:
    """Let a version start again; the instances that went along go on."""
    outcome = resume_definition(
        command_connection(), version_or_404(key, version).id, actor=current_actor(), request_id=request_id(), **sent
    )
    return refused(outcome) if isinstance(outcome, Rejected) else _settled(outcome, "active")


@blueprint.get("/pauses")
@operation(scope="read", needs=("see", "work"), answers=Listed[PauseShape])
def list_pauses() -> Response:
    """What is paused, by whom and why."""
    with reading(reader()) as conn:
        return jsonify(items=each(pauses(conn, tenant_id=current_actor().tenant_id), pause_shape), next_cursor=None)


@blueprint.post("/pauses")
@operation(
    scope="operate",
    body={"kind": KIND, "topic": TOPIC, "reason": REASON},
    answers=PausedShape,
    refusals=(Refusal.ALREADY_PAUSED, Refusal.NOT_FOUND),
)
def pause(sent: Sent) -> Response:
    """Pause a kind of work: nothing of it is acquired.

    409 `already_paused` says who, when and why.
    """
    outcome = pause_work(
        command_connection(), sent["kind"], sent["topic"], actor=current_actor(), reason=sent["reason"], request_id=request_id()
    )
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(kind=outcome.kind, topic=outcome.topic, outcome="paused")


@blueprint.post("/pauses/remove")
@operation(
    scope="operate",
    body={"kind": KIND, "topic": TOPIC, "reason": REASON},
    answers=PausedShape,
    refusals=(Refusal.NOT_PAUSED, Refusal.NOT_FOUND),
)
def unpause(sent: Sent) -> Response:
    """Take a pause back.

    409 `not_paused` says who took it back last.
    """
    outcome = unpause_work(
        command_connection(), sent["kind"], sent["topic"], actor=current_actor(), reason=sent["reason"], request_id=request_id()
    )
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(kind=outcome.kind, topic=outcome.topic, outcome="unpaused")


def pause_shape(row: PauseRow) -> PauseShape:
    """`waiting` is counted up to `MOST`."""
    return {
        "kind": row.kind,
        "topic": row.topic,
        "paused_by": row.paused_by,
        "paused_at": moment(row.paused_at),
        "reason": row.reason,
        "waiting": min(row.waits or 0, MOST),
    }


def _settled(outcome: DefinitionSuspended | DefinitionResumed, status: str) -> Response:
    return jsonify(id=outcome.definition_id, key=outcome.key, version=outcome.version, status=status, with_instances=outcome.with_cases)
