"""Process instances: those that run, and all that were."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from engine.commands.may import may_params
from engine.commands.outcome import Actor
from engine.queries.api import INSTANCE_VISIBLE
from engine.queries.rest.listing import Filter, Listing, Wanted, after, before, equals, is_id, is_id_in, is_in, like, tenants, variables_of


@dataclass(frozen=True, slots=True)
class RestInstance:
    id: UUID
    definition_id: UUID
    definition_key: str
    definition_name: str
    version: int
    business_key: str | None
    tenant_id: str
    root_id: UUID
    parent_id: UUID | None
    status: str
    suspended: bool
    started_by: str
    started_at: datetime
    ended_at: datetime | None
    reason: str | None
    final_variables: dict[str, Any] | None


SUSPENDED = "(r.mark IS NOT NULL AND r.mark IN ('suspending', 'suspended'))"
_COLUMNS = f"""
  i.id, i.definition_id, d.key AS definition_key, coalesce(nullif(d.name, ''), d.key) AS definition_name, d.version, i.business_key,
  i.tenant_id, i.root_id, i.parent_id, i.status, {SUSPENDED} AS suspended, i.started_by, i.started_at, i.ended_at,
  CASE WHEN i.status = 'cancelled' THEN (SELECT h.data ->> 'reason' FROM history h
    WHERE h.instance_id = i.id AND h.kind = 'instance_cancelled' ORDER BY h.id DESC LIMIT 1) END AS reason,
  i.final_variables"""
_SOURCE = "process_instance i JOIN process_definition d ON d.id = i.definition_id JOIN process_instance r ON r.id = i.root_id"
_ROOT_SCOPE = "s.instance_id = i.id AND s.parent_id IS NULL"

_OF_DEFINITION = {
    "processDefinitionId": is_id("i.definition_id"),
    "processDefinitionKey": equals("d.key"),
    "processDefinitionKeyIn": is_in("d.key"),
    "processDefinitionKeyNotIn": Filter("names", "d.key <> ALL (CAST({} AS text[]))"),
}
_CALLED = "EXISTS (SELECT FROM process_instance c WHERE c.root_id = i.root_id AND c.parent_id = i.id AND {})"
_INCIDENT = "EXISTS (SELECT FROM incident n WHERE n.instance_id = i.id AND {})"

RUNNING = Listing(
    columns=_COLUMNS,
    source=_SOURCE,
    always=f"{INSTANCE_VISIBLE} AND i.status = 'running'",
    filters={
        **_OF_DEFINITION,
        **tenants("i.tenant_id"),
        "processInstanceIds": is_id_in("i.id"),
        "businessKey": equals("i.business_key"),
        "businessKeyLike": like("i.business_key"),
        "deploymentId": is_id("d.deployment_id"),
        "superProcessInstance": is_id("i.parent_id"),
        "subProcessInstance": Filter("id", _CALLED.replace("{}", "c.id = CAST({} AS uuid)")),
        "active": Filter("truth", f"NOT {SUSPENDED}"),
        "suspended": Filter("truth", SUSPENDED),
        "withIncident": Filter("truth", _INCIDENT.replace("{}", "true")),
        "incidentId": Filter("id", _INCIDENT.replace("{}", "n.id = CAST({} AS uuid)")),
        "incidentMessage": Filter("text", _INCIDENT.replace("{}", "n.message = {}")),
        "incidentMessageLike": Filter("text", _INCIDENT.replace("{}", "n.message LIKE {}")),
        "activityIdIn": Filter(
            "names", "EXISTS (SELECT FROM token t WHERE t.instance_id = i.id AND t.element_id = ANY (CAST({} AS text[])))"
        ),
        "rootProcessInstances": Filter("truth", "i.parent_id IS NULL"),
        "leafProcessInstances": Filter("truth", f"NOT {_CALLED.replace('{}', 'true')}"),
        "variables": variables_of(_ROOT_SCOPE),
    },
    sorts={
        "instanceId": "i.id",
        "definitionKey": "d.key",
        "definitionId": "i.definition_id",
        "tenantId": "i.tenant_id",
        "businessKey": "i.business_key",
    },
    unique="i.started_at, i.id",
)

PAST = Listing(
    columns=_COLUMNS,
    source=_SOURCE,
    always=INSTANCE_VISIBLE,
    filters={
        **_OF_DEFINITION,
        **tenants("i.tenant_id"),
        "processInstanceId": is_id("i.id"),
        "processInstanceIds": is_id_in("i.id"),
        "processInstanceBusinessKey": equals("i.business_key"),
        "processInstanceBusinessKeyIn": is_in("i.business_key"),
        "processInstanceBusinessKeyLike": like("i.business_key"),
        "processDefinitionName": equals("d.name"),
        "processDefinitionNameLike": like("d.name"),
        "superProcessInstanceId": is_id("i.parent_id"),
        "rootProcessInstances": Filter("truth", "i.parent_id IS NULL"),
        "startedBy": equals("i.started_by"),
        "startedBefore": before("i.started_at"),
        "startedAfter": after("i.started_at"),
        "finishedBefore": before("i.ended_at"),
        "finishedAfter": after("i.ended_at"),
        "finished": Filter("truth", "i.ended_at IS NOT NULL"),
        "unfinished": Filter("truth", "i.ended_at IS NULL"),
        "active": Filter("truth", f"i.status = 'running' AND NOT {SUSPENDED}"),
        "suspended": Filter("truth", f"i.status = 'running' AND {SUSPENDED}"),
        "completed": Filter("truth", "i.status = 'completed'"),
        "externallyTerminated": Filter("truth", "i.status = 'cancelled'"),
        "withIncidents": Filter("truth", _INCIDENT.replace("{}", "true")),
    },
    sorts={
        "instanceId": "i.id",
        "definitionId": "i.definition_id",
        "definitionKey": "d.key",
        "definitionName": "d.name",
        "definitionVersion": "d.version",
        "businessKey": "i.business_key",
        "startTime": "i.started_at",
        "endTime": "i.ended_at",
        "duration": "i.ended_at - i.started_at",
        "tenantId": "i.tenant_id",
    },
    unique="i.started_at, i.id",
)


def rest_instances(conn: Connection, actor: Actor, listing: Listing, wanted: Wanted) -> list[RestInstance]:
    """Those of RUNNING or PAST that the actor may see. Raises TooMany."""
    return listing.rows(conn, RestInstance, wanted, may_params(actor))


def rest_instance(conn: Connection, actor: Actor, listing: Listing, instance_id: UUID) -> RestInstance | None:
    return listing.one(conn, RestInstance, "i.id = :id", {**may_params(actor), "id": instance_id})


def count_instances(conn: Connection, actor: Actor, listing: Listing, wanted: Wanted) -> int:
    return listing.count(conn, wanted, may_params(actor))
