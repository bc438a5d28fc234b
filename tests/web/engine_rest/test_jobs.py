"""Jobs, as programs written for Camunda 7 list them and give them new retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.jobs import fail_job
from engine.commands.outcome import Deployed, ItemFailed, Lease
from engine.db.acquire import acquire_jobs
from tests.bpmn.models import around
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import ADA, OLGA, one, started

TIMER = (
    '<userTask id="x"/><boundaryEvent id="b" attachedToRef="x"><timerEventDefinition>'
    "<timeDuration>PT1H</timeDuration></timerEventDefinition></boundaryEvent>"
    '<sequenceFlow id="f9" sourceRef="b" targetRef="e9"/><endEvent id="e9"/>'
)


@pytest.fixture
def case(committed_db: psycopg.Connection, people: Any) -> UUID:
    """An instance with one timer."""
    assert isinstance(deploy(committed_db, [("p.bpmn", around(TIMER))], actor=OLGA), Deployed)
    return started(committed_db, "p", actor=ADA)


@pytest.fixture
def job(case: UUID, committed_db: psycopg.Connection) -> str:
    return str(one(committed_db, "SELECT id FROM job WHERE instance_id = %s", case))


def fail(conn: psycopg.Connection, job: str) -> None:
    """It fails for good beside an incident."""
    conn.execute("UPDATE job SET available_at = baton_clock(), due_at = baton_clock() WHERE id = %s", (UUID(job),))
    (lease,) = acquire_jobs(conn, owner="w", capabilities={("timer", "")}, limit=1, lease_seconds=30, workers=1)
    assert isinstance(fail_job(conn, Lease("job", lease.item_id, lease.number, "w"), error="CarrierDown: 503", final=True), ItemFailed)


def test_a_job_is_shown_with_every_key(program: Callable[[str], Program], case: UUID, job: str) -> None:
    olga = program("olga")
    shown = olga.get(f"/job/{job}").json
    assert (shown["processInstanceId"], shown["processDefinitionKey"], shown["retries"]) == (str(case), "p", 3)
    assert (shown["exceptionMessage"], shown["failedActivityId"], shown["suspended"]) == (None, None, False)
    assert shown["dueDate"].endswith("+0000")
    assert olga.get("/job").json == [shown] == olga.post("/job", {"timers": True}, maxResults=3).json


def test_a_failed_job_is_found_and_given_new_retries(program: Callable[[str], Program], job: str, case: UUID, committed_db: Any) -> None:
    olga = program("olga")
    refused(olga.put(f"/job/{job}/retries", {"retries": 2}), 400, "set retries of job")  # it is still tried
    fail(committed_db, job)
    # What camunda-external-task-client-python3 asks.
    asked = {"firstResult": 0, "maxResults": 10, "sortBy": "jobDueDate", "sortOrder": "desc", "withException": "true"}
    (found,) = olga.get("/job", **asked, processInstanceId=str(case), failedActivityId="b").json
    assert (found["id"], found["retries"], found["exceptionMessage"], found["failedActivityId"]) == (job, 0, "CarrierDown: 503", "b")
    assert olga.get("/job/count", noRetriesLeft="true").json == olga.post("/job/count", {"noRetriesLeft": True}).json == {"count": 1}
    assert olga.put(f"/job/{job}/retries", {"retries": 2}).status_code == 204
    assert olga.get(f"/job/{job}").json["retries"] == 2
    assert one(committed_db, "SELECT count(*) FROM incident") == 0
    for wrong in ({"retries": 0}, {"retries": "many"}, {}, {"retries": 1000}):
        refused(olga.put(f"/job/{job}/retries", wrong), 400, "retries")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"processDefinitionKey": "p", "activityId": "b"}, 1),
        ({"messages": "true"}, 0),
        ({"executable": "true"}, 0),
        ({"withException": "true"}, 0),
        ({"withRetriesLeft": "true", "active": "true", "priorityLowerThanOrEquals": "9"}, 1),
        ({"dueAfter": "2001-01-01T00:00:00.000+0000"}, 1),
        ({"tenantIdIn": "somebody"}, 0),
        ({"jobIds": str(uuid4())}, 0),
    ],
)
def test_jobs_are_found_by_what_programs_ask(program: Callable[[str], Program], job: str, asked: dict[str, str], found: int) -> None:
    olga = program("olga")
    assert olga.get("/job/count", **asked).json == {"count": found}
    assert [each["id"] for each in olga.get("/job", **asked, sortBy="jobRetries").json] == [job] * found


def test_jobs_are_for_operators_and_ids_that_name_nothing_are_not_found(program: Callable[[str], Program], job: str) -> None:
    ada = program("ada")
    for answer in (ada.get("/job"), ada.get("/job/count"), ada.get(f"/job/{job}"), ada.put(f"/job/{job}/retries", {"retries": 1})):
        refused(answer, 403, "operators")
    for id in ("none", str(uuid4())):
        refused(program("olga").get(f"/job/{id}"), 404, id)
    refused(program("olga").get("/job", jobDefinitionId="1"), 400, "jobDefinitionId")
