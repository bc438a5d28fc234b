"""External tasks looked at: lists and counts by filters, one of them, topics, what failed, and retries of many."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, jsonify

from engine.commands.may import may
from engine.commands.worker_tasks import set_retries
from engine.ids import new_id
from engine.queries.rest.external_tasks import (
    EXTERNAL_TASKS,
    RestExternalTask,
    count_external_tasks,
    rest_external_task,
    rest_external_tasks,
    topic_names,
)
from engine.queries.rest.listing import MOST, Wanted
from engine.queries.rows import reading
from webapp.auth.identity import current_actor, identity
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, done, known, missing, told
from webapp.engine_rest.external_tasks import needed
from webapp.engine_rest.listing import wanted
from webapp.engine_rest.reading import Sent, body, query, uuid_of
from webapp.engine_rest.times import written

OF_TOPICS = {"withLockedTasks": "locked", "withUnlockedTasks": "notLocked", "withRetriesLeft": "withRetriesLeft"}


@blueprint.get("/external-task")
def list_external_tasks() -> Response:
    return _list(query())


@blueprint.post("/external-task")
def query_external_tasks() -> Response:
    return _list(body(), query())


@blueprint.get("/external-task/count")
def count_all_external_tasks() -> Response:
    return _count(query())


@blueprint.post("/external-task/count")
def count_external_tasks_by_body() -> Response:
    return _count(body())


@blueprint.get("/external-task/topic-names")
def list_topic_names() -> Response:
    _operators()
    sent = query()
    asked = Wanted({name: True for key, name in OF_TOPICS.items() if sent.truth(key)})
    with reading(reader()) as conn:
        return jsonify(topic_names(conn, asked, tenant_id=current_actor().tenant_id))


@blueprint.get("/external-task/<task_id>")
def show_external_task(task_id: str) -> Response:
    return jsonify(external_task_shape(_task(task_id)))


@blueprint.get("/external-task/<task_id>/errorDetails")
def show_error_details(task_id: str) -> Response:
    """As text; 204 where there are none."""
    detail = _task(task_id).error_detail
    return Response(detail, mimetype="text/plain") if detail else done()


@blueprint.put("/external-task/retries")
def set_retries_of_many() -> Response:
    _set_retries()
    return done()


@blueprint.post("/external-task/retries-async")
def set_retries_of_many_later() -> Response:
    """Done at once, and answered as the batch that Camunda would have made of it."""
    who, many = identity(), _set_retries()
    assert who is not None, "guests are refused before"
    at = written(who.now)
    batch = {
        "id": new_id(),
        "type": "set-external-task-retries",
        "totalJobs": many,
        "jobsCreated": many,
        "batchJobsPerSeed": 100,
        "invocationsPerBatchJob": 1,
        "seedJobDefinitionId": None,
        "monitorJobDefinitionId": None,
        "batchJobDefinitionId": None,
        "suspended": False,
        "tenantId": who.actor.tenant_id or None,
        "createUserId": who.actor.username,
        "startTime": at,
        "executionStartTime": at,
    }
    return jsonify(batch)


def external_task_shape(task: RestExternalTask) -> dict[str, Any]:
    return {
        "activityId": task.element_id,
        "activityInstanceId": f"{task.element_id}:{task.token_id}",
        "errorMessage": task.last_error,
        "errorDetails": task.error_detail,
        "executionId": task.token_id,
        "id": task.id,
        "lockExpirationTime": written(task.locked_until),
        "processDefinitionId": task.definition_id,
        "processDefinitionKey": task.definition_key,
        "processDefinitionVersionTag": task.version_tag,
        "processInstanceId": task.instance_id,
        "tenantId": task.tenant_id or None,
        "retries": task.retries,
        "suspended": task.suspended,
        "workerId": task.worker_id,
        "priority": task.priority,
        "topicName": task.topic,
        "businessKey": task.business_key,
        "createTime": written(task.created_at),
    }


# ---- what they share


def _operators() -> None:
    if not may(current_actor(), "work", "external_task"):
        raise told(403, "not allowed: external tasks are for operators")


def _list(sent: Sent, page: Sent | None = None) -> Response:
    _operators()
    asked = wanted(sent, EXTERNAL_TASKS, page=page)
    with reading(reader()) as conn:
        found = rest_external_tasks(conn, asked, tenant_id=current_actor().tenant_id)
    return jsonify([external_task_shape(task) for task in found])


def _count(sent: Sent) -> Response:
    _operators()
    asked = wanted(sent, EXTERNAL_TASKS)
    with reading(reader()) as conn:
        return jsonify(count=count_external_tasks(conn, asked, tenant_id=current_actor().tenant_id))


def _task(task_id: str) -> RestExternalTask:
    _operators()
    id = uuid_of(task_id)
    found = rest_external_task(reader(), id, tenant_id=current_actor().tenant_id) if id is not None else None
    if found is None:
        raise missing("External task", task_id)
    return found


def _set_retries() -> int:
    """Of all that are named by id, by instance or by a query, MOST at a time; each is a change of its own.

    None is changed unless all that are named by id are there.
    """
    _operators()
    sent = body()
    retries, named = needed(sent, "retries", least=0), sent.names("externalTaskIds") or []
    found = _chosen(sent, named)
    for task_id in named:
        if uuid_of(task_id) not in found:
            raise missing("External task", task_id)
    for each in found:
        known(set_retries(command_connection(), each, actor=current_actor(), retries=retries), what=f"set retries of {each}")
    return len(found)


def _chosen(sent: Sent, named: list[str]) -> dict[UUID, RestExternalTask]:
    queries = [Sent({"externalTaskIdIn": named})] if named else []
    if instances := sent.names("processInstanceIds"):
        queries.append(Sent({"processInstanceIdIn": instances}))
    asked = sent.values.get("externalTaskQuery")
    if asked is not None:
        if not isinstance(asked, dict):
            raise told(400, "externalTaskQuery: expected an object, found something else")
        queries.append(Sent(asked))
    if not queries:
        raise told(400, "externalTaskIds: expected ids, processInstanceIds or an externalTaskQuery, found none")
    with reading(reader()) as conn:
        lists = [rest_external_tasks(conn, wanted(each, EXTERNAL_TASKS), tenant_id=current_actor().tenant_id) for each in queries]
    found = {task.id: task for tasks in lists for task in tasks}
    if any(len(tasks) >= MOST for tasks in lists):
        raise told(400, f"expected fewer than {MOST:,} tasks at a time, found as many or more")
    return found
