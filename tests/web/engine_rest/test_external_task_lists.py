"""External tasks looked at: filters, counts, one of them, topics, what failed, and retries of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands.outcome import InstanceSuspended
from engine.commands.suspend import suspend_instance
from tests.conftest import Clock
from tests.web.engine_rest.conftest import Program, refused
from tests.web.engine_rest.test_external_tasks import TASK, TIME, done, fetch
from tests.web.operations import OLGA, deployed, one, started

Make = Callable[[str], Program]
ME = {"workerId": "w1"}


@pytest.fixture
def olga(program: Make, committed_db: psycopg.Connection) -> Program:
    deployed(committed_db, "c7_external_task", "an_external_task")
    return program("olga")


@pytest.fixture
def cases(olga: Program, committed_db: psycopg.Connection) -> dict[str, UUID]:
    """One free, one locked, one failed, one that waits after a failure; and one of another topic."""
    found = {}
    for name in ("locked", "failed", "waits", "free"):
        found[name] = started(committed_db, "orders", business_key=name, amount=1, name=name)
        if name == "free":
            break
        [task] = fetch(olga, name, processVariables={"name": name})
        if name != "locked":
            body = {"workerId": name, "errorMessage": f"{name} broke", "errorDetails": "Traceback", "retryTimeout": 60_000}
            done(olga.post(f"/external-task/{task['id']}/failure", {**body, "retries": 0 if name == "failed" else 3}))
    found["other"] = started(committed_db, "shipping", business_key="other")
    return found


def names(answer: Any) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {task["businessKey"] for task in answer.json}


def both(olga: Program, **asked: Any) -> set[str]:
    """What the query in the address finds, which must be what its body finds, and counts."""
    told = {
        name: ",".join(value) if isinstance(value, list) else str(value).lower() if value is True else value
        for name, value in asked.items()
    }
    found = names(olga.get("/external-task", **told))
    assert names(olga.post("/external-task", asked)) == found
    assert olga.get("/external-task/count", **told).json == olga.post("/external-task/count", asked).json == {"count": len(found)}
    return found


def test_every_filter_finds_its_tasks(olga: Program, cases: dict[str, UUID]) -> None:
    assert both(olga) == {"locked", "failed", "waits", "free", "other"}
    assert both(olga, topicName="ship") == {"other"}
    assert both(olga, workerId="locked") == {"locked"}
    assert both(olga, locked=True) == {"locked", "waits"}
    assert both(olga, notLocked=True) == {"failed", "free", "other"}
    assert both(olga, notLocked=True, withRetriesLeft=True) == {"free", "other"}
    assert both(olga, noRetriesLeft=True) == {"failed"}
    assert both(olga, lockExpirationAfter="2000-01-01T00:00:00.000+0000") == {"locked", "waits"}
    assert both(olga, lockExpirationBefore="2000-01-01T00:00:00.000+0000") == set()
    assert both(olga, activityId="ship") == both(olga, activityIdIn=["ship", "x"]) == {"other"}
    free = str(cases["free"])
    assert both(olga, processInstanceId=free) == both(olga, processInstanceIdIn=[free, str(uuid4())]) == {"free"}
    assert both(olga, processInstanceId="no-id") == set()
    assert both(olga, processInstanceBusinessKey="free") == {"free"}
    assert both(olga, processDefinitionKey="shipping") == {"other"}
    [shown] = olga.get("/external-task", processInstanceId=free).json
    assert both(olga, processDefinitionId=shown["processDefinitionId"]) == {"locked", "failed", "waits", "free"}
    assert (
        both(olga, externalTaskId=shown["id"])
        == both(olga, externalTaskIdIn=[shown["id"]])
        == both(olga, executionId=shown["executionId"])
        == {"free"}
    )
    assert both(olga, priorityHigherThanOrEquals=6) == {"locked", "failed", "waits", "free"}
    assert both(olga, priorityLowerThanOrEquals=6) == {"other"}
    assert both(olga, tenantIdIn=["x"]) == set()
    assert names(olga.post("/external-task", {"processVariables": [{"name": "name", "operator": "eq", "value": "free"}]})) == {"free"}


def test_whole_numbers_are_truths_nulls_are_nothing_and_what_is_not_known_is_refused(olga: Program, cases: dict[str, UUID]) -> None:
    asked = {
        "withRetriesLeft": 1,
        "notLocked": 1,
        "locked": 0,
        "tenantIdIn": None,
        "sorting": [{"sortBy": "taskPriority", "sortOrder": "desc"}],
    }
    found = olga.post("/external-task", asked)
    assert [task["businessKey"] for task in found.json] == ["free", "other"]
    refused(olga.get("/external-task", colour="red"), 400, "colour")
    refused(olga.post("/external-task", {"sorting": [{"sortBy": "colour"}]}), 400, "sortBy")
    refused(olga.post("/external-task", {"locked": "perhaps"}), 400, "locked")
    refused(olga.post("/external-task", {"priorityLowerThanOrEquals": 2**70}), 400)
    assert names(olga.post("/external-task", asked, firstResult=1, maxResults=5)) == {"other"}
    assert names(olga.get("/external-task", sortBy="createTime", sortOrder="asc", maxResults=1)) == {"locked"}


def test_active_and_suspended(olga: Program, cases: dict[str, UUID], committed_db: psycopg.Connection) -> None:
    assert isinstance(suspend_instance(committed_db, cases["free"], actor=OLGA, reason="x", request_id=None), InstanceSuspended)
    assert both(olga, suspended=True) == {"free"}
    assert "free" not in both(olga, active=True) | both(olga, notLocked=True)


def test_one_task_and_what_failed(olga: Program, cases: dict[str, UUID], clock: Clock) -> None:
    by_name = {task["businessKey"]: task for task in olga.get("/external-task").json}
    for task in by_name.values():
        assert set(task) == TASK - {"variables"}
        assert olga.get(f"/external-task/{task['id']}").json == task
    assert {name: task["retries"] for name, task in by_name.items()} == {
        "locked": None,
        "failed": 0,
        "waits": 3,
        "free": None,
        "other": None,
    }
    assert {name: task["workerId"] for name, task in by_name.items()} == {
        "locked": "locked",
        "failed": None,
        "waits": None,
        "free": None,
        "other": None,
    }
    assert TIME.fullmatch(by_name["waits"]["lockExpirationTime"])
    assert by_name["free"]["lockExpirationTime"] is None
    assert by_name["waits"]["errorMessage"] == "waits broke"
    details = olga.get(f"/external-task/{by_name['failed']['id']}/errorDetails")
    assert (details.text, details.mimetype) == ("Traceback", "text/plain")
    done(olga.get(f"/external-task/{by_name['free']['id']}/errorDetails"))
    for unknown in (uuid4(), "no-id"):
        refused(olga.get(f"/external-task/{unknown}"), 404)
        refused(olga.get(f"/external-task/{unknown}/errorDetails"), 404)


def test_topics_that_have_tasks(olga: Program, cases: dict[str, UUID]) -> None:
    assert olga.get("/external-task/topic-names").json == ["charging", "ship"]
    assert olga.get("/external-task/topic-names", withLockedTasks="true").json == ["charging"]
    assert olga.get("/external-task/topic-names", withUnlockedTasks="true", withRetriesLeft="true").json == ["charging", "ship"]


def test_retries_of_many(olga: Program, cases: dict[str, UUID], committed_db: psycopg.Connection) -> None:
    ids = {task["businessKey"]: task["id"] for task in olga.get("/external-task").json}
    done(olga.put("/external-task/retries", {"retries": 5, "externalTaskIds": [ids["failed"], ids["free"]], "processInstanceIds": None}))
    batch = olga.post(
        "/external-task/retries-async",
        {"retries": 7, "externalTaskQuery": {"topicName": "ship"}, "processInstanceIds": [str(cases["waits"])]},
    )
    assert (batch.status_code, batch.json["totalJobs"], batch.json["type"]) == (200, 2, "set-external-task-retries")
    left = {task["businessKey"]: task["retries"] for task in olga.get("/external-task").json}
    assert left == {"failed": 5, "free": 5, "waits": 7, "other": 7, "locked": None}
    assert one(committed_db, "SELECT count(*) FROM incident") == 0
    for wrong in (
        {"retries": 1},
        {"retries": 1, "externalTaskIds": []},
        {"externalTaskIds": [ids["free"]]},
        {"retries": 1, "externalTaskQuery": 5},
    ):
        refused(olga.put("/external-task/retries", wrong), 400)
    refused(olga.put("/external-task/retries", {"retries": 1, "externalTaskIds": [ids["free"], str(uuid4())]}), 404)
    assert left == {task["businessKey"]: task["retries"] for task in olga.get("/external-task").json}


def test_lists_are_for_operators(olga: Program, cases: dict[str, UUID], program: Make) -> None:
    ada = program("ada")
    [task] = olga.get("/external-task", topicName="ship").json
    for path in ("", "/count", "/topic-names", f"/{task['id']}", f"/{task['id']}/errorDetails"):
        refused(ada.get(f"/external-task{path}"), 403)
    refused(ada.put("/external-task/retries", {"retries": 1, "externalTaskIds": [task["id"]]}), 403)
