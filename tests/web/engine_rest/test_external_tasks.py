"""External tasks as clients of Camunda 7 work on them: fetch, complete, fail, throw, lock, extend, unlock, retries, priority."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.db.acquire import recover_expired
from tests.conftest import Clock
from tests.web.conftest import Browser
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import deployed, one, started

TASK = {
    "activityId", "activityInstanceId", "errorMessage", "errorDetails", "executionId", "id", "lockExpirationTime", "processDefinitionId",
    "processDefinitionKey", "processDefinitionVersionTag", "processInstanceId", "tenantId", "retries", "suspended", "workerId", "priority",
    "topicName", "businessKey", "createTime", "variables",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0000")
ME = {"workerId": "w1"}
Make = Callable[[str], Program]


@pytest.fixture
def olga(program: Make, committed_db: psycopg.Connection) -> Program:
    deployed(committed_db, "c7_external_task")
    return program("olga")


@pytest.fixture
def case(olga: Program, committed_db: psycopg.Connection) -> UUID:
    return started(committed_db, "orders", business_key="O-1", amount=12, who="Ada")


def fetch(
    olga: Program, worker: str = "w1", *, lock: int = 60_000, most: int = 10, wait: int | None = None, **topic: Any
) -> list[dict[str, Any]]:
    """As the clients send it: with every null spelled out."""
    answer = olga.post(
        "/external-task/fetchAndLock",
        {
            "workerId": worker, "maxTasks": most, "usePriority": None, "asyncResponseTimeout": wait, "sorting": None, "unknown": {},
            "topics": [{
                "topicName": "charging", "lockDuration": lock, "variables": None, "localVariables": None, "businessKey": None,
                "processDefinitionId": None, "processDefinitionIdIn": None, "processDefinitionKey": None, "processDefinitionKeyIn": None,
                "processDefinitionVersionTag": None, "processVariables": None, "withoutTenantId": None, "tenantIdIn": None,
                "deserializeValues": False, "includeExtensionProperties": None, **topic,
            }],
        },
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    return list(answer.json)


def done(answer: Any) -> None:
    assert (answer.status_code, answer.data) == (204, b""), answer.text


def test_a_task_is_given_with_every_key_and_typed_variables(olga: Program, case: UUID) -> None:
    [task] = fetch(olga)
    assert set(task) == TASK
    assert {name: task[name] for name in ("activityId", "topicName", "workerId", "businessKey", "processDefinitionKey", "priority")} == {
        "activityId": "charge", "topicName": "charging", "workerId": "w1", "businessKey": "O-1", "processDefinitionKey": "orders",
        "priority": 7,
    }  # fmt: skip
    assert task["processInstanceId"] == str(case)
    assert task["processDefinitionVersionTag"] == "v1"
    nothing = ("errorMessage", "errorDetails", "tenantId", "retries")
    assert [task[name] for name in nothing] == [None] * 4
    assert task["suspended"] is False
    assert TIME.fullmatch(task["lockExpirationTime"]) and TIME.fullmatch(task["createTime"])
    assert task["variables"] == {
        "amount": {"type": "Integer", "value": 12, "valueInfo": {}},
        "who": {"type": "String", "value": "Ada", "valueInfo": {}},
        "cents": {"type": "Integer", "value": 1200, "valueInfo": {}},
    }
    assert fetch(olga, "w2") == []


def test_what_a_topic_asks_for_is_what_is_given(olga: Program, case: UUID, committed_db: psycopg.Connection) -> None:
    other = started(committed_db, "orders", business_key="O-2", amount=1, big=2**40, tags=["a"])
    for wanted in (
        {"businessKey": "O-2"},
        {"processVariables": {"amount": 1, "tags": ["a"]}},
        {"businessKey": "O-2", "processDefinitionKeyIn": ["orders", "x"], "processDefinitionVersionTag": "v1"},
    ):
        [task] = fetch(olga, **wanted)
        assert task["processInstanceId"] == str(other)
        done(olga.post(f"/external-task/{task['id']}/unlock"))
    for unwanted in (
        {"businessKey": "O-3"},
        {"processVariables": {"amount": 2}},
        {"processDefinitionKey": "other"},
        {"processDefinitionKey": "orders", "processDefinitionKeyIn": ["other"]},
        {"processDefinitionId": "no id"},
        {"processDefinitionIdIn": [str(uuid4())]},
        {"processDefinitionVersionTag": "v2"},
        {"tenantIdIn": ["another"]},
    ):
        assert fetch(olga, **unwanted) == []
    [task] = fetch(olga, businessKey="O-2", variables=["big"], includeExtensionProperties=True, withoutTenantId=True)
    assert task["variables"] == {"big": {"type": "Long", "value": 2**40, "valueInfo": {}}}
    assert task["extensionProperties"] == {"queue": "fast"}
    [mine] = fetch(olga, localVariables=True, processDefinitionId=task["processDefinitionId"])
    assert list(mine["variables"]) == ["cents"]


def test_a_completion_ends_the_task_with_typed_variables_and_may_be_repeated(
    olga: Program, case: UUID, committed_db: psycopg.Connection
) -> None:
    [task] = fetch(olga)
    body = {
        **ME,
        "variables": {"receipt": {"value": "R-1"}, "at": {"type": "date", "value": "2024-01-31T10:00:00.000+0000"}},
        "localVariables": None,
    }
    done(olga.post(f"/external-task/{task['id']}/complete", body))
    kept = dict(committed_db.execute("SELECT name, type FROM variable").fetchall())  # type: ignore[arg-type]
    assert one(committed_db, "SELECT status FROM process_instance") == "completed"
    assert kept == {} or (kept["receipt"], kept["at"]) == ("string", "datetime")
    done(olga.post(f"/external-task/{task['id']}/complete", body))
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'external_task_completed'") == 1
    refused(olga.post(f"/external-task/{task['id']}/complete", {"workerId": "w2"}), 400, "it has ended")


def test_variables_are_kept_beside_what_output_parameters_make_and_local_ones_are_not(
    olga: Program, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "c7_outputs")
    for body, kept in (
        ({"variables": {"cents": {"value": 12}}, "localVariables": {"fee": {"value": 3}}}, {"cents": 12, "total": 15}),
        ({"variables": {"cents": {"value": 1}, "fee": {"value": 1}}}, {"cents": 1, "fee": 1, "total": 2}),
    ):
        here = started(committed_db, "outputs")
        [task] = fetch(olga)
        done(olga.post(f"/external-task/{task['id']}/complete", {**ME, **body}))
        sql = "SELECT v.name, v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.instance_id = %s"
        assert dict(committed_db.execute(sql, (here,)).fetchall()) == kept


def test_local_variables_of_a_task_without_output_parameters_end_with_it(olga: Program, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    [task] = fetch(olga, topicName="ship")
    done(olga.post(f"/external-task/{task['id']}/complete", {**ME, "localVariables": {"note": {"value": "x"}}}))
    assert one(committed_db, "SELECT count(*) FROM variable") == 0
    assert one(committed_db, "SELECT status FROM process_instance") == "completed"


def test_R4_another_worker_and_one_whose_lock_has_expired_change_nothing(
    olga: Program, case: UUID, committed_db: psycopg.Connection, clock: Clock
) -> None:
    [task] = fetch(olga, lock=5_000)
    path = f"/external-task/{task['id']}"
    answers = (("/complete", {}), ("/failure", {}), ("/bpmnError", {"errorCode": "X"}), ("/extendLock", {"newDuration": 1000}))
    for verb, more in answers:
        refused(olga.post(path + verb, {"workerId": "w2", **more}), 400, "locked by worker 'w1'")
    clock.advance(seconds=6)
    for verb, more in answers:
        refused(olga.post(path + verb, {**ME, **more}), 400, "expired")
    recover_expired(committed_db, limit=10)
    [again] = fetch(olga, "w2")
    assert again["id"] == task["id"]
    for verb, more in answers:
        refused(olga.post(path + verb, {**ME, **more}), 400)
    assert one(committed_db, "SELECT lease_owner FROM external_task") == "w2"
    done(olga.post(f"{path}/complete", {"workerId": "w2"}))


def test_retries_are_null_until_the_first_failure_and_then_what_the_worker_gave(olga: Program, case: UUID) -> None:
    [task] = fetch(olga)
    assert task["retries"] is None
    given = {**ME, "errorMessage": "no money", "errorDetails": "Traceback …", "retries": 5, "retryTimeout": 0}
    done(olga.post(f"/external-task/{task['id']}/failure", given))
    done(olga.post(f"/external-task/{task['id']}/failure", given))  # a repeat: told as before
    [again] = fetch(olga)
    assert (again["retries"], again["errorMessage"], again["errorDetails"]) == (5, "no money", "Traceback …")
    done(olga.post(f"/external-task/{task['id']}/failure", {**given, "retries": 1}))
    assert fetch(olga)[0]["retries"] == 1


@pytest.mark.parametrize("left", [{}, {"retries": 0}, {"retries": None}, {"retries": -1}])
def test_no_retries_are_an_incident(olga: Program, case: UUID, committed_db: psycopg.Connection, left: dict[str, Any]) -> None:
    [task] = fetch(olga)
    done(olga.post(f"/external-task/{task['id']}/failure", {**ME, "errorMessage": "no money", "errorDetails": "Trace", **left}))
    assert one(committed_db, "SELECT message || detail FROM incident") == "no moneyTrace"
    assert fetch(olga) == []
    done(olga.put(f"/external-task/{task['id']}/retries", {"retries": 2}))
    assert one(committed_db, "SELECT count(*) FROM incident") == 0
    assert fetch(olga)[0]["retries"] == 2


def test_a_failed_attempt_waits_for_its_timeout(olga: Program, case: UUID, clock: Clock) -> None:
    [task] = fetch(olga)
    done(olga.post(f"/external-task/{task['id']}/failure", {**ME, "retries": 1, "retryTimeout": 60_000}))
    assert fetch(olga) == []
    refused(olga.post(f"/external-task/{task['id']}/lock", {**ME, "lockDuration": 1000}), 400, "waits for its next attempt")
    clock.advance(seconds=70)
    assert len(fetch(olga)) == 1


def test_R5_an_expired_lock_spends_one_attempt(olga: Program, case: UUID, committed_db: psycopg.Connection, clock: Clock) -> None:
    [task] = fetch(olga)
    done(olga.post(f"/external-task/{task['id']}/failure", {**ME, "retries": 2}))
    assert fetch(olga, lock=1_000)[0]["retries"] == 2
    clock.advance(seconds=2)
    recover_expired(committed_db, limit=10)
    assert fetch(olga, lock=1_000)[0]["retries"] == 1
    clock.advance(seconds=2)
    recover_expired(committed_db, limit=10)
    assert fetch(olga) == []
    assert one(committed_db, "SELECT kind FROM incident") == "lease_lost"


@pytest.mark.parametrize("forgiven", ["charging", "*"])
def test_an_expired_lock_of_a_forgiven_topic_spends_none(
    olga: Program, case: UUID, committed_db: psycopg.Connection, clock: Clock, forgiven: str
) -> None:
    [task] = fetch(olga)
    done(olga.post(f"/external-task/{task['id']}/failure", {**ME, "retries": 1}))
    for _ in range(4):
        assert fetch(olga, lock=1_000)[0]["retries"] == 1
        clock.advance(seconds=2)
        recover_expired(committed_db, limit=10, forgiven=["other", forgiven])
    assert one(committed_db, "SELECT count(*) FROM incident") == 0


def test_a_bpmn_error_is_caught_by_its_boundary_event(olga: Program, case: UUID, committed_db: psycopg.Connection) -> None:
    [task] = fetch(olga)
    refused(olga.post(f"/external-task/{task['id']}/bpmnError", ME), 400, "errorCode")
    body = {**ME, "errorCode": "DECLINED", "errorMessage": None, "variables": {"why": {"value": {"a": 1}, "type": None}}}
    done(olga.post(f"/external-task/{task['id']}/bpmnError", body))
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'element_entered' AND element_id = 'refused'") == 1
    done(olga.post(f"/external-task/{task['id']}/bpmnError", body))


def test_a_lock_is_extended_taken_again_and_given_up(olga: Program, case: UUID, committed_db: psycopg.Connection, clock: Clock) -> None:
    [task] = fetch(olga, lock=5_000)
    path = f"/external-task/{task['id']}"
    done(olga.post(f"{path}/extendLock", {**ME, "newDuration": 60_000}))
    clock.advance(seconds=10)
    done(olga.post(f"{path}/lock", {**ME, "lockDuration": 90_000}))
    assert one(committed_db, "SELECT attempts FROM external_task") == 1
    refused(olga.post(f"{path}/lock", {"workerId": "w2", "lockDuration": 1000}), 400, "locked by worker 'w1'")
    unlock = olga.client.post(f"/engine-rest{path}/unlock", headers=olga.headers, data=b"", content_type="application/json")
    done(unlock)
    done(olga.post(f"{path}/unlock", {}))
    assert one(committed_db, "SELECT status || attempts FROM external_task") == "available0"
    done(olga.post(f"{path}/lock", {"workerId": "w2", "lockDuration": 1000}))
    clock.advance(seconds=2)
    done(olga.post(f"{path}/lock", {**ME, "lockDuration": 1000}))  # expired: taken back, one attempt spent
    assert one(committed_db, "SELECT lease_owner || attempts || lease_number FROM external_task") == "w123"
    done(olga.post(f"{path}/complete", ME))
    refused(olga.post(f"{path}/lock", {**ME, "lockDuration": 1000}), 400, "it has ended")


def test_retries_and_priority_are_set_from_outside(olga: Program, case: UUID, committed_db: psycopg.Connection) -> None:
    [task] = fetch(olga)
    path = f"/external-task/{task['id']}"
    done(olga.put(f"{path}/retries", {"retries": 4}))
    done(olga.post(f"{path}/unlock"))
    assert fetch(olga)[0]["retries"] == 4
    done(olga.put(f"{path}/retries", {"retries": 0}))  # while it is locked: it fails all the same
    refused(olga.post(f"{path}/complete", ME), 400, "taken back")
    assert one(committed_db, "SELECT message FROM incident") == "olga set the retries to 0"
    done(olga.put(f"{path}/retries", {"retries": 0}))
    done(olga.put(f"{path}/retries", {"retries": 1_000}))
    assert fetch(olga)[0]["retries"] == 1_000
    done(olga.post(f"{path}/unlock"))
    done(olga.put(f"{path}/retries", {"retries": 0}))
    assert one(committed_db, "SELECT status FROM external_task") == "failed"
    for asked, kept in ((3, 3), (99, 9), (-5, 0), (2**40, 9)):
        done(olga.put(f"{path}/priority", {"priority": asked}))
        assert one(committed_db, "SELECT priority FROM external_task") == kept
    for wrong in ({"retries": -1}, {"retries": None}, {}, {"retries": "many"}, {"retries": 2**40}):
        refused(olga.put(f"{path}/retries", wrong), 400, "retries")
    refused(olga.put(f"{path}/priority", {}), 400, "priority")
    assert one(committed_db, "SELECT count(*) FROM audit WHERE actor = 'olga' AND action = 'set_priority'") == 4


def test_what_is_not_there_is_404(olga: Program) -> None:
    for unknown in (uuid4(), "no-id", "%00"):
        path = f"/external-task/{unknown}"
        posts = {
            "/complete": ME, "/failure": ME, "/bpmnError": {**ME, "errorCode": "X"}, "/lock": {**ME, "lockDuration": 1},
            "/extendLock": {**ME, "newDuration": 1}, "/unlock": {},
        }  # fmt: skip
        for verb, body in posts.items():
            refused(olga.post(path + verb, body), 404)
        refused(olga.put(f"{path}/retries", {"retries": 1}), 404)
        refused(olga.put(f"{path}/priority", {"priority": 1}), 404)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t"}]},
        {"workerId": "w", "maxTasks": 0, "topics": []},
        {"workerId": "w", "maxTasks": "x", "topics": []},
        {"workerId": "", "maxTasks": 1, "topics": []},
        {"workerId": "w" * 300, "maxTasks": 1, "topics": []},
        {"workerId": "w\0", "maxTasks": 1, "topics": []},
        {"workerId": "w", "maxTasks": 1, "topics": {}},
        {"workerId": "w", "maxTasks": 1, "topics": [5]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 0}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 10**12}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 1, "variables": 5}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 1, "processVariables": 5}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 1, "processVariables": {"a": "\0"}}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 1, "processVariables": {"a": "\ud800"}}]},
        {"workerId": "w", "maxTasks": 1, "topics": [{"topicName": "t", "lockDuration": 1, "localVariables": "maybe"}]},
        {"workerId": "w", "maxTasks": 1, "asyncResponseTimeout": "x", "topics": []},
    ],
)
def test_a_fetch_that_cannot_be_read_is_400(olga: Program, body: dict[str, Any]) -> None:
    refused(olga.post("/external-task/fetchAndLock", body), 400)


def test_a_body_that_is_no_json_object_is_400(olga: Program) -> None:
    for data in (b"{", b"[]", b"\xff", b"5", b"[" * 100_000, b'{"a": NaN}'):
        sent = olga.client.post("/engine-rest/external-task/fetchAndLock", headers=olga.headers, data=data, content_type="application/json")
        refused(sent, 400)
    wrong = {**ME, "variables": {"a": {"value": "x", "type": "Integer"}, "b": {"value": 1, "type": "Nothing"}, "c`": {"value": 1}}}
    told = refused(olga.post(f"/external-task/{uuid4()}/complete", wrong), 400, "'a'", "'b'")
    assert "c`" in told
    large = olga.client.post(
        "/engine-rest/external-task/fetchAndLock", headers=olga.headers, data=b" " * (9 * 2**20), content_type="application/json"
    )
    refused(large, 413)


def test_only_operators_work_on_external_tasks(olga: Program, case: UUID, program: Make, client_for: Callable[[str], Browser]) -> None:
    [task] = fetch(olga)
    ada = program("ada")
    body = {"workerId": "w1", "maxTasks": 1, "topics": [{"topicName": "charging", "lockDuration": 1000}]}
    refused(ada.post("/external-task/fetchAndLock", body), 403)
    for verb, more in (("complete", {}), ("failure", {}), ("bpmnError", {"errorCode": "X"}), ("unlock", {}), ("lock", {"lockDuration": 1})):
        refused(ada.post(f"/external-task/{task['id']}/{verb}", {**ME, **more}), 403)
    refused(ada.put(f"/external-task/{task['id']}/retries", {"retries": 1}), 403)
    cookie = client_for("olga")
    refused(cookie.client.post("/engine-rest/external-task/fetchAndLock", json=body, headers={"X-CSRFToken": cookie.token}), 401)
