"""fetchAndLock: tasks of several topics for one worker, at once or when there are any (waiting.py)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from flask import Response, jsonify, request

from engine.commands.external_tasks import MOST_TASKS, LeasedTask, acquire_external_tasks
from engine.core.values import Variable, accept
from webapp.auth.identity import current_actor
from webapp.db import command_connection
from webapp.engine_rest.blueprint import blueprint, known, told
from webapp.engine_rest.external_tasks import milliseconds, needed
from webapp.engine_rest.reading import Sent, body
from webapp.engine_rest.times import written
from webapp.engine_rest.values import write_variables
from webapp.engine_rest.waiting import LONGEST_SECONDS, Waiter, polls
from webapp.outside import note_worker
from webapp.parking import PARKS, TICKET, Parked, has_gone

MOST_ASKED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Topic:
    """What is wanted of one topic. `chosen`: which of its tasks (engine.db.acquire.CHOSEN); None: any of them."""

    name: str
    seconds: float
    variables: frozenset[str] | None
    local: bool
    extensions: bool
    chosen: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read and checked."""

    worker_id: str
    limit: int
    topics: dict[str, Topic]
    wait_seconds: float


@blueprint.post("/external-task/fetchAndLock")
def fetch_and_lock() -> Response:
    """At once where there is something, else when there is, or with nothing when the time is over."""
    waiter = request.environ.get(TICKET)
    if waiter is not None:
        return _again(waiter)
    asked = read(body())
    if has_gone(request.environ):
        return jsonify([])
    tasks = fetched(asked)
    if tasks or not asked.wait_seconds or not request.environ.get(PARKS):
        return jsonify(tasks)
    waiter = _waiter(asked)
    if not polls().join(waiter):
        return jsonify([])
    raise Parked(waiter)


def _again(waiter: Waiter) -> Response:
    """Called: there was something a moment ago, or the time is over. Whoever else had it, the others wait on."""
    if waiter.over or has_gone(request.environ):
        return jsonify([])
    tasks = fetched(waiter.asked)
    if not tasks:
        raise Parked(waiter)
    return jsonify(tasks)


def _waiter(asked: Asked) -> Waiter:
    actor = current_actor()
    topics = {(actor.tenant_id, topic.name): topic.chosen is not None for topic in asked.topics.values()}
    return Waiter(polls(), asked, (actor.tenant_id, actor.username), topics, time.monotonic() + asked.wait_seconds)


def read(sent: Sent) -> Asked:
    """Raises what ends the request with 400. A topic that is named twice counts as it was named last."""
    topics = [_topic(each) for each in sent.objects("topics", most=100)]
    return Asked(
        sent.need("workerId"),
        min(needed(sent, "maxTasks", least=1, most=MOST_ASKED), MOST_TASKS),
        {topic.name: topic for topic in topics if topic is not None},
        min(max(0, sent.whole("asyncResponseTimeout", 0, least=-(2**63), most=2**63 - 1) or 0) / 1000, LONGEST_SECONDS),
    )


def fetched(asked: Asked) -> list[dict[str, Any]]:
    """What is there now, leased to the worker that asked."""
    if not asked.topics:
        return []
    note_worker(asked.worker_id)
    tasks = known(
        acquire_external_tasks(
            command_connection(),
            actor=current_actor(),
            worker_id=asked.worker_id,
            topics={topic.name: topic.seconds for topic in asked.topics.values()},
            limit=asked.limit,
            chosen={topic.name: topic.chosen for topic in asked.topics.values() if topic.chosen},
        ),
        what="fetch and lock",
    )
    return [leased_shape(task, asked.topics[task.topic], asked.worker_id) for task in tasks]


def leased_shape(task: LeasedTask, topic: Topic, worker_id: str) -> dict[str, Any]:
    """Every key, null where there is nothing: some clients raise where one is missing."""
    wanted = {
        name: Variable(task.types[name], value)
        for name, value in task.variables.items()
        if (topic.variables is None or name in topic.variables) and (not topic.local or name in task.inputs)
    }
    shape = {
        "activityId": task.element_id,
        "activityInstanceId": f"{task.element_id}:{task.token_id}",
        "errorMessage": task.last_error,
        "errorDetails": task.error_detail,
        "executionId": task.token_id,
        "id": task.id,
        "lockExpirationTime": written(task.lease_expires_at),
        "processDefinitionId": task.definition_id,
        "processDefinitionKey": task.definition_key,
        "processDefinitionVersionTag": task.version_tag,
        "processInstanceId": task.instance_id,
        "tenantId": current_actor().tenant_id or None,
        "retries": task.retries,
        "suspended": False,
        "workerId": worker_id,
        "priority": task.priority,
        "topicName": task.topic,
        "businessKey": task.business_key,
        "createTime": written(task.created_at),
        "variables": write_variables(wanted),
    }
    return shape | ({"extensionProperties": dict(task.headers)} if topic.extensions else {})


def _topic(sent: Sent) -> Topic | None:
    """None: it names a tenant that is not the asker's, so nothing of it is there."""
    tenants, without = sent.names("tenantIdIn"), sent.truth("withoutTenantId", False)
    tenant = current_actor().tenant_id
    if (tenants and tenant not in tenants) or (without and tenant):
        return None
    variables = sent.names("variables")
    return Topic(
        name=sent.need("topicName"),
        seconds=milliseconds(sent, "lockDuration") / 1000,
        variables=None if variables is None else frozenset(variables),
        local=bool(sent.truth("localVariables", False)),
        extensions=bool(sent.truth("includeExtensionProperties", False)),
        chosen=_chosen(sent) or None,
    )


def _chosen(sent: Sent) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (key := sent.text("businessKey")) is not None:
        found["business_key"] = key
    if (tag := sent.text("processDefinitionVersionTag")) is not None:
        found["version_tag"] = tag
    for name, one, many in (
        ("definition_ids", "processDefinitionId", "processDefinitionIdIn"),
        ("definition_keys", "processDefinitionKey", "processDefinitionKeyIn"),
    ):
        each, several = sent.text(one), sent.names(many)
        if each is not None:
            found[name] = [each] if not several or each in several else []
        elif several:
            found[name] = several
    wanted = sent.values.get("processVariables") or {}
    if not isinstance(wanted, dict):
        raise told(400, "processVariables: expected an object of values, found something else")
    accepted, problems = accept(wanted)
    if problems:
        raise told(400, "; ".join(f"processVariables {name!r}: {text}" for name, text in problems).encode("utf-8", "replace").decode())
    return found | ({"variables": {name: variable.value for name, variable in accepted.items()}} if accepted else {})
