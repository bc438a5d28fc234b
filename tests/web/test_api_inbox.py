"""The inbox, tasks and start forms over the API: what their pages have, in the same order and for the same eyes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from engine.commands.suspend import suspend_instance
from tests.web.operations import OLGA, deployed, one, started
from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program

Ask = Any


@pytest.fixture
def invoices(committed_db: psycopg.Connection) -> psycopg.Connection:
    """Three invoices that clerks may check, in the order of their numbers."""
    deployed(committed_db, "a_task_a_delivery_a_task")
    for number in range(3):
        started(committed_db, "relay", business_key=f"INV-{number}")
    return committed_db


def found(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["business_key"] for item in answer.json["items"]]


def test_the_inbox_is_filtered_sorted_counted_and_paged_as_its_page(program: Any, invoices: psycopg.Connection) -> None:
    ada = program("ada")
    assert found(ada.get("/inbox?sort=key")) == ["INV-0", "INV-1", "INV-2"]
    assert found(ada.get("/inbox?sort=key&direction=desc")) == ["INV-2", "INV-1", "INV-0"]
    first = ada.get("/inbox?sort=key&limit=2").json
    assert (len(first["items"]), first["total"]) == (2, 3)
    assert found(ada.get("/inbox", query_string={"sort": "key", "limit": 2, "cursor": first["next_cursor"]})) == ["INV-2"]
    assert found(ada.get("/inbox?q=inv-1")) == ["INV-1"]
    assert found(ada.get("/inbox?due=overdue")) == []
    assert found(ada.get("/inbox?process_definition_key=other")) == []
    [row] = ada.get("/inbox?q=INV-1").json["items"]
    assert (row["may_claim"], row["mine"], row["status"]) == (True, False, "open")
    assert ada.post(f"/tasks/{row['id']}/claim").status_code == 200
    assert found(ada.get("/inbox?view=mine")) == ["INV-1"]
    assert found(ada.get("/inbox?assignee=free&sort=key")) == ["INV-0", "INV-2"]
    assert ada.get("/inbox/counts").json == {"mine": 1, "groups": 3, "today": 0, "overdue": 0, "all": 3}
    ada.post(f"/tasks/{row['id']}/complete", {"variables": {"approved": True}})
    assert found(ada.get("/inbox?view=done")) == ["INV-1"]


def test_S61_the_inbox_of_somebody_else_is_empty(program: Any, invoices: psycopg.Connection) -> None:
    cy = program("cy")
    for view in ("mine", "groups", "today", "overdue", "all", "done"):
        assert cy.get(f"/inbox?view={view}").json == {"items": [], "next_cursor": None, "total": 0}
    assert set(cy.get("/inbox/counts").json.values()) == {0}


def test_wrong_choices_of_the_inbox_and_cursors_of_other_lists_are_named(program: Any, invoices: psycopg.Connection) -> None:
    ada = program("ada")
    for wrong in ("view=yours", "sort=colour", "direction=up", "assignee=bo", "due=never", "limit=0", "cursor=x"):
        body = problem(ada.get(f"/inbox?{wrong}"), 422, "invalid")
        assert body["problems"][0]["field"] == wrong.partition("=")[0]
    of_another_order = ada.get("/inbox?limit=1&sort=key").json["next_cursor"]
    problem(ada.get("/inbox", query_string={"sort": "due", "cursor": of_another_order}), 422, "invalid")


def test_take_next_claims_the_oldest_free_task_once_a_key_and_says_when_nothing_is_free(program: Any, invoices: psycopg.Connection) -> None:
    ada = program("ada")
    first = ada.post("/tasks/take-next", key="one").json
    assert (first["business_key"], first["assignee"]) == ("INV-0", "ada")
    assert ada.post("/tasks/take-next", key="one").json["id"] == first["id"]
    assert [ada.post("/tasks/take-next").json["business_key"] for _ in range(2)] == ["INV-1", "INV-2"]
    problem(ada.post("/tasks/take-next"), 409, "nothing_free")
    problem(program("cy").post("/tasks/take-next"), 409, "nothing_free")


def test_who_lost_a_claim_is_offered_the_next_free_task_of_the_step(program: Any, invoices: psycopg.Connection) -> None:
    ada, bo = program("ada"), program("bo")
    mine, *_ = ada.get("/tasks").json["items"]
    ada.post(f"/tasks/{mine['id']}/claim")
    problem(bo.post(f"/tasks/{mine['id']}/claim"), 409, "already_claimed")
    offer = bo.get(f"/tasks/{mine['id']}/next-free").json["task"]
    assert (offer["business_key"], offer["name"]) == ("INV-1", "Check invoice")
    bo.post("/tasks/take-next")
    bo.post("/tasks/take-next")
    assert bo.get(f"/tasks/{mine['id']}/next-free").json == {"task": None}


def test_a_task_tells_how_it_stands_what_it_may_read_what_was_done_and_to_whom_it_may_be_given(
    program: Any, invoices: psycopg.Connection
) -> None:
    ada, bo, olga = program("ada"), program("bo"), program("olga")
    [task] = ada.get("/tasks?business_key=INV-0").json["items"]
    standing = bo.get(f"/tasks/{task['id']}/standing").json
    assert [standing[name] for name in ("may_claim", "mine", "may_assign")] == [True, False, False]
    assert standing["candidate_groups"] == ["clerks"]
    assert bo.get(f"/tasks/{task['id']}/assignees").json == {"items": []}
    ada.post(f"/tasks/{task['id']}/claim")
    standing = bo.get(f"/tasks/{task['id']}/standing").json
    assert (standing["assignee"], standing["assignee_name"], standing["may_claim"]) == ("ada", "Ada Moreno", False)
    assert [one_["username"] for one_ in ada.get(f"/tasks/{task['id']}/assignees").json["items"]] == ["ada", "bo"]
    assert len(olga.get(f"/tasks/{task['id']}/assignees").json["items"]) == 4
    past = ada.get(f"/tasks/{task['id']}/history").json["items"]
    assert [event["kind"] for event in past] == ["task_claimed", "instance_started"]
    assert ada.get(f"/tasks/{task['id']}/variables").json == {"items": []}
    suspend_instance(invoices, one(invoices, "SELECT root_id FROM user_task WHERE id = %s", task["id"]), actor=OLGA, reason="audit")
    standing = ada.get(f"/tasks/{task['id']}/standing").json
    assert (standing["suspended_by_name"], standing["suspended_because"]) == ("Olga Petrova", "audit")
    assert problem(ada.post(f"/tasks/{task['id']}/complete"), 409, "instance_suspended")["detail"] == "audit"


def test_a_task_shows_the_variables_of_its_case_with_their_types(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    started(committed_db, "relay", amount=10.5, lines=[1])
    ada = program("ada")
    [task] = ada.get("/tasks").json["items"]
    told = ada.get(f"/tasks/{task['id']}/variables").json["items"]
    assert [(each["name"], each["value"]) for each in told] == [("amount", 10.5), ("lines", [1])]


@pytest.mark.parametrize("part", ["", "/form", "/standing", "/variables", "/history", "/assignees", "/next-free"])
def test_S61_no_part_of_a_task_of_others_is_told(program: Any, invoices: psycopg.Connection, part: str) -> None:
    task = one(invoices, "SELECT id FROM user_task LIMIT 1")
    cy = program("cy")
    hidden, missing = cy.get(f"/tasks/{task}{part}"), cy.get(f"/tasks/{uuid4()}{part}")
    assert problem(hidden, 404, "not_found") == problem(missing, 404, "not_found")


def test_the_start_form_is_that_of_the_page_for_whoever_may_start(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter", "every_quarter_of_an_hour")
    cy = program("cy")
    assert [each["key"] for each in cy.get("/process-definitions?startable=true").json["items"]] == ["leave"]
    assert [each["key"] for each in cy.get("/process-definitions?startable=false").json["items"]] == ["every_quarter_of_an_hour"]
    form = cy.get("/process-definitions/leave/form").json
    days = form["fields"][0]
    assert (days["id"], days["label"], days["type"]) == ("days", "Days", "long")
    for nothing in ("nothing", "every_quarter_of_an_hour"):
        problem(cy.get(f"/process-definitions/{nothing}/form"), 404, "not_found")
