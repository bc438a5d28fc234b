"""Instances, their variables and executions, and the past: as programs written for Camunda 7 read them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask

from engine.commands.api_keys import ApiKeyAdded, add_api_key
from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, Deployed
from tests.bpmn.models import around, file_of
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import ADA, OLGA, one, started

EXTERNAL = '<serviceTask id="x" name="Ship it" camunda:type="external" camunda:topic="ship"{more}'
NESTED = file_of(
    '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="sub"/>'
    '<subProcess id="sub" name="Pack"><startEvent id="s2"/><sequenceFlow id="g1" sourceRef="s2" targetRef="x"/>'
    + EXTERNAL.format(more="><extensionElements><camunda:inputOutput>")
    + '<camunda:inputParameter name="weight">${6 * 7}</camunda:inputParameter></camunda:inputOutput></extensionElements></serviceTask>'
    '<sequenceFlow id="g2" sourceRef="x" targetRef="e2"/><endEvent id="e2"/></subProcess>'
    '<sequenceFlow id="f2" sourceRef="sub" targetRef="e"/><endEvent id="e"/>'
)


@pytest.fixture
def nested(committed_db: psycopg.Connection, people: Any) -> UUID:
    """An instance of `p` that stands at an external task in a subprocess."""
    assert isinstance(deploy(committed_db, [("p.bpmn", NESTED)], actor=OLGA), Deployed)
    return started(committed_db, "p", actor=ADA, business_key="ORD-7", total=12.5, urgent=True, lines=[{"sku": "A"}], nothing=None)


@pytest.fixture
def olga(program: Callable[[str], Program]) -> Program:
    return program("olga")


def execution_ids(tree: dict[str, Any], wanted: str, above: tuple[str, ...] = ()) -> list[str]:
    """The executions from the root down to the leaf of this element, as fastbpmn collects them."""
    path = (*above, *tree["executionIds"])
    if tree["activityId"] == wanted and not tree["childActivityInstances"]:
        return list(path)
    return next((found for child in tree["childActivityInstances"] if (found := execution_ids(child, wanted, path))), [])


def test_an_instance_is_shown_while_it_runs_and_its_past_for_good(olga: Program, nested: UUID) -> None:
    shown = olga.get(f"/process-instance/{nested}").json
    assert shown == {
        "links": [],
        "id": str(nested),
        "definitionId": shown["definitionId"],
        "definitionKey": "p",
        "businessKey": "ORD-7",
        "caseInstanceId": None,
        "ended": False,
        "suspended": False,
        "tenantId": None,
    }
    past = olga.get(f"/history/process-instance/{nested}").json
    assert (past["state"], past["startUserId"], past["endTime"], past["rootProcessInstanceId"]) == ("ACTIVE", "ada", None, str(nested))
    assert past["startTime"].endswith("+0000")
    assert olga.delete(f"/process-instance/{nested}", skipCustomListeners="true").status_code == 204
    refused(olga.get(f"/process-instance/{nested}"), 404, str(nested))
    past = olga.get(f"/history/process-instance/{nested}").json
    assert (past["state"], past["deleteReason"]) == ("EXTERNALLY_TERMINATED", "asked for through /engine-rest")
    assert past["durationInMillis"] >= 0
    refused(olga.delete(f"/process-instance/{nested}"), 404)


def test_who_may_not_see_an_instance_is_told_that_there_is_none(program: Callable[[str], Program], nested: UUID) -> None:
    cy = program("cy")
    for path in ("", "/variables", "/variables/total", "/activity-instances"):
        refused(cy.get(f"/process-instance/{nested}{path}"), 404)
    refused(cy.get(f"/execution/{nested}/localVariables"), 404)
    refused(cy.get(f"/history/process-instance/{nested}"), 404)
    refused(cy.delete(f"/process-instance/{nested}"), 404)
    assert cy.get("/process-instance").json == []
    assert cy.get("/history/process-instance/count").json == {"count": 0}
    ada = program("ada")  # who started it sees it, and may not end it
    assert [each["id"] for each in ada.get("/process-instance").json] == [str(nested)]
    refused(ada.delete(f"/process-instance/{nested}"), 403)


@pytest.mark.parametrize("id", ["nobody", "00000000-0000-0000-0000-000000000000", "%00", "a b"])
def test_ids_that_name_nothing_are_not_found(olga: Program, people: Any, id: str) -> None:
    for path in ("/process-instance/{}", "/process-instance/{}/variables", "/execution/{}", "/execution/{}/localVariables/x/data"):
        assert olga.get(path.format(id)).status_code == 404


def test_the_tree_leads_from_the_process_to_where_tokens_stand(olga: Program, nested: UUID, committed_db: psycopg.Connection) -> None:
    tree = olga.get(f"/process-instance/{nested}/activity-instances").json
    assert (tree["id"], tree["activityType"], tree["executionIds"]) == (str(nested), "processDefinition", [str(nested)])
    (inner,) = tree["childActivityInstances"]
    assert (inner["activityId"], inner["activityType"], inner["activityName"]) == ("sub", "subProcess", "Pack")
    assert inner["parentActivityInstanceId"] == tree["id"]
    (leaf,) = inner["childActivityInstances"]
    assert (leaf["activityId"], leaf["activityType"], leaf["name"]) == ("x", "serviceTask", "Ship it")
    assert leaf["executionIds"] == [str(one(committed_db, "SELECT token_id FROM external_task WHERE instance_id = %s", nested))]
    assert (leaf["childActivityInstances"], leaf["incidentIds"]) == ([], [])


def test_the_local_variables_from_the_root_down_are_what_the_task_sees(olga: Program, nested: UUID) -> None:
    tree = olga.get(f"/process-instance/{nested}/activity-instances").json
    root, subprocess, task = execution_ids(tree, "x")
    assert olga.get(f"/execution/{root}/localVariables", deserializeValues="False").json == {
        "total": {"type": "Double", "value": 12.5, "valueInfo": {}},
        "urgent": {"type": "Boolean", "value": True, "valueInfo": {}},
        "lines": {"type": "Json", "value": '[{"sku":"A"}]', "valueInfo": {}},
        "nothing": {"type": "Null", "value": None, "valueInfo": {}},
    }
    assert olga.get(f"/execution/{subprocess}/localVariables").json == {}
    assert olga.get(f"/execution/{task}/localVariables").json == {"weight": {"type": "Integer", "value": 42, "valueInfo": {}}}
    assert olga.get(f"/execution/{task}/localVariables/weight").json["value"] == 42
    for execution in (root, subprocess, task):
        shown = olga.get(f"/execution/{execution}").json
        assert shown == {"id": execution, "processInstanceId": str(nested), "ended": False, "tenantId": None}
    refused(olga.get(f"/execution/{task}/localVariables/total"), 404, "total")


def test_a_process_has_its_variables_one_by_one_and_a_file_has_its_bytes(
    olga: Program, committed_db: psycopg.Connection, people: Any
) -> None:
    assert isinstance(deploy(committed_db, [("p.bpmn", around(EXTERNAL.format(more="/>")))], actor=OLGA), Deployed)
    content = b"\x00\x01<html>"
    info = {"filename": "a file.html", "mimetype": "text/html", "encoding": "utf-8"}
    file = {"type": "File", "value": base64.b64encode(content).decode(), "valueInfo": info}
    made = olga.post("/process-definition/key/p/start", {"variables": {"f": file, "n": {"value": 5}}})
    path = f"/process-instance/{made.json['id']}/variables"
    assert olga.get(f"{path}/n").json == {"type": "Integer", "value": 5, "valueInfo": {}}
    assert olga.get(f"{path}/f").json == {"type": "File", "value": None, "valueInfo": info}
    for data in (f"{path}/f/data", f"/execution/{made.json['id']}/localVariables/f/data"):
        answer = olga.get(data)
        assert answer.data == content
        assert answer.mimetype == "application/octet-stream"  # a page of somebody's making is saved, never shown
        assert "attachment" in answer.headers["Content-Disposition"]
    refused(olga.get(f"{path}/n/data"), 400, "n is not a binary value")
    refused(olga.get(f"{path}/none/data"), 404)


def test_suspended_and_gone_on_with(olga: Program, nested: UUID) -> None:
    for _ in range(2):  # a second time is harmless
        assert olga.put(f"/process-instance/{nested}/suspended", {"suspended": True}).status_code == 204
    assert olga.get(f"/process-instance/{nested}").json["suspended"] is True
    assert [each["id"] for each in olga.get("/process-instance", suspended="true").json] == [str(nested)]
    assert olga.get("/process-instance", active="true").json == []
    assert olga.get(f"/history/process-instance/{nested}").json["state"] == "SUSPENDED"
    assert olga.put(f"/process-instance/{nested}/suspended", {"suspended": False}).status_code == 204
    assert olga.get("/process-instance/count", active="true").json == {"count": 1}
    refused(olga.put(f"/process-instance/{nested}/suspended", {}), 400, "suspended")


FOUND = [
    {"businessKey": "ORD-7"},
    {"businessKeyLike": "ORD%"},
    {"processDefinitionKey": "p"},
    {"processDefinitionKeyIn": "p,q"},
    {"processDefinitionKeyNotIn": "q"},
    {"withoutTenantId": "true"},
    {"activityIdIn": "x,y"},
    {"rootProcessInstances": "true", "leafProcessInstances": "true"},
    {"active": "true", "suspended": "false"},
]
NOT_FOUND = [
    {"businessKey": "ORD-8"},
    {"businessKeyLike": "ord%"},
    {"processDefinitionKeyNotIn": "p"},
    {"processDefinitionId": "none"},
    {"processInstanceIds": str(uuid4())},
    {"tenantIdIn": "somebody"},
    {"activityIdIn": "e"},
    {"superProcessInstance": str(uuid4())},
    {"withIncident": "true"},
    {"incidentMessageLike": "%"},
    {"variables": "total_eq_12.5"},  # a query string has texts, and the total is none
    {"firstResult": "1", "maxResults": "10"},
]


@pytest.mark.parametrize("asked", NOT_FOUND)
def test_a_filter_that_does_not_fit_leaves_nothing(olga: Program, nested: UUID, asked: dict[str, str]) -> None:
    assert olga.get("/process-instance", **asked).json == []


@pytest.mark.parametrize("asked", FOUND)
def test_a_filter_that_fits_leaves_the_instance(olga: Program, nested: UUID, asked: dict[str, str]) -> None:
    assert [each["id"] for each in olga.get("/process-instance", **asked).json] == [str(nested)]
    assert olga.get("/process-instance/count", **asked).json == {"count": 1}


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        ("eq", 12.5, 1),
        ("eq", "12.5", 0),
        ("neq", 3, 1),
        ("gt", 12, 1),
        ("gteq", 12.5, 1),
        ("lt", 12.5, 0),
        ("lteq", 12.5, 1),
        ("gt", "1", 0),
    ],
)
def test_variables_are_compared_by_kind_and_value(olga: Program, nested: UUID, operator: str, value: Any, found: int) -> None:
    asked = {"variables": [{"name": "total", "operator": operator, "value": value}]}
    assert olga.post("/process-instance/count", asked).json == {"count": found}
    assert len(olga.post("/process-instance", asked, maxResults=5).json) == found


def test_a_variable_of_a_query_string_may_have_underscores_and_likeness(
    olga: Program, committed_db: psycopg.Connection, nested: UUID
) -> None:
    mine = started(committed_db, "p", actor=ADA, order_no="A_17", customer="Åsa")
    assert [each["id"] for each in olga.get("/process-instance", variables="order_no_eq_A_17").json] == [str(mine)]
    assert [each["id"] for each in olga.get("/process-instance", variables="customer_like_Å%,order_no_neq_B").json] == [str(mine)]
    refused(olga.get("/process-instance", variables="order"), 400, "NAME_OPERATOR_VALUE")
    refused(olga.post("/process-instance", {"variables": [{"name": "a", "operator": "near", "value": 1}]}), 400, "near")


@pytest.mark.parametrize(
    "asked",
    [
        {"caseInstanceId": "1"},
        {"subCaseInstance": "1"},
        {"nonsense": "1"},
        {"variableNamesIgnoreCase": "true"},
        {"sortBy": "nothing"},
        {"sortBy": "businessKey", "sortOrder": "up"},
        {"sortOrder": "asc"},
        {"maxResults": "-1"},
        {"maxResults": "100000"},
        {"suspended": "maybe"},
    ],
)
def test_what_is_not_served_is_refused_by_name_and_never_ignored(olga: Program, people: Any, asked: dict[str, str]) -> None:
    refused(olga.get("/process-instance", **asked), 400, "sortBy" if asked == {"sortOrder": "asc"} else [*asked][-1])


def test_lists_are_sorted_and_paged(olga: Program, committed_db: psycopg.Connection, nested: UUID) -> None:
    for key in ("B", "A", "C"):
        started(committed_db, "p", actor=ADA, business_key=key)
    asked = {"sortBy": "businessKey", "sortOrder": "desc"}
    assert [each["businessKey"] for each in olga.get("/process-instance", **asked).json] == ["ORD-7", "C", "B", "A"]
    assert [each["businessKey"] for each in olga.get("/process-instance", **asked, firstResult=1, maxResults=2).json] == ["C", "B"]
    sorting = {"sorting": [{"sortBy": "definitionKey"}, {"sortBy": "businessKey", "sortOrder": "asc"}]}
    assert [each["businessKey"] for each in olga.post("/process-instance", sorting, maxResults=2).json] == ["A", "B"]
    assert olga.get("/process-instance", maxResults=0).json == []


def test_a_list_that_is_too_long_without_a_page_is_refused_not_cut(
    olga: Program, nested: UUID, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.queries.rest import listing

    started(committed_db, "p", actor=ADA)
    monkeypatch.setattr(listing, "MOST", 1)
    refused(olga.get("/process-instance"), 400, "maxResults")
    assert len(olga.get("/process-instance", maxResults=2).json) == 2


def test_the_past_is_found_by_how_it_ended(olga: Program, nested: UUID, committed_db: psycopg.Connection) -> None:
    other = started(committed_db, "p", actor=OLGA, business_key="ORD-8")
    olga.delete(f"/process-instance/{other}")

    def ids(**asked: str) -> list[str]:
        found = [each["id"] for each in olga.get("/history/process-instance", **asked).json]
        assert olga.get("/history/process-instance/count", **asked).json == {"count": len(found)}
        assert [each["id"] for each in olga.post("/history/process-instance", asked).json] == found
        assert olga.post("/history/process-instance/count", asked).json == {"count": len(found)}
        return found

    assert ids() == [str(nested), str(other)]
    assert ids(finished="true") == ids(externallyTerminated="true") == ids(startedBy="olga") == [str(other)]
    assert ids(unfinished="true") == ids(active="true") == ids(processInstanceBusinessKey="ORD-7") == [str(nested)]
    assert ids(completed="true") == ids(startedAfter="2999-01-01T00:00:00.000+0000") == []
    assert ids(startedBefore="2999-01-01T00:00:00.000+0000", finishedAfter="2001-01-01T00:00:00.000Z") == [str(other)]
    assert ids(sortBy="startTime", sortOrder="desc") == [str(other), str(nested)]
    refused(olga.get("/history/process-instance", startedBefore="yesterday"), 400, "startedBefore")


def test_a_key_that_may_only_read_asks_every_list_in_both_ways_and_changes_nothing(
    app: Flask, nested: UUID, committed_db: psycopg.Connection
) -> None:
    made = add_api_key(committed_db, "olga", actor=Actor("root", role="administrator"), name="a report", scopes=["read"])
    assert isinstance(made, ApiKeyAdded)
    report = Program(app.test_client(), {"Authorization": f"Bearer {made.token}"})
    for path in ("/process-instance", "/history/process-instance", "/task", "/job"):
        for each in (path, f"{path}/count"):
            assert (report.get(each).status_code, report.post(each, {}).status_code) == (200, 200), each
    refused(report.delete(f"/process-instance/{nested}"), 403, "scope")
    refused(report.put(f"/process-instance/{nested}/suspended", {"suspended": True}), 403, "scope")
    refused(report.post("/process-definition/key/p/start", {}), 403, "scope")
    refused(report.post("/message", {"messageName": "m"}), 403, "scope")
