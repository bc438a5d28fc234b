"""Versions of processes, and the deployments that brought them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rest.listing import Filter, Listing, Wanted, after, before, equals, is_id, is_id_in, is_in, like, tenants
from engine.queries.rows import row


@dataclass(frozen=True, slots=True)
class RestDefinition:
    id: UUID
    key: str
    version: int
    name: str
    version_tag: str | None
    documentation: str
    resource_name: str
    deployment_id: UUID
    status: str
    tenant_id: str
    has_none_start: bool


@dataclass(frozen=True, slots=True)
class RestDeployment:
    id: UUID
    name: str
    deployed_at: datetime
    tenant_id: str


@dataclass(frozen=True, slots=True)
class _Xml:
    xml: bytes


_NEWEST = (
    "d.id = (SELECT n.id FROM process_definition n WHERE n.tenant_id = d.tenant_id AND n.key = d.key"
    " ORDER BY n.status = 'deleting', n.version DESC LIMIT 1)"
)
DEFINITIONS = Listing(
    columns="""d.id, d.key, d.version, d.name, d.version_tag, d.documentation, d.resource_name, d.deployment_id, d.status, d.tenant_id,
      d.has_none_start""",
    source="process_definition d",
    always="d.tenant_id = :tenant AND d.status <> 'deleting'",
    filters={
        **tenants("d.tenant_id"),
        "includeProcessDefinitionsWithoutTenantId": Filter("truth", "true"),
        "processDefinitionId": is_id("d.id"),
        "processDefinitionIdIn": is_id_in("d.id"),
        "key": equals("d.key"),
        "keysIn": is_in("d.key"),
        "keyLike": like("d.key"),
        "name": equals("d.name"),
        "nameLike": like("d.name"),
        "version": Filter("whole", "d.version = {}"),
        "latestVersion": Filter("truth", _NEWEST),
        "versionTag": equals("d.version_tag"),
        "versionTagLike": like("d.version_tag"),
        "withoutVersionTag": Filter("truth", "d.version_tag IS NULL"),
        "deploymentId": is_id("d.deployment_id"),
        "resourceName": equals("d.resource_name"),
        "resourceNameLike": like("d.resource_name"),
        "active": Filter("truth", "d.status = 'active'"),
        "suspended": Filter("truth", "d.status = 'suspended'"),
        "startableInTasklist": Filter("truth", "d.has_none_start"),
        "notStartableInTasklist": Filter("truth", "NOT d.has_none_start"),
    },
    sorts={
        "key": "d.key",
        "name": "d.name",
        "version": "d.version",
        "versionTag": "d.version_tag",
        "id": "d.id",
        "deploymentId": "d.deployment_id",
        "tenantId": "d.tenant_id",
        "deployTime": "d.created_at",
    },
    unique="d.key, d.version, d.id",
)
DEPLOYMENTS = Listing(
    columns="p.id, p.name, p.deployed_at, p.tenant_id",
    source="deployment p",
    always="p.tenant_id = :tenant",
    filters={
        **tenants("p.tenant_id"),
        "includeDeploymentsWithoutTenantId": Filter("truth", "true"),
        "id": is_id("p.id"),
        "name": equals("p.name"),
        "nameLike": like("p.name"),
        "before": before("p.deployed_at"),
        "after": after("p.deployed_at"),
    },
    sorts={"id": "p.id", "name": "p.name", "deploymentTime": "p.deployed_at", "tenantId": "p.tenant_id"},
    unique="p.deployed_at, p.id",
)


def rest_definitions(conn: Connection, wanted: Wanted, *, tenant_id: str) -> list[RestDefinition]:
    """Raises TooMany."""
    return DEFINITIONS.rows(conn, RestDefinition, wanted, {"tenant": tenant_id})


def count_definitions(conn: Connection, wanted: Wanted, *, tenant_id: str) -> int:
    return DEFINITIONS.count(conn, wanted, {"tenant": tenant_id})


def rest_definition(conn: Connection, definition_id: UUID, *, tenant_id: str) -> RestDefinition | None:
    return DEFINITIONS.one(conn, RestDefinition, "d.id = :id", {"tenant": tenant_id, "id": definition_id})


def newest_definition(conn: Connection, key: str, *, tenant_id: str) -> RestDefinition | None:
    return DEFINITIONS.one(conn, RestDefinition, f"d.key = :key AND {_NEWEST}", {"tenant": tenant_id, "key": key})


def xml_of(conn: Connection, definition_id: UUID) -> bytes:
    """The file as it was deployed. Ask for the definition first."""
    found = row(conn, _Xml, "SELECT xml FROM process_definition WHERE id = :id", {"id": definition_id})
    assert found is not None, "a definition has its file"
    return bytes(found.xml)


def rest_deployments(conn: Connection, wanted: Wanted, *, tenant_id: str) -> list[RestDeployment]:
    """Raises TooMany."""
    return DEPLOYMENTS.rows(conn, RestDeployment, wanted, {"tenant": tenant_id})


def count_deployments(conn: Connection, wanted: Wanted, *, tenant_id: str) -> int:
    return DEPLOYMENTS.count(conn, wanted, {"tenant": tenant_id})


def rest_deployment(conn: Connection, deployment_id: UUID, *, tenant_id: str) -> RestDeployment | None:
    return DEPLOYMENTS.one(conn, RestDeployment, "p.id = :id", {"tenant": tenant_id, "id": deployment_id})
