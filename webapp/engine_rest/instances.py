"""Process instances that run, what stands in them, and their variables; and all that were, under /history."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from flask import Response, jsonify

from engine.commands.cancel import cancel_instance
from engine.commands.suspend import resume_instance, suspend_instance
from engine.core.values import Variable
from engine.queries.rest.executions import Execution, execution, local_variables, standings
from engine.queries.rest.instances import PAST, RUNNING, RestInstance, count_instances, rest_instance, rest_instances
from engine.queries.rest.listing import Listing
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, done, known, missing, told
from webapp.engine_rest.listing import listed, wanted
from webapp.engine_rest.reading import Sent, body, query, uuid_of
from webapp.engine_rest.shapes import instance_shape, past_shape
from webapp.engine_rest.trees import tree
from webapp.engine_rest.values import bytes_of, file_of, write_value, write_variables

REASON = "asked for through /engine-rest"


@blueprint.get("/process-instance")
@blueprint.get("/process-instance/")
def list_instances() -> Response:
    return jsonify([instance_shape(each) for each in _all(RUNNING, query())])


@blueprint.post("/process-instance")
def query_instances() -> Response:
    return jsonify([instance_shape(each) for each in _all(RUNNING, body(), query())])


@blueprint.get("/process-instance/count")
def count_running() -> Response:
    return _count(RUNNING, query())


@blueprint.post("/process-instance/count")
def count_running_by_body() -> Response:
    return _count(RUNNING, body())


@blueprint.get("/process-instance/<instance_id>")
def show_instance(instance_id: str) -> Response:
    return jsonify(instance_shape(running(instance_id)))


@blueprint.delete("/process-instance/<instance_id>")
def delete_instance(instance_id: str) -> Response:
    """It is cancelled; its history stays."""
    found = running(instance_id)
    outcome = cancel_instance(command_connection(), found.id, actor=current_actor(), reason=REASON, request_id=None)
    known(outcome, what=f"delete process instance {found.id}")
    return done()


@blueprint.put("/process-instance/<instance_id>/suspended")
def suspend(instance_id: str) -> Response:
    found, suspended = running(instance_id), body().truth("suspended")
    if suspended is None:
        raise told(400, "suspended: expected true or false, found none")
    command = suspend_instance if suspended else resume_instance
    if found.suspended != suspended:
        known(command(command_connection(), found.id, actor=current_actor(), reason=REASON), what=f"suspend process instance {found.id}")
    return done()


@blueprint.get("/process-instance/<instance_id>/activity-instances")
def activity_instances(instance_id: str) -> Response:
    found = running(instance_id)
    with listed(), reading(reader()) as conn:
        standing = standings(conn, found.id)
    return jsonify(tree(command_connection(), found, standing))


# ---- variables


@blueprint.get("/process-instance/<instance_id>/variables")
def instance_variables(instance_id: str) -> Response:
    return jsonify(write_variables(_variables(_process_scope(instance_id))))


@blueprint.get("/process-instance/<instance_id>/variables/<name>")
def instance_variable(instance_id: str, name: str) -> Response:
    return jsonify(write_value(named(_variables(_process_scope(instance_id)), name)))


@blueprint.get("/process-instance/<instance_id>/variables/<name>/data")
def instance_variable_data(instance_id: str, name: str) -> Response:
    return data_of(named(_variables(_process_scope(instance_id)), name), name)


@blueprint.get("/execution/<execution_id>")
def show_execution(execution_id: str) -> Response:
    found = _execution(execution_id)
    return jsonify(id=found.id, processInstanceId=found.instance_id, ended=False, tenantId=found.tenant_id or None)


@blueprint.get("/execution/<execution_id>/localVariables")
def execution_variables(execution_id: str) -> Response:
    """Of a scope or of a token: an instance's id stands for its process scope."""
    return jsonify(write_variables(_variables(_execution(execution_id))))


@blueprint.get("/execution/<execution_id>/localVariables/<name>")
def execution_variable(execution_id: str, name: str) -> Response:
    return jsonify(write_value(named(_variables(_execution(execution_id)), name)))


@blueprint.get("/execution/<execution_id>/localVariables/<name>/data")
def execution_variable_data(execution_id: str, name: str) -> Response:
    return data_of(named(_variables(_execution(execution_id)), name), name)


def named(variables: Mapping[str, Variable], name: str) -> Variable:
    if name not in variables:
        raise told(404, f"variable with name {name} does not exist")
    return variables[name]


def data_of(variable: Variable, name: str) -> Response:
    """The bytes of a file or of bytes, for saving: never a page of ours, whatever their type says."""
    content = bytes_of(variable)
    if content is None:
        raise told(400, f"Value of variable {name} is not a binary value")
    response = Response(content, mimetype="application/octet-stream")
    filename = (file_of(variable) or {}).get("filename") or "data"
    response.headers.set("Content-Disposition", "attachment", filename=filename)
    return response


def _variables(found: Execution) -> dict[str, Variable]:
    return local_variables(reader(), found)


def _process_scope(instance_id: str) -> Execution:
    found = _execution(instance_id, what="process instance")
    if found.kind != "instance":
        raise missing("process instance", instance_id)
    return found


def _execution(execution_id: str, *, what: str = "execution") -> Execution:
    id = uuid_of(execution_id)
    found = execution(reader(), current_actor(), id) if id is not None else None
    if found is None:
        raise missing(what, execution_id)
    return found


# ---- all that were


@blueprint.get("/history/process-instance")
def list_past() -> Response:
    return jsonify([past_shape(each) for each in _all(PAST, query())])


@blueprint.post("/history/process-instance")
def query_past() -> Response:
    return jsonify([past_shape(each) for each in _all(PAST, body(), query())])


@blueprint.get("/history/process-instance/count")
def count_past() -> Response:
    return _count(PAST, query())


@blueprint.post("/history/process-instance/count")
def count_past_by_body() -> Response:
    return _count(PAST, body())


@blueprint.get("/history/process-instance/<instance_id>")
def show_past(instance_id: str) -> Response:
    return jsonify(past_shape(_one(PAST, instance_id)))


def running(instance_id: str) -> RestInstance:
    return _one(RUNNING, instance_id)


def _one(listing: Listing, instance_id: str) -> RestInstance:
    id = uuid_of(instance_id)
    found = rest_instance(reader(), current_actor(), listing, id) if id is not None else None
    if found is None:
        raise missing("process instance", instance_id)
    return found


def instance_of(instance_id: UUID) -> RestInstance | None:
    """One that this actor may see, ended or not."""
    return rest_instance(reader(), current_actor(), PAST, instance_id)


def _all(listing: Listing, sent: Sent, page: Sent | None = None) -> list[RestInstance]:
    asked = wanted(sent, listing, page=page)
    with listed(), reading(reader()) as conn:
        return rest_instances(conn, current_actor(), listing, asked)


def _count(listing: Listing, sent: Sent) -> Response:
    asked = wanted(sent, listing)
    with reading(reader()) as conn:
        return jsonify(count=count_instances(conn, current_actor(), listing, asked))
