"""User tasks, as programs written for Camunda 7 list, claim and complete them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.bpmn.models import around
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import ADA, OLGA, one, started

TASK = (
    '<userTask id="x" name="Check it" camunda:candidateGroups="clerks"><extensionElements><camunda:inputOutput>'
    '<camunda:inputParameter name="limit">${10 * 10}</camunda:inputParameter></camunda:inputOutput></extensionElements></userTask>'
)


@pytest.fixture
def case(committed_db: psycopg.Connection, people: Any) -> UUID:
    assert isinstance(deploy(committed_db, [("p.bpmn", around(TASK))], actor=OLGA), Deployed)
    return started(committed_db, "p", actor=ADA, business_key="K", amount=7)


@pytest.fixture
def task(case: UUID, committed_db: psycopg.Connection) -> str:
    return str(one(committed_db, "SELECT id FROM user_task WHERE instance_id = %s", case))


def status(conn: psycopg.Connection, task: str) -> tuple[str, str | None]:
    row = conn.execute("SELECT status, assignee FROM user_task WHERE id = %s", (UUID(task),)).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_task_is_shown_with_every_key_and_what_it_sees(program: Callable[[str], Program], case: UUID, task: str) -> None:
    bo = program("bo")
    shown = bo.get(f"/task/{task}").json
    assert (shown["name"], shown["taskDefinitionKey"], shown["processInstanceId"], shown["assignee"]) == ("Check it", "x", str(case), None)
    assert shown["created"].endswith("+0000") and shown["due"] is None and shown["suspended"] is False
    assert bo.get("/task").json == [shown] == bo.post("/task", {"processInstanceId": str(case)}, maxResults=1).json
    both = {"amount": 7, "limit": 100}
    for path in ("variables", "form-variables"):
        assert {name: each["value"] for name, each in bo.get(f"/task/{task}/{path}", deserializeValues="False").json.items()} == both
    assert list(bo.get(f"/task/{task}/form-variables", variableNames="limit").json) == ["limit"]
    assert bo.get(f"/task/{task}/localVariables").json == {"limit": {"type": "Integer", "value": 100, "valueInfo": {}}}
    assert bo.get(f"/task/{task}/variables/amount").json["value"] == 7
    refused(bo.get(f"/task/{task}/variables/amount/data"), 400, "not a binary value")
    assert bo.get(f"/task/{task}/identity-links").json == [{"userId": None, "groupId": "clerks", "type": "candidate"}]
    assert bo.get(f"/execution/{shown['executionId']}").json["processInstanceId"] == str(case)


def test_who_may_not_see_a_task_is_told_that_there_is_none(program: Callable[[str], Program], task: str) -> None:
    cy = program("cy")
    assert cy.get("/task").json == [] and cy.get("/task/count").json == {"count": 0}
    for path in ("", "/variables", "/identity-links"):
        refused(cy.get(f"/task/{task}{path}"), 404)
    for verb in ("claim", "unclaim", "assignee", "complete"):
        refused(cy.post(f"/task/{task}/{verb}", {}), 404)
    refused(cy.get("/task/none"), 404)


def test_claimed_given_and_completed(program: Callable[[str], Program], task: str, committed_db: psycopg.Connection, case: UUID) -> None:
    bo, ada = program("bo"), program("ada")
    assert bo.post(f"/task/{task}/claim", {"userId": "bo"}).status_code == 204
    refused(ada.post(f"/task/{task}/claim", {"userId": "ada"}), 400, "claim task")
    refused(ada.post(f"/task/{task}/complete", {}), 400)
    assert bo.get("/task", assignee="bo").json[0]["assignee"] == "bo"
    assert bo.post(f"/task/{task}/assignee", {"userId": "ada"}).status_code == 204
    assert ada.post(f"/task/{task}/unclaim").status_code == 204
    assert status(committed_db, task) == ("open", None)
    refused(bo.post(f"/task/{task}/claim", {"userId": "ada"}), 400, "userId")
    sent = {"variables": {"approved": {"value": True, "type": "Boolean"}}, "withVariablesInReturn": True}
    answer = bo.post(f"/task/{task}/complete", sent)  # nobody has it: who completes it takes it
    assert answer.json["approved"] == {"type": "Boolean", "value": True, "valueInfo": {}}
    assert answer.json["amount"]["value"] == 7
    assert status(committed_db, task) == ("completed", "bo")
    assert one(committed_db, "SELECT final_variables -> 'approved' -> 'value' FROM process_instance WHERE id = %s", case) is True
    refused(bo.post(f"/task/{task}/complete", {}), 404)


def test_wrong_values_complete_nothing_and_claim_nothing(
    program: Callable[[str], Program], task: str, committed_db: psycopg.Connection
) -> None:
    refused(program("bo").post(f"/task/{task}/complete", {"variables": {"n": {"value": "x", "type": "Long"}}}), 400, "n")
    assert status(committed_db, task) == ("open", None)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"candidateGroup": "clerks"}, 1),
        ({"candidateGroups": "drivers,clerks"}, 1),
        ({"candidateGroup": "drivers"}, 0),
        ({"candidateUser": "bo"}, 1),
        ({"candidateUser": "cy"}, 0),
        ({"unassigned": "true"}, 1),
        ({"assigned": "true"}, 0),
        ({"processDefinitionKey": "p", "taskDefinitionKeyIn": "x,y", "nameLike": "Check%"}, 1),
        ({"nameNotEqual": "Check it"}, 0),
        ({"processInstanceBusinessKey": "K", "minPriority": "50", "maxPriority": "50"}, 1),
        ({"createdAfter": "2999-01-01T00:00:00.000+0000"}, 0),
        ({"dueBefore": "2999-01-01T00:00:00.000+0000"}, 0),
        ({"withoutDueDate": "true", "active": "true", "withCandidateGroups": "true"}, 1),
        ({"withoutCandidateGroups": "true"}, 0),
        ({"followUpBeforeOrNotExistent": "2999-01-01T00:00:00.000+0000"}, 1),
    ],
)
def test_tasks_are_found_by_what_programs_ask(program: Callable[[str], Program], task: str, asked: dict[str, str], found: int) -> None:
    olga = program("olga")
    assert olga.get("/task/count", **asked).json == {"count": found}
    assert [each["id"] for each in olga.get("/task", **asked, sortBy="created", sortOrder="desc").json] == [task] * found


def test_who_asks_by_candidates_means_tasks_that_nobody_has(program: Callable[[str], Program], task: str) -> None:
    bo = program("bo")
    bo.post(f"/task/{task}/claim", {})
    assert bo.get("/task/count", candidateGroup="clerks").json == {"count": 0}
    assert bo.get("/task/count", candidateGroup="clerks", includeAssignedTasks="true").json == {"count": 1}


def test_process_variables_are_compared_and_what_is_not_served_is_refused(program: Callable[[str], Program], task: str) -> None:
    olga = program("olga")
    for value, found in ((7, 1), (8, 0)):
        assert olga.post("/task/count", {"processVariables": [{"name": "amount", "operator": "eq", "value": value}]}).json == {
            "count": found
        }
    for name in ("owner", "delegationState", "orQueries", "involvedUser", "taskVariables", "processInstanceBusinessKeyExpression"):
        refused(olga.post("/task", {name: "x"}), 400, name)
    assert len(olga.post("/task", {"owner": None, "taskVariables": None}).json) == 1
