"""The tree of activity instances: scopes around tokens, each with the executions whose variables are its own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import ProcessDefinition
from engine.db.definitions import DefinitionRefused, compiled
from engine.queries.rest.executions import Standing
from engine.queries.rest.instances import RestInstance

KINDS = {"subprocess": "subProcess", "event_subprocess": "subProcess"}


def tree(conn: psycopg.Connection[Any], instance: RestInstance, standing: list[Standing]) -> dict[str, Any]:
    """From the process down. A token that stands for a scope is that scope."""
    try:
        definition = compiled(conn, instance.definition_id)
    except DefinitionRefused:  # stored earlier, refused by newer rules: it is shown without names
        definition = None
    replaced = {each.stands_for for each in standing if each.stands_for is not None}
    inner: dict[UUID | None, list[Standing]] = defaultdict(list)
    for each in standing:
        if each.id not in replaced:
            inner[each.within].append(each)
    process = next((each for each in standing if each.within is None), None)
    root = {
        **_node(instance, str(instance.id), None, str(instance.definition_id), instance.definition_name, "processDefinition"),
        "executionIds": [instance.id],
    }
    if process is not None:
        root["childActivityInstances"] = _children(instance, definition, inner, process.id, root["id"])
    return root


def _children(
    instance: RestInstance, definition: ProcessDefinition | None, inner: dict[UUID | None, list[Standing]], scope: UUID, parent: str
) -> list[dict[str, Any]]:
    found = []
    for each in inner.get(scope, []):
        element = each.element_id or ""
        node = definition.nodes.get(element) if definition is not None else None
        id = f"{element}:{each.id}"
        shape = _node(instance, id, parent, element, node.name if node is not None else "", _kind(node.kind if node is not None else ""))
        shape["executionIds"] = [each.id]
        shape["incidentIds"] = [one["id"] for one in each.incidents]
        shape["incidents"] = [{"id": one["id"], "activityId": one["element_id"]} for one in each.incidents]
        if each.kind == "scope":
            shape["childActivityInstances"] = _children(instance, definition, inner, each.id, id)
        found.append(shape)
    return found


def _node(instance: RestInstance, id: str, parent: str | None, element: str, name: str, kind: str) -> dict[str, Any]:
    return {
        "id": id,
        "parentActivityInstanceId": parent,
        "activityId": element,
        "activityName": name or None,
        "name": name or None,
        "activityType": kind,
        "processInstanceId": instance.id,
        "processDefinitionId": instance.definition_id,
        "childActivityInstances": [],
        "childTransitionInstances": [],
        "executionIds": [],
        "incidentIds": [],
        "incidents": [],
    }


def _kind(kind: str) -> str:
    """`service_task` is `serviceTask` there."""
    first, *rest = kind.split("_")
    return KINDS.get(kind) or first + "".join(word.title() for word in rest)
