"""The API's contract: names, shapes, statuses, problem+json. What programs outside rely on."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.web.conftest import Browser
from tests.web.operations import ADA, Client, api_key, deployed, failed_external_task, model, one, started

TASK = {
    "id", "name", "element_id", "status", "assignee", "candidate_groups", "process_instance_id", "root_instance_id", "business_key",
    "priority", "due_at", "created_at",
}  # fmt: skip
INSTANCE = {
    "id", "root_id", "parent_id", "definition_key", "version", "status", "business_key", "started_at", "ended_at", "variables", "tokens",
    "incidents", "called",
}  # fmt: skip


class Program:
    """A program with a bearer key."""

    def __init__(self, client: FlaskClient, token: str) -> None:
        self.client, self.headers = client, {"Authorization": f"Bearer {token}"}

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(f"/api/v1{path}", headers=self.headers, **more)

    def post(self, path: str, body: Any = None, *, key: str | None = None, **more: Any) -> Any:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        sent = {} if body is None else {"json": body}
        return self.client.post(f"/api/v1{path}", headers=headers, **sent, **more)


@pytest.fixture
def program(app: Flask, people: Any, committed_db: psycopg.Connection) -> Any:
    return lambda username: Program(app.test_client(), api_key(committed_db, username))


def problem(answer: Any, status: int, reason: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.mimetype == "application/problem+json"
    assert answer.json["reason"] == reason, answer.json
    assert answer.json["status"] == status
    assert answer.json["detail"]
    return answer.json


# ---- the whole way of a case


def test_a_case_runs_from_deployment_to_its_end_over_the_api(program: Any, committed_db: psycopg.Connection) -> None:
    olga, ada = program("olga"), program("ada")
    sent = {"file": [(BytesIO(model("a_task_a_delivery_a_task")), "relay.bpmn")]}
    made = olga.client.post("/api/v1/deployments", headers=olga.headers, data=sent, content_type="multipart/form-data")
    assert made.status_code == 201, made.text
    assert made.json["deployment_id"]
    [definition] = made.json["definitions"]
    assert (definition["key"], definition["version"], definition["file"], definition["unchanged"]) == ("relay", 1, "relay.bpmn", False)
    assert definition["warnings"] == []

    begun = ada.post(
        "/process-definitions/relay/start", {"variables": {"amount": 10.5, "lines": [1, {"a": None}]}, "business_key": "INV-1"}
    )
    assert begun.status_code == 201
    instance = begun.json
    assert set(instance) == INSTANCE
    assert begun.headers["Location"].endswith(f"/api/v1/process-instances/{instance['id']}")
    assert instance["variables"] == {"amount": 10.5, "lines": [1, {"a": None}]}
    assert instance["tokens"] == [{"element_id": "check", "status": "waiting"}]
    assert (instance["status"], instance["business_key"], instance["root_id"], instance["parent_id"]) == (
        "running",
        "INV-1",
        instance["id"],
        None,
    )
    assert (instance["incidents"], instance["called"], instance["ended_at"]) == ([], [], None)

    listed = ada.get("/tasks").json
    assert set(listed) == {"items", "next_cursor"}
    [task] = listed["items"]
    assert set(task) == TASK
    assert (task["name"], task["status"], task["assignee"], task["candidate_groups"]) == ("Check invoice", "open", None, ["clerks"])
    assert task["process_instance_id"] == task["root_instance_id"] == instance["id"]
    assert ada.get(f"/tasks/{task['id']}").json == task

    assert ada.post(f"/tasks/{task['id']}/claim").json["assignee"] == "ada"
    done = ada.post(f"/tasks/{task['id']}/complete", {"variables": {"approved": True}})
    assert done.status_code == 200
    assert done.json["status"] == "completed"
    [approve] = ada.get("/tasks", query_string={"process_instance_id": instance["id"]}).json["items"]
    ada.post(f"/tasks/{approve['id']}/claim")
    ada.post(f"/tasks/{approve['id']}/complete", {})
    ended = ada.get(f"/process-instances/{instance['id']}").json
    assert (ended["status"], ended["tokens"]) == ("completed", [])
    assert ended["ended_at"]
    assert ended["variables"] == {"amount": 10.5, "lines": [1, {"a": None}], "approved": True}

    history = ada.get(f"/process-instances/{instance['id']}/history").json
    kinds = [event["kind"] for event in history["items"]]
    assert kinds[0] == "instance_started"
    assert kinds[-1] == "instance_completed"
    assert kinds.count("task_completed") == 2
    assert set(history["items"][0]) == {"id", "at", "kind", "element_id", "actor", "item_id", "data"}
    first = ada.get(f"/process-instances/{instance['id']}/history?limit=3").json
    second = ada.get(f"/process-instances/{instance['id']}/history", query_string={"limit": 1000, "cursor": first["next_cursor"]}).json
    assert [event["kind"] for event in first["items"] + second["items"]] == kinds
    assert [one_["id"] for one_ in ada.get("/process-instances?status=completed").json["items"]] == [instance["id"]]
    assert ada.get("/process-definitions").json["items"][0]["key"] == "relay"


def test_the_same_file_again_is_200_and_says_unchanged(program: Any) -> None:
    olga = program("olga")

    def deploy() -> Any:
        sent = {"file": [(BytesIO(model("an_external_task")), "a.bpmn")]}
        return olga.client.post("/api/v1/deployments", headers=olga.headers, data=sent, content_type="multipart/form-data")

    assert deploy().status_code == 201
    again = deploy()
    assert again.status_code == 200
    assert again.json["deployment_id"] is None
    assert again.json["definitions"][0]["unchanged"] is True


def test_S48_every_problem_of_a_deployment_is_named_by_file_element_and_line_and_nothing_is_stored(
    program: Any, committed_db: psycopg.Connection
) -> None:
    olga = program("olga")
    files = [(BytesIO(model(name)), f"{name}.bpmn") for name in ("an_external_task", "s48_faults", "s48_one_key", "s48_one_key_again")]
    answer = olga.client.post("/api/v1/deployments", headers=olga.headers, data={"file": files}, content_type="multipart/form-data")
    body = problem(answer, 422, "invalid")
    assert len(body["problems"]) >= 4
    assert all(set(found) == {"file", "element_id", "line", "what", "why"} for found in body["problems"])
    assert any(found["file"] == "s48_faults.bpmn" and found["line"] for found in body["problems"])
    assert one(committed_db, "SELECT count(*) FROM process_definition") == 0
    for content in (b"", b"PK\x03\x04", b"<" * 20_000_000):
        answer = olga.client.post(
            "/api/v1/deployments", headers=olga.headers, data={"file": [(BytesIO(content), "x.bpmn")]}, content_type="multipart/form-data"
        )
        assert answer.status_code in (413, 422)
        assert answer.mimetype == "application/problem+json"
    problem(olga.client.post("/api/v1/deployments", headers=olga.headers, data={}, content_type="multipart/form-data"), 422, "invalid")
    problem(olga.post("/deployments", {"file": "x"}), 415, "unsupported_media_type")


# ---- refusals


def test_R13_a_lost_claim_names_the_winner_and_when_and_what_is_hidden_names_nobody(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay")
    task = one(committed_db, "SELECT id FROM user_task")
    ada, bo, cy = program("ada"), program("bo"), program("cy")
    assert ada.post(f"/tasks/{task}/claim").status_code == 200
    lost = problem(bo.post(f"/tasks/{task}/claim"), 409, "already_claimed")
    assert lost["by"] == "ada"
    assert lost["at"]
    problem(bo.post(f"/tasks/{task}/complete", {}), 409, "not_yours")
    for answer in (cy.post(f"/tasks/{task}/claim"), cy.get(f"/tasks/{task}"), cy.post(f"/tasks/{task}/complete", {"variables": {}})):
        hidden = problem(answer, 404, "not_found")
        assert "by" not in hidden
        assert "ada" not in answer.text.lower()


def test_S23_a_repeated_claim_is_a_harmless_success_and_a_late_rival_hears_the_truth_of_now(
    program: Any, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay")
    task = one(committed_db, "SELECT id FROM user_task")
    ada, bo = program("ada"), program("bo")
    assert ada.post(f"/tasks/{task}/claim", key="one").status_code == 200
    assert ada.post(f"/tasks/{task}/claim", key="one").status_code == 200
    assert ada.post(f"/tasks/{task}/claim", key="two").status_code == 200
    problem(bo.post(f"/tasks/{task}/claim", key="bo"), 409, "already_claimed")
    assert one(committed_db, "SELECT count(*) FROM history WHERE kind = 'task_claimed'") == 1
    ada.post(f"/tasks/{task}/complete", {})
    # A repeated request gets its first answer, a new press the truth of now.
    problem(bo.post(f"/tasks/{task}/claim", key="bo"), 409, "already_claimed")
    late = problem(bo.post(f"/tasks/{task}/claim", key="bo later"), 409, "already_completed")
    assert late["by"] == "ada"


def test_unclaim_and_assign_answer_with_the_task_or_the_reason(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay")
    task = one(committed_db, "SELECT id FROM user_task")
    ada, olga = program("ada"), program("olga")
    problem(ada.post(f"/tasks/{task}/unclaim"), 409, "not_claimed")
    assert olga.post(f"/tasks/{task}/assign", {"assignee": "ada"}).json["assignee"] == "ada"
    assert problem(olga.post(f"/tasks/{task}/assign", {"assignee": "nobody"}), 422, "invalid")["problems"][0]["field"] == "assignee"
    problem(olga.post(f"/tasks/{task}/assign", {}), 422, "invalid")
    assert ada.post(f"/tasks/{task}/unclaim").json["assignee"] is None


def test_operators_alone_see_jobs_and_incidents_and_may_cancel_and_retry(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    item = failed_external_task(committed_db)
    here = one(committed_db, "SELECT id FROM process_instance")
    ada, olga, cy = program("ada"), program("olga"), program("cy")
    for path in ("/jobs", "/incidents"):
        problem(ada.get(path), 403, "not_allowed")
    [job] = olga.get("/jobs?status=failed").json["items"]
    assert (job["id"], job["kind"], job["topic"]) == (str(item), "external", "ship")
    [incident] = olga.get("/incidents").json["items"]
    assert (incident["item_kind"], incident["item_id"], incident["element_id"]) == ("external_task", str(item), "ship")
    assert olga.get(f"/process-instances/{here}").json["incidents"][0]["message"].startswith("CarrierDown")
    problem(ada.post(f"/external-tasks/{item}/retry", {"attempts": 1}), 403, "not_allowed")
    problem(ada.post(f"/process-instances/{here}/cancel"), 403, "not_allowed")
    problem(cy.post(f"/process-instances/{here}/cancel"), 404, "not_found")
    problem(olga.post(f"/external-tasks/{item}/retry", {"attempts": 0}), 422, "invalid")
    assert olga.post(f"/external-tasks/{item}/retry", {"attempts": 2}).json["attempts_left"] == 2
    late = problem(olga.post(f"/external-tasks/{item}/retry", {"attempts": 2}), 409, "not_failed")
    assert late["by"] == "olga"
    problem(olga.post(f"/jobs/{uuid4()}/retry", {"attempts": 1}), 404, "not_found")
    assert olga.post(f"/process-instances/{here}/cancel", {"reason": "twice"}).json["status"] == "cancelled"
    problem(olga.post(f"/process-instances/{here}/cancel"), 409, "already_cancelled")


# ---- external tasks


def test_R4_an_external_task_is_acquired_renewed_and_completed_under_its_lease_number(
    program: Any, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping", business_key="ORD-1", boxes=2)
    olga, ada = program("olga"), program("ada")
    asked = {"worker_id": "mint-01", "topics": ["ship"], "limit": 5, "lease_seconds": 30}
    problem(ada.post("/external-tasks/acquire", asked), 403, "not_allowed")
    [task] = olga.post("/external-tasks/acquire", asked).json["items"]
    assert (task["topic"], task["business_key"], task["variables"], task["lease_number"], task["attempts"]) == (
        "ship",
        "ORD-1",
        {"boxes": 2},
        1,
        1,
    )
    assert olga.post("/external-tasks/acquire", asked).json == {"items": []}
    path = f"/external-tasks/{task['id']}"
    renewed = olga.post(f"{path}/renew", {"lease_number": 1, "lease_seconds": 90}).json
    assert renewed["lease_expires_at"] > task["lease_expires_at"]
    problem(olga.post(f"{path}/renew", {"lease_number": 7}), 409, "lease_lost")
    problem(olga.post(f"{path}/complete", {"lease_number": 7}), 409, "lease_lost")
    problem(olga.post(f"{path}/complete", {}), 422, "invalid")
    done = olga.post(f"{path}/complete", {"lease_number": 1, "variables": {"carrier": "Kestrel"}})
    assert (done.status_code, done.json["status"]) == (200, "completed")
    assert olga.post(f"{path}/complete", {"lease_number": 1, "variables": {"carrier": "Kestrel"}}).status_code == 200, (
        "a repeat is harmless"
    )
    assert one(committed_db, "SELECT status FROM process_instance") == "completed"


def test_an_external_task_fails_throws_and_is_released(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    olga = program("olga")

    def acquired() -> dict[str, Any]:
        started(committed_db, "shipping")
        [task] = olga.post("/external-tasks/acquire", {"worker_id": "w", "topics": ["ship"], "limit": 1}).json["items"]
        return task

    task = acquired()
    failed = olga.post(f"/external-tasks/{task['id']}/fail", {"lease_number": 1, "error": "CarrierDown", "retry_in": 60}).json
    assert (failed["status"], failed["attempts"]) == ("available", 1)
    assert failed["available_at"]
    task = acquired()
    assert olga.post(f"/external-tasks/{task['id']}/release", {"lease_number": 1}).json["status"] == "available"
    assert one(committed_db, "SELECT attempts FROM external_task WHERE id = %s", task["id"]) == 0
    [task] = olga.post("/external-tasks/acquire", {"worker_id": "w", "topics": ["ship"], "limit": 1}).json["items"]
    assert olga.post(f"/external-tasks/{task['id']}/error", {"lease_number": 2, "code": "REFUSED"}).status_code == 200
    assert one(committed_db, "SELECT name FROM user_task") == "Ship by hand"


# ---- messages


def test_messages_are_stored_for_their_time_to_live_or_refused(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    problem(olga.post("/messages", {"name": "paid", "correlation_key": "4711"}), 409, "no_subscription")
    stored = olga.post("/messages", {"name": "paid", "correlation_key": "4711", "variables": {"a": 1}, "time_to_live_seconds": 60})
    assert stored.status_code == 200
    assert stored.json["outcome"] == "stored"
    assert one(committed_db, "SELECT variables -> 'a' IS NOT NULL FROM message")
    problem(olga.post("/messages", {"name": "", "time_to_live_seconds": -1}), 422, "invalid")


def test_a_signal_is_thrown_whoever_waits_and_the_same_press_twice_throws_once(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    asked = {"name": "ALARM", "variables": {"floor": 3}}
    first = olga.post("/signals", asked, key="1")
    assert (first.status_code, first.json["outcome"]) == (200, "thrown")
    assert olga.post("/signals", asked, key="1").json == first.json
    assert one(committed_db, "SELECT count(*) FROM job WHERE kind = 'throw' AND payload->>'name' = 'ALARM'") == 1
    problem(olga.post("/signals", {"name": ""}), 422, "invalid")
    problem(olga.post("/signals", {"name": "x", "correlation_key": "1"}), 422, "invalid")
    problem(program("ada").post("/signals", asked), 403, "not_allowed")


# ---- what callers send


def test_S69_json_that_does_not_say_so_is_refused_and_changes_nothing(
    client_for: Client, program: Any, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay")
    task = one(committed_db, "SELECT id FROM user_task")
    ada = program("ada")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml"):
        answer = ada.client.post(f"/api/v1/tasks/{task}/claim", headers=ada.headers, data=b"{}", content_type=kind)
        problem(answer, 415, "unsupported_media_type")
    browser = client_for("ada")
    no_token = browser.client.post(f"/api/v1/tasks/{task}/claim", json={})
    problem(no_token, 400, "csrf")
    bo = client_for("bo")
    problem(browser.client.post(f"/api/v1/tasks/{task}/claim", json={}, headers={"X-CSRFToken": bo.token}), 400, "csrf")
    assert browser.client.get(f"/api/v1/tasks/{task}/claim").status_code == 405
    assert one(committed_db, "SELECT status FROM user_task") == "open"
    assert browser.client.post(f"/api/v1/tasks/{task}/claim", json={}, headers={"X-CSRFToken": browser.token}).status_code == 200


def test_guests_and_revoked_keys_get_401_with_the_scheme_even_beside_a_good_cookie(
    app: Flask, client_for: Client, program: Any, committed_db: psycopg.Connection
) -> None:
    for path in ("/tasks", "/process-instances", "/jobs"):
        answer = app.test_client().get(f"/api/v1{path}")
        problem(answer, 401, "not_signed_in")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    ada = program("ada")
    committed_db.execute("UPDATE api_key SET revoked_at = baton_clock()")
    problem(ada.get("/tasks"), 401, "not_signed_in")
    browser: Browser = client_for("bo")
    assert browser.client.get("/api/v1/tasks").status_code == 200
    assert browser.client.get("/api/v1/tasks", headers={"Authorization": "Bearer baton_wrong"}).status_code == 401


def test_wrong_methods_ids_fields_and_sizes_are_problems_that_name_what_was_expected(
    program: Any, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    ada = program("ada")
    wrong_method = ada.client.delete("/api/v1/tasks", headers=ada.headers)
    problem(wrong_method, 405, "method_not_allowed")
    assert set(wrong_method.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    for path in ("/tasks/nonsense", f"/tasks/{uuid4()}", "/process-instances/7", f"/process-instances/{uuid4()}/history", "/nothing"):
        problem(ada.get(path), 404, "not_found")
    problem(ada.post("/process-definitions/none/start", {}), 404, "not_found")
    unknown = problem(ada.post("/process-definitions/relay/start", {"variables": {}, "colour": 1, "business_key": 7}), 422, "invalid")
    assert {found["field"] for found in unknown["problems"]} == {"colour", "business_key"}
    for body in (
        b"[]",
        b"{",
        b'"x"',
        b'{"variables": {"n": NaN}}',
        b'{"variables": {"n": 1e999}}',
        b'{"variables": {"n": 99999999999999999999}}',
    ):
        answer = ada.client.post("/api/v1/process-definitions/relay/start", headers=ada.headers, data=body, content_type="application/json")
        problem(answer, 422, "invalid")
    big = ada.post("/process-definitions/relay/start", {"variables": {"n": "x" * 3_000_000}})
    problem(big, 413, "too_large")
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    problem(ada.post("/process-definitions/relay/start", {"variables": {"n": deep}}), 422, "invalid")
    for query in (
        "limit=0",
        "limit=x",
        "limit=201",
        "status=bogus",
        "colour=1",
        "cursor=nonsense",
        "limit=1&limit=2",
        "process_instance_id=7",
    ):
        problem(ada.get(f"/tasks?{query}"), 422, "invalid")
    problem(ada.post("/process-definitions/relay/start", {}, key="x" * 300), 422, "invalid")
    assert one(committed_db, "SELECT count(*) FROM process_instance") == 0


def test_S47_tasks_of_the_same_moment_page_without_gaps(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    for place in range(7):
        started(committed_db, "relay", business_key=f"INV-{place}")
    committed_db.execute("UPDATE user_task SET created_at = '2026-11-01T00:00:00Z'")
    ada = program("ada")
    seen: list[str] = []
    cursor = None
    while True:
        page = ada.get("/tasks", query_string={"limit": 3, **({"cursor": cursor} if cursor else {})}).json
        seen += [task["business_key"] for task in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == [f"INV-{place}" for place in range(7)]
    assert [task["business_key"] for task in ada.get("/tasks?business_key=INV-3").json["items"]] == ["INV-3"]


# ---- what is hidden


def test_S61_lists_counts_and_single_things_of_others_are_as_if_they_were_not_there(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    here = started(committed_db, "relay", business_key="SECRET-1", actor=ADA)
    task = one(committed_db, "SELECT id FROM user_task")
    cy, bo, ada = program("cy"), program("bo"), program("ada")
    assert cy.get("/tasks").json == {"items": [], "next_cursor": None}
    assert cy.get("/tasks?status=claimed").json["items"] == []
    for query in (
        f"process_instance_id={here}",
        "business_key=SECRET-1",
        "candidate_group=clerks",
        "assignee=ada",
        "process_definition_key=relay",
    ):
        assert cy.get(f"/tasks?{query}").json["items"] == [], query
    assert cy.get("/process-instances").json["items"] == []
    for path in (f"/tasks/{task}", f"/process-instances/{here}", f"/process-instances/{here}/history"):
        hidden, absent = cy.get(path), cy.get(path.replace(str(task), str(uuid4())).replace(str(here), str(uuid4())))
        assert (hidden.status_code, hidden.json) == (absent.status_code, absent.json)
    for change in ("claim", "unclaim", "complete", "assign"):
        body = {"assignee": "cy"} if change == "assign" else {}
        hidden, absent = cy.post(f"/tasks/{task}/{change}", body), cy.post(f"/tasks/{uuid4()}/{change}", body)
        assert (hidden.status_code, hidden.json) == (absent.status_code, absent.json), change
    assert len(bo.get("/tasks").json["items"]) == 1
    assert bo.get(f"/process-instances/{here}").status_code == 200, "bo sees one of its tasks"
    committed_db.execute("DELETE FROM person_group WHERE person_id = (SELECT id FROM person WHERE username = 'bo')")
    assert bo.get("/tasks").json["items"] == []
    assert bo.get(f"/process-instances/{here}").status_code == 404
    assert ada.get(f"/process-instances/{here}").status_code == 200, "ada started it"
