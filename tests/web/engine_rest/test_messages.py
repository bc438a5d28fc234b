"""Messages and signals, correlated as Camunda 7 does, by the criteria of its programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.bpmn.models import file_of
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import ADA, OLGA, one, started

ONE = {"n": {"value": 1}}
ROOT = '<message id="m" name="paid"/><message id="n" name="ordered"/><signal id="g" name="alarm"/>\n'
WAITS = file_of(
    '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="x"/>'
    '<intermediateCatchEvent id="x"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>'
    '<sequenceFlow id="f2" sourceRef="x" targetRef="y"/>'
    '<userTask id="y"/><sequenceFlow id="f3" sourceRef="y" targetRef="e"/><endEvent id="e"/>',
    root=ROOT,
)
STARTS = file_of(
    '<startEvent id="s"><messageEventDefinition messageRef="n"/></startEvent><sequenceFlow id="f1" sourceRef="s" targetRef="y"/>'
    '<userTask id="y"/><sequenceFlow id="f3" sourceRef="y" targetRef="e"/><endEvent id="e"/>',
    root=ROOT,
).replace(b'id="p"', b'id="started"')


@pytest.fixture
def olga(program: Callable[[str], Program], committed_db: psycopg.Connection) -> Program:
    assert isinstance(deploy(committed_db, [("a.bpmn", WAITS), ("b.bpmn", STARTS)], actor=OLGA), Deployed)
    return program("olga")


@pytest.fixture
def waiting(olga: Program, committed_db: psycopg.Connection) -> tuple[UUID, UUID]:
    """Two that wait for `paid`, with the business keys A and B."""
    return tuple(started(committed_db, "p", actor=ADA, business_key=key, region=key.lower(), amount=7) for key in "AB")  # type: ignore[return-value]


def stands_at(conn: psycopg.Connection, instance: UUID | str) -> str:
    return str(one(conn, "SELECT element_id FROM token WHERE instance_id = %s", UUID(str(instance))))


def test_a_message_by_business_key_goes_to_the_one_that_has_it(olga: Program, waiting: Any, committed_db: psycopg.Connection) -> None:
    # What camunda-external-task-client-python3 sends.
    sent = {
        "messageName": "paid",
        "resultEnabled": True,
        "withoutTenantId": True,
        "businessKey": "B",
        "processVariables": {"n": {"value": 1}},
    }
    answer = olga.post("/message", sent)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    (result,) = answer.json
    assert (result["resultType"], result["processInstance"], result["variables"]) == ("Execution", None, None)
    assert (result["execution"]["processInstanceId"], result["execution"]["ended"]) == (str(waiting[1]), False)
    assert [stands_at(committed_db, each) for each in waiting] == ["x", "y"]
    assert olga.get(f"/process-instance/{waiting[1]}/variables/n").json["value"] == 1
    refused(olga.post("/message", sent), 400, "Cannot correlate message 'paid'")


def test_a_message_by_instance_or_by_variables_goes_there_and_without_a_result_is_204(
    olga: Program, waiting: Any, committed_db: psycopg.Connection
) -> None:
    answer = olga.post("/message", {"messageName": "paid", "processInstanceId": str(waiting[0]), "businessKey": None})
    assert (answer.status_code, answer.data) == (204, b"")
    keys = {"region": {"value": "b", "type": "String"}, "amount": {"value": 7, "type": "Integer"}}
    assert olga.post("/message", {"messageName": "paid", "correlationKeys": keys}).status_code == 204
    assert [stands_at(committed_db, each) for each in waiting] == ["y", "y"]


def test_a_message_that_may_mean_several_or_nobody_is_refused_and_moves_none(
    olga: Program, waiting: Any, committed_db: psycopg.Connection
) -> None:
    for sent in (
        {"messageName": "paid"},
        {"messageName": "paid", "correlationKeys": {"amount": {"value": 7}}},
        {"messageName": "paid", "businessKey": "C"},
        {"messageName": "paid", "processInstanceId": str(uuid4())},
        {"messageName": "paid", "processInstanceId": "none"},
        {"messageName": "nothing"},
    ):
        refused(olga.post("/message", sent), 400, "Cannot correlate message")
    assert [stands_at(committed_db, each) for each in waiting] == ["x", "x"]


def test_a_message_without_criteria_goes_to_the_only_one_that_waits_whatever_its_key(
    olga: Program, committed_db: psycopg.Connection
) -> None:
    case = started(committed_db, "p", actor=ADA, business_key="A")
    (result,) = olga.post("/message", {"messageName": "paid", "resultEnabled": True}).json
    assert result["execution"]["processInstanceId"] == str(case)
    assert stands_at(committed_db, case) == "y"


def test_a_start_event_takes_a_message_that_nobody_waits_for(olga: Program) -> None:
    sent = {"messageName": "ordered", "businessKey": "K", "processVariables": {"n": {"value": 2}}, "resultEnabled": True}
    (result,) = olga.post("/message", {**sent, "variablesInResultEnabled": True}).json
    assert (result["resultType"], result["execution"]) == ("ProcessDefinition", None)
    assert (result["processInstance"]["businessKey"], result["processInstance"]["ended"]) == ("K", False)
    assert result["variables"] == {"n": {"type": "Integer", "value": 2, "valueInfo": {}}}
    assert [each["resultType"] for each in olga.post("/message", {"messageName": "ordered", "resultEnabled": True}).json] == [
        "ProcessDefinition"
    ]


def test_a_message_for_all_goes_to_each_that_waits_and_nobody_is_no_error(
    olga: Program, waiting: Any, committed_db: psycopg.Connection
) -> None:
    # What fastbpmn sends.
    sent = {
        "messageName": "paid",
        "all": True,
        "resultEnabled": True,
        "variablesInResultEnabled": True,
        "processVariables": ONE,
    }
    results = olga.post("/message", sent).json
    assert [each["execution"]["processInstanceId"] for each in results] == [str(each) for each in waiting]
    assert [each["variables"]["n"]["value"] for each in results] == [1, 1]
    assert [stands_at(committed_db, each) for each in waiting] == ["y", "y"]
    assert olga.post("/message", sent).json == []
    assert [each["resultType"] for each in olga.post("/message", {**sent, "messageName": "ordered"}).json] == ["ProcessDefinition"]
    assert olga.post("/message", {**sent, "messageName": "ordered", "processInstanceId": str(waiting[0])}).json == []


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        ({}, "messageName"),
        ({"messageName": " "}, "messageName"),
        ({"messageName": "paid", "processVariablesLocal": {"a": {"value": 1}}}, "processVariablesLocal"),
        ({"messageName": "paid", "localCorrelationKeys": {"a": {"value": 1}}}, "localCorrelationKeys"),
        ({"messageName": "paid", "tenantId": "somebody"}, "tenantId"),
        ({"messageName": "paid", "processVariables": {"a": 1}}, "a"),
        ({"messageName": "paid", "all": "perhaps"}, "all"),
        ({"messageName": 7.5}, "messageName"),
    ],
)
def test_what_is_not_served_or_wrong_is_refused_by_name(olga: Program, waiting: Any, sent: dict[str, Any], word: str) -> None:
    refused(olga.post("/message", sent), 400, word)


def test_messages_and_signals_are_for_operators(program: Callable[[str], Program], olga: Program, waiting: Any) -> None:
    for all_of_them in (True, False):
        refused(program("ada").post("/message", {"messageName": "paid", "businessKey": "A", "all": all_of_them}), 403)
    refused(program("ada").post("/signal", {"name": "alarm"}), 403)


def test_a_signal_is_thrown_to_everybody(olga: Program, committed_db: psycopg.Connection) -> None:
    answer = olga.post("/signal", {"name": "alarm", "variables": {"n": {"value": 1, "type": "Long"}}, "withoutTenantId": True})
    assert (answer.status_code, answer.data) == (204, b"")
    assert one(committed_db, "SELECT payload -> 'variables' -> 'n' FROM job WHERE kind = 'throw'") == {"type": "integer", "value": 1}
    refused(olga.post("/signal", {"name": "alarm", "executionId": str(uuid4())}), 400, "executionId")
    refused(olga.post("/signal", {"name": "alarm", "tenantId": "somebody"}), 400, "tenantId")
    refused(olga.post("/signal", {}), 400, "name")
