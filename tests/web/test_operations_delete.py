"""A version is deleted from its page: asked for, confirmed with a reason, refused while it is used."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import psycopg

from tests.bpmn.models import model
from tests.web.operations import Client, deployed, one, started
from tests.web.test_api_contract import problem, program

__all__ = ["program"]
PAGE = "/operations/processes/wait_for_an_answer/1"


def test_a_version_is_deleted_after_it_was_asked_for_and_its_page_says_so(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "wait_for_an_answer")
    olga = client_for("olga")
    assert 'href="/operations/processes/wait_for_an_answer/1?delete=1"' in olga.get(PAGE).text
    assert "Nobody can start this process any more." in olga.get(f"{PAGE}?delete=1").text
    answer = olga.post(f"{PAGE}/delete", {"reason": "a mistake", "request_id": "1"})
    assert (answer.status_code, answer.headers["Location"]) == (303, PAGE)
    page = olga.get(PAGE).text
    assert "Version 1 is deleted." in page and "This version is deleted" in page and "?delete=1" not in page
    assert one(committed_db, "SELECT reason FROM audit WHERE action = 'delete'") == "a mistake"
    again = olga.post(f"{PAGE}/delete", {"reason": "again", "request_id": "2"})
    assert again.status_code == 409 and "Olga" in again.text and "deleted this version" in again.text


def test_a_version_of_which_instances_run_is_not_deleted_and_the_page_says_how_many(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "wait_for_an_answer")
    started(committed_db, "wait_for_an_answer")
    answer = client_for("olga").post(f"{PAGE}/delete", {"reason": "a mistake", "request_id": "1"})
    assert answer.status_code == 409
    assert "1 instance of version 1 of wait_for_an_answer still runs" in answer.text
    assert one(committed_db, "SELECT status FROM process_definition") == "active"


def test_a_deletion_without_a_reason_is_422(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "wait_for_an_answer")
    assert client_for("olga").post(f"{PAGE}/delete", {"reason": " ", "request_id": "1"}).status_code == 422


def test_a_deleted_version_is_not_the_latest_and_the_one_before_is(
    program: Any, client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "wait_for_an_answer")
    olga = program("olga")
    again = model("wait_for_an_answer").replace(b'name="Ask"', b'name="Ask again"')
    deployment = olga.client.post("/api/v1/deployments", headers=olga.headers, data={"file": (BytesIO(again), "wait_for_an_answer.bpmn")})
    assert deployment.status_code == 201, deployment.text
    path = "/process-definitions/wait_for_an_answer/versions/{}/delete"
    problem(olga.post(path.format(3), {"reason": "x"}), 404, "not_found")
    problem(program("ada").post(path.format(2), {"reason": "x"}), 403, "not_allowed")
    problem(olga.post(path.format(2), {}), 422, "invalid")
    done = olga.post(path.format(2), {"reason": "a mistake"}, key="1")
    assert (done.status_code, done.json["latest_version"]) == (200, 1)
    assert olga.post(path.format(2), {"reason": "a mistake"}, key="1").json == done.json
    (latest,) = olga.get("/process-definitions").json["items"]
    assert (latest["version"], latest["latest"], latest["status"]) == (1, True, "active")
    assert "older version" not in client_for("olga").get(PAGE).text
    started_now = olga.post("/process-definitions/wait_for_an_answer/start", {})
    assert started_now.json["version"] == 1


def test_the_question_says_how_many_instances_stand_in_the_way(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "wait_for_an_answer")
    started(committed_db, "wait_for_an_answer")
    olga = client_for("olga")
    assert "1 instance runs by it: until that has ended it is refused." in olga.get(f"{PAGE}?delete=1").text
    started(committed_db, "wait_for_an_answer")
    assert "2 instances run by it: until they have ended it is refused." in olga.get(f"{PAGE}?delete=1").text
