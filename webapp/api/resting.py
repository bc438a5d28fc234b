"""What rests: instances and versions suspended and resumed, work paused, listed and let go on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.may import may
from engine.commands.outcome import DefinitionResumed, DefinitionSuspended, Rejected
from engine.commands.pause import KINDS, pause_work, unpause_work
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.queries.resting import MOST, PauseRow, pauses
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, json_body, one_of, request_id, text, truth
from webapp.api.instances import answer_with
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.versions import version_or_404

REASON = Field(text(longest=500, empty=True), "")


@blueprint.post("/process-instances/<uuid:instance_id>/suspend")
def suspend(instance_id: UUID) -> Response:
    """`{"reason"}`; the instance. 409 `already_suspended` with who, when and why."""
    sent = json_body(reason=REASON)
    outcome = suspend_instance(command_connection(), instance_id, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with(instance_id)


@blueprint.post("/process-instances/<uuid:instance_id>/resume")
def resume(instance_id: UUID) -> Response:
    """`{"reason"}`; the instance. 409 `not_suspended` with who resumed it last."""
    sent = json_body(reason=REASON)
    outcome = resume_instance(command_connection(), instance_id, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else answer_with(instance_id)


@blueprint.post("/process-definitions/<key>/versions/<int:version>/suspend")
def suspend_version(key: str, version: int) -> Response:
    """`{"reason", "with_instances"}`: nothing starts by it; its running instances go along, if so asked."""
    sent = json_body(reason=REASON, with_instances=Field(truth, False))
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
def resume_version(key: str, version: int) -> Response:
    """`{"reason"}`: it starts again, and the instances that went along go on."""
    sent = json_body(reason=REASON)
    outcome = resume_definition(
        command_connection(), version_or_404(key, version).id, actor=current_actor(), request_id=request_id(), **sent
    )
    return refused(outcome) if isinstance(outcome, Rejected) else _settled(outcome, "active")


@blueprint.get("/pauses")
def list_pauses() -> Response:
    actor = current_actor()
    if not may(actor, "see", "work"):
        abort(403)
    with reading(reader()) as conn:
        return jsonify(items=each(pauses(conn, tenant_id=actor.tenant_id), pause_shape), next_cursor=None)


@blueprint.post("/pauses")
def pause() -> Response:
    """`{"kind", "topic", "reason"}`; 409 `already_paused` with who, when and why."""
    sent = json_body(kind=Field(one_of(*KINDS)), topic=Field(text(longest=600, empty=True), ""), reason=REASON)
    outcome = pause_work(
        command_connection(), sent["kind"], sent["topic"], actor=current_actor(), reason=sent["reason"], request_id=request_id()
    )
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(kind=outcome.kind, topic=outcome.topic, outcome="paused")


@blueprint.post("/pauses/remove")
def unpause() -> Response:
    """`{"kind", "topic", "reason"}`; 409 `not_paused` with who took it back last."""
    sent = json_body(kind=Field(one_of(*KINDS)), topic=Field(text(longest=600, empty=True), ""), reason=REASON)
    outcome = unpause_work(
        command_connection(), sent["kind"], sent["topic"], actor=current_actor(), reason=sent["reason"], request_id=request_id()
    )
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(kind=outcome.kind, topic=outcome.topic, outcome="unpaused")


def pause_shape(row: PauseRow) -> dict[str, Any]:
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
