"""Starting a process over HTTP: what is offered, its form, what happens next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg

from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, Deployed
from tests.web.conftest import Browser

Client = Callable[[str], Browser]
OLGA = Actor("olga", role="operator")
MODELS = Path(__file__).parents[1] / "models"


def deployed(conn: psycopg.Connection, *files: str) -> None:
    outcome = deploy(conn, [(name, (MODELS / name).read_bytes()) for name in files], actor=OLGA)
    assert isinstance(outcome, Deployed), outcome


def test_before_a_deployment_the_page_says_what_would_fill_it(client_for: Client) -> None:
    assert "No process can be started by hand" in client_for("ada").get("/start").text


def test_a_started_case_opens_at_the_next_step_if_that_is_mine(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter.bpmn")
    ada = client_for("ada")
    assert "Leave request" in ada.get("/start").text
    form = ada.get("/start/leave")
    assert 'name="days" value="5"' in form.text
    refused = ada.post("/start/leave", {"days": "none", "business_key": "L-1", "request_id": "s"})
    assert refused.status_code == 422
    assert 'value="none"' in refused.text and 'value="L-1"' in refused.text and "Not started: 1 field needs your attention" in refused.text

    started = ada.post("/start/leave", {"days": "3", "business_key": "L-1", "request_id": "s"})
    assert started.status_code == 303
    row = committed_db.execute("SELECT id, business_key, assignee FROM user_task").fetchone()
    assert row is not None and row[1:] == ("L-1", "ada")
    assert started.location == f"/tasks/{row[0]}"
    assert ada.post("/start/leave", {"days": "3", "business_key": "L-1", "request_id": "s"}).location == started.location
    assert committed_db.execute("SELECT count(*) FROM process_instance").fetchone() == (1,)


def test_after_completing_the_next_step_of_the_case_is_offered_in_the_list(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter.bpmn")
    ada = client_for("ada")
    first = ada.post("/start/leave", {"days": "3", "request_id": "s"}).location
    assert "You started Leave request." in ada.get(first).text
    answer = ada.post(f"{first}/complete?back=/inbox?view%3Dmine", {"request_id": "c"})
    assert (answer.status_code, answer.location) == (303, "/inbox?view=mine")
    following = committed_db.execute("SELECT id FROM user_task WHERE status = 'claimed'").fetchone()
    assert following is not None
    page = ada.get(answer.location).text
    assert "The next step of this case is yours." in page
    assert f"/tasks/{following[0]}?back=/inbox?view%3Dmine" in page
    assert "The next step of this case is yours." not in ada.get(answer.location).text


def test_an_unknown_process_is_a_404_and_a_get_starts_nothing(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter.bpmn")
    ada = client_for("ada")
    assert ada.get("/start/nothing").status_code == 404
    assert ada.post("/start/nothing", {"request_id": "s"}).status_code == 404
    ada.get("/start/leave")
    assert committed_db.execute("SELECT count(*) FROM process_instance").fetchone() == (0,)


def test_a_suspended_process_is_not_started_and_says_so(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter.bpmn")
    committed_db.execute("UPDATE process_definition SET status = 'suspended'")
    answer = client_for("ada").post("/start/leave", {"days": "3", "request_id": "s"})
    assert answer.status_code == 409
    assert "This process is suspended" in answer.text
