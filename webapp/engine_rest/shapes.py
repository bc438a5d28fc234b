"""The JSON of what is listed and shown beside external tasks: every key that Camunda 7 has, null where there is nothing."""

from __future__ import annotations

from typing import Any

from engine.queries.rest.definitions import RestDefinition, RestDeployment
from engine.queries.rest.instances import RestInstance
from engine.queries.rest.jobs import RestJob
from engine.queries.rest.tasks import RestTask
from webapp.engine_rest.times import written


def instance_shape(found: RestInstance) -> dict[str, Any]:
    return {
        "links": [],
        "id": found.id,
        "definitionId": found.definition_id,
        "definitionKey": found.definition_key,
        "businessKey": found.business_key,
        "caseInstanceId": None,
        "ended": found.ended_at is not None,
        "suspended": found.suspended,
        "tenantId": found.tenant_id or None,
    }


def past_shape(found: RestInstance) -> dict[str, Any]:
    took = found.ended_at - found.started_at if found.ended_at else None
    return {
        "id": found.id,
        "businessKey": found.business_key,
        "processDefinitionId": found.definition_id,
        "processDefinitionKey": found.definition_key,
        "processDefinitionName": found.definition_name,
        "processDefinitionVersion": found.version,
        "startTime": written(found.started_at),
        "endTime": written(found.ended_at),
        "removalTime": None,
        "durationInMillis": int(took.total_seconds() * 1000) if took is not None else None,
        "startUserId": found.started_by,
        "startActivityId": None,
        "deleteReason": found.reason,
        "rootProcessInstanceId": found.root_id,
        "superProcessInstanceId": found.parent_id,
        "superCaseInstanceId": None,
        "caseInstanceId": None,
        "tenantId": found.tenant_id or None,
        "state": _state(found),
        "restartedProcessInstanceId": None,
    }


def _state(found: RestInstance) -> str:
    match found.status:
        case "completed":
            return "COMPLETED"
        case "cancelled":
            return "EXTERNALLY_TERMINATED"
    return "SUSPENDED" if found.suspended else "ACTIVE"


def definition_shape(found: RestDefinition) -> dict[str, Any]:
    return {
        "id": found.id,
        "key": found.key,
        "category": None,
        "description": found.documentation or None,
        "name": found.name or None,
        "version": found.version,
        "resource": found.resource_name,
        "deploymentId": found.deployment_id,
        "diagram": None,
        "suspended": found.status == "suspended",
        "tenantId": found.tenant_id or None,
        "versionTag": found.version_tag,
        "historyTimeToLive": None,
        "startableInTasklist": found.has_none_start,
    }


def deployment_shape(found: RestDeployment) -> dict[str, Any]:
    return {
        "links": [],
        "id": found.id,
        "name": found.name or None,
        "source": None,
        "deploymentTime": written(found.deployed_at),
        "tenantId": found.tenant_id or None,
    }


def job_shape(found: RestJob) -> dict[str, Any]:
    return {
        "id": found.id,
        "jobDefinitionId": None,
        "dueDate": written(found.due_at),
        "processInstanceId": found.instance_id,
        "executionId": found.token_id,
        "processDefinitionId": found.definition_id,
        "processDefinitionKey": found.definition_key,
        "retries": found.retries,
        "exceptionMessage": found.last_error,
        "failedActivityId": found.element_id if found.last_error is not None else None,
        "suspended": found.suspended,
        "priority": found.priority,
        "createTime": written(found.created_at),
        "tenantId": found.tenant_id or None,
        "batchId": None,
    }


def task_shape(found: RestTask) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "assignee": found.assignee,
        "created": written(found.created_at),
        "lastUpdated": None,
        "due": written(found.due_at),
        "followUp": written(found.follow_up_at),
        "delegationState": None,
        "description": None,
        "executionId": found.token_id,
        "owner": None,
        "parentTaskId": None,
        "priority": found.priority,
        "processDefinitionId": found.definition_id,
        "processInstanceId": found.instance_id,
        "taskDefinitionKey": found.element_id,
        "caseExecutionId": None,
        "caseInstanceId": None,
        "caseDefinitionId": None,
        "suspended": found.suspended,
        "formKey": None,
        "camundaFormRef": None,
        "tenantId": found.tenant_id or None,
        "taskState": None,
    }
