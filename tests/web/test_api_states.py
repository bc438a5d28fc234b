"""ETags: a body that the caller has is not sent again, and what has changed since the caller saw it is not changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.web.operations import deployed, started
from tests.web.test_api_contract import Program, problem
from tests.web.test_api_contract import program as program


@pytest.fixture
def ada(program: Callable[[str], Program], committed_db: psycopg.Connection) -> Program:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay")
    return program("ada")


def changed(ada: Program, path: str, tag: str, body: Any = None) -> Any:
    return ada.client.post(f"/api/v1{path}", headers=ada.headers | {"If-Match": tag}, json=body or {})


@pytest.mark.parametrize("path", ["/tasks", "/process-definitions", "/process-instances", "/openapi.json"])
def test_what_the_caller_has_is_not_sent_again(ada: Program, path: str) -> None:
    first = ada.get(path)
    tag = first.headers["ETag"]
    assert tag.startswith('"'), "a strong one"
    again = ada.client.get(f"/api/v1{path}", headers=ada.headers | {"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    assert ada.client.get(f"/api/v1{path}", headers=ada.headers | {"If-None-Match": '"other"'}).json == first.json


def test_a_change_gives_another_name_to_the_state(ada: Program) -> None:
    [task] = ada.get("/tasks").json["items"]
    path = f"/tasks/{task['id']}"
    before = ada.get(path).headers["ETag"]
    claimed = ada.post(f"{path}/claim")
    assert claimed.headers["ETag"] != before
    shown = ada.client.get(f"/api/v1{path}", headers=ada.headers | {"If-None-Match": before})
    assert (shown.status_code, shown.headers["ETag"]) == (200, claimed.headers["ETag"])


def test_what_has_changed_since_the_caller_saw_it_is_not_changed(ada: Program, program: Callable[[str], Program]) -> None:
    [task] = ada.get("/tasks").json["items"]
    path = f"/tasks/{task['id']}"
    seen = ada.get(path).headers["ETag"]
    program("bo").post(f"{path}/claim")
    program("bo").post(f"{path}/unclaim")
    program("olga").post(f"{path}/assign", {"assignee": "ada"})
    refused = changed(ada, f"{path}/unclaim", seen)
    problem(refused, 412, "precondition_failed")
    assert ada.get(path).json["assignee"] == "ada"
    assert refused.headers["ETag"] == ada.get(path).headers["ETag"]
    assert changed(ada, f"{path}/unclaim", refused.headers["ETag"]).json["status"] == "open"
    assert changed(ada, f"{path}/claim", "*").json["assignee"] == "ada"
    assert changed(ada, f"{path}/claim", f"W/{ada.get(path).headers['ETag']}").status_code == 412, "a weak one never matches"


def test_an_instance_is_cancelled_as_it_was_seen_or_not_at_all(ada: Program, program: Callable[[str], Program]) -> None:
    olga = program("olga")
    [case] = olga.get("/process-instances").json["items"]
    path = f"/process-instances/{case['id']}"
    seen = olga.get(path).headers["ETag"]
    [task] = ada.get("/tasks").json["items"]
    ada.post(f"/tasks/{task['id']}/claim")
    assert ada.post(f"/tasks/{task['id']}/complete", {"variables": {"approved": True}}).status_code == 200
    problem(changed(olga, f"{path}/cancel", seen), 412, "precondition_failed")
    assert changed(olga, f"{path}/cancel", olga.get(path).headers["ETag"]).json["status"] == "cancelled"


def test_R13_a_guess_at_the_state_of_what_one_may_not_see_is_404(ada: Program, program: Callable[[str], Program]) -> None:
    [task] = ada.get("/tasks").json["items"]
    path = f"/tasks/{task['id']}"
    for tag in ("*", ada.get(path).headers["ETag"], '"x"'):
        problem(changed(program("cy"), f"{path}/claim", tag), 404, "not_found")
