"""Suspend, resume, pause, let go on: the buttons, the pages that say who did it, and the same by API."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands.pause import pause_work
from engine.commands.suspend import suspend_instance
from engine.commands.suspend_definition import suspend_definition
from engine.commands.tasks import claim
from tests.commands.test_message_ids import freeze
from tests.web.conftest import Browser
from tests.web.operations import ADA, OLGA, Client, deployed, one, started
from tests.web.test_api_contract import problem, program
from tests.web.test_operations_why import sentence

__all__ = ["program"]


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def page(browser: Browser, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, path
    return words(answer.text)


def mark(conn: psycopg.Connection, case: UUID) -> str | None:
    return one(conn, "SELECT mark FROM process_instance WHERE id = %s", case)  # type: ignore[no-any-return]


def relay(conn: psycopg.Connection) -> UUID:
    deployed(conn, "a_task_a_delivery_a_task")
    return started(conn, "relay", business_key="R-1")


def test_an_instance_is_suspended_with_a_reason_and_resumed_and_its_page_says_by_whom(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    here = relay(committed_db)
    olga = client_for("olga")
    assert "Suspend R-1?" in page(olga, f"/operations/instances/{here}?suspend=1")
    answer = olga.post(f"/operations/instances/{here}/suspend", {"reason": "the auditors are here", "request_id": "1"})
    assert (answer.status_code, mark(committed_db, here)) == (303, "suspended")
    shown = page(olga, f"/operations/instances/{here}")
    assert re.search(r"Suspended by Olga Petrova [^:]*: the auditors are here", shown)
    assert "It is suspended by Olga Petrova" in sentence(olga, here)
    assert re.search(r"Olga Petrova suspended the case.{0,60}the auditors are here", shown)
    again = olga.post(f"/operations/instances/{here}/suspend", {"request_id": "2"})
    assert again.status_code == 409
    assert "suspended this already" in words(again.text) and "the auditors are here" in words(again.text)
    assert olga.post(f"/operations/instances/{here}/resume", {"request_id": "3"}).status_code == 303
    assert mark(committed_db, here) is None
    late = olga.post(f"/operations/instances/{here}/resume", {"request_id": "4"})
    assert late.status_code == 409 and "Olga Petrova resumed this" in words(late.text)


def test_R13_only_operators_find_the_buttons_and_may_press_them(client_for: Client, committed_db: psycopg.Connection) -> None:
    here = relay(committed_db)
    ada = client_for("ada")
    assert "Suspend" not in page(ada, f"/operations/instances/{here}?suspend=1")
    assert ada.post(f"/operations/instances/{here}/suspend", {"request_id": "1"}).status_code == 403
    assert client_for("cy").post(f"/operations/instances/{here}/suspend", {"request_id": "1"}).status_code == 404
    assert mark(committed_db, here) is None


def test_a_task_of_a_suspended_case_says_so_and_refuses_kindly(client_for: Client, committed_db: psycopg.Connection) -> None:
    here = relay(committed_db)
    task = one(committed_db, "SELECT id FROM user_task")
    suspend_instance(committed_db, here, actor=OLGA, reason="<b>audit</b>")
    ada = client_for("ada")
    answer = ada.get(f"/tasks/{task}")
    assert "&lt;b&gt;audit" in answer.text and "<b>audit" not in answer.text
    assert "Olga Petrova suspended this case" in words(answer.text)
    assert f"/tasks/{task}/claim" not in answer.text, "there is no button that could only be refused"
    refused = ada.post(f"/tasks/{task}/claim", {"request_id": "1"})
    assert refused.status_code == 409
    assert re.search(r"Olga Petrova suspended this case .*: .*audit.*Its tasks wait until it is resumed", words(refused.text))
    committed_db.execute("UPDATE process_instance SET mark = NULL")
    claim(committed_db, task, actor=ADA, request_id=None)
    committed_db.execute("UPDATE process_instance SET mark = 'suspended'")
    assert "it cannot be completed meanwhile" in page(ada, f"/tasks/{task}")
    refused = ada.post(f"/tasks/{task}/complete", {"request_id": "2"})
    assert refused.status_code == 409 and "Olga Petrova suspended this case" in words(refused.text)


def test_a_version_is_suspended_with_its_instances_and_resumed(client_for: Client, committed_db: psycopg.Connection) -> None:
    relay(committed_db)
    olga = client_for("olga")
    assert "And its running instances" in page(olga, "/operations/processes/relay/1?suspend=1")
    form = {"reason": "a wrong form", "with_cases": "1", "request_id": "1"}
    answer = olga.post("/operations/processes/relay/1/suspend", form)
    assert answer.status_code == 303
    assert re.search(r"Suspended by Olga Petrova [^:]*: a wrong form\. Nothing starts by it", page(olga, "/operations/processes/relay/1"))
    assert one(committed_db, "SELECT payload->>'what' FROM job WHERE kind = 'hold'") == "hold_cases"
    assert "This process is suspended" in page(client_for("ada"), "/start/relay")
    refused = client_for("ada").post("/start/relay", {"request_id": "1"})
    assert refused.status_code == 409 and "Olga Petrova suspended this process" in words(refused.text)
    assert olga.post("/operations/processes/relay/1/suspend", {"request_id": "2"}).status_code == 409
    assert olga.post("/operations/processes/relay/1/resume", {"request_id": "3"}).status_code == 303
    assert one(committed_db, "SELECT status FROM process_definition") == "active"
    assert olga.post("/operations/processes/none/1/suspend", {"request_id": "4"}).status_code == 404


def test_work_is_paused_listed_with_who_why_and_how_much_waits_and_let_go_on(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    olga = client_for("olga")
    answer = olga.post("/operations/pauses/add", {"kind": "external_task", "topic": "ship", "reason": "no carrier", "request_id": "1"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/operations/pauses")
    assert re.search(r"External tasks of ship ?Olga Petrova, [^N]*no carrier ?1 ?Let it go on", page(olga, "/operations/pauses"))
    again = olga.post("/operations/pauses/add", {"kind": "external_task", "topic": "ship", "request_id": "2"})
    assert again.status_code == 409 and "paused this already" in words(again.text)
    assert olga.post("/operations/pauses/add", {"kind": "nonsense", "topic": "x", "request_id": "3"}).status_code == 422
    answer = olga.post("/operations/pauses/remove", {"kind": "external_task", "topic": "ship", "request_id": "4"})
    assert answer.status_code == 303
    assert "No work is paused" in page(olga, "/operations/pauses")
    late = olga.post("/operations/pauses/remove", {"kind": "external_task", "topic": "ship", "request_id": "5"})
    assert late.status_code == 409 and "Olga Petrova let this go on" in words(late.text)


@pytest.mark.parametrize(
    ("kind", "topic"), [("external_task", "ship"), ("external_task", "*"), ("definition", "shipping"), ("element", "shipping/ship")]
)
def test_why_nothing_happens_names_the_pause(client_for: Client, committed_db: psycopg.Connection, kind: str, topic: str) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    element = one(committed_db, "SELECT element_id FROM external_task")
    pause_work(committed_db, kind, topic if kind != "element" else f"shipping/{element}", actor=OLGA, reason="no carrier")
    assert re.search(r"Paused by Olga Petrova, [^:]*: no carrier", sentence(client_for("olga"), here))


def test_the_page_of_an_instance_stays_as_it_is_however_much_else_its_pause_holds(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    pause_work(committed_db, "definition", "shipping", actor=OLGA, reason="no carrier")
    freeze(committed_db, "baton_clock()")  # how long something waits moves on every few seconds
    olga, path = client_for("olga"), f"/operations/instances/{here}/part?part=head"
    first = olga.get(path)
    assert first.status_code == 200
    started(committed_db, "shipping")
    assert olga.get(path, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304


def test_what_is_suspended_is_listed_with_a_button_that_comes_back(client_for: Client, committed_db: psycopg.Connection) -> None:
    here = relay(committed_db)
    suspend_instance(committed_db, here, actor=OLGA, reason="audit")
    suspend_definition(committed_db, one(committed_db, "SELECT id FROM process_definition"), actor=OLGA, reason="wrong")
    olga = client_for("olga")
    shown = page(olga, "/operations/pauses")
    assert "R-1" in shown and "version 1without its instances" in shown
    answer = olga.post(f"/operations/instances/{here}/resume", {"request_id": "1", "back": "/operations/pauses"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/operations/pauses")


def test_of_a_version_that_was_suspended_with_very_many_cases_so_many_are_counted(
    client_for: Client, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("engine.queries.resting.MOST", "webapp.operations.resting.MOST"):
        monkeypatch.setattr(name, 2)
    relay(committed_db)
    version = one(committed_db, "SELECT id FROM process_definition")
    suspend_definition(committed_db, version, actor=OLGA, reason="wrong", with_cases=True)
    for expected in ("with 1 instance", "with 2 instances", "with 2+ instances", "with 2+ instances"):
        committed_db.execute(
            "INSERT INTO suspension (object_id, id, kind, suspended_by, cause_id)"
            " SELECT gen_random_uuid(), gen_random_uuid(), 'instance', 'olga', id FROM suspension WHERE object_id = %s",
            (version,),
        )
        assert expected in page(client_for("olga"), "/operations/pauses")


# ---- by API


def test_by_api_an_instance_and_a_version_are_suspended_and_resumed(program: Any, committed_db: psycopg.Connection) -> None:
    here = relay(committed_db)
    olga = program("olga")
    answer = olga.post(f"/process-instances/{here}/suspend", {"reason": "audit"}, key="1")
    assert (answer.status_code, answer.json["id"], mark(committed_db, here)) == (200, str(here), "suspended")
    assert olga.post(f"/process-instances/{here}/suspend", {"reason": "audit"}, key="1").status_code == 200
    told = problem(olga.post(f"/process-instances/{here}/suspend"), 409, "already_suspended")
    assert (told["by"], told["by_name"], told["detail"]) == ("olga", "Olga Petrova", "audit") and told["at"]
    task = one(committed_db, "SELECT id FROM user_task")
    told = problem(program("ada").post(f"/tasks/{task}/claim"), 409, "instance_suspended")
    assert (told["by"], told["detail"]) == ("olga", "audit")
    assert olga.post(f"/process-instances/{here}/resume").status_code == 200
    assert problem(olga.post(f"/process-instances/{here}/resume"), 409, "not_suspended")["by"] == "olga"
    problem(program("ada").post(f"/process-instances/{here}/suspend"), 403, "not_allowed")
    problem(olga.post(f"/process-instances/{uuid4()}/suspend"), 404, "not_found")

    answer = olga.post("/process-definitions/relay/versions/1/suspend", {"with_instances": True})
    assert (answer.json["status"], answer.json["with_instances"]) == ("suspended", True)
    problem(olga.post("/process-definitions/relay/versions/1/suspend"), 409, "already_suspended")
    told = problem(program("ada").post("/process-definitions/relay/start"), 409, "definition_suspended")
    assert told["by"] == "olga"
    assert olga.post("/process-definitions/relay/versions/1/resume").json["status"] == "active"
    problem(olga.post("/process-definitions/relay/versions/7/resume"), 404, "not_found")
    problem(program("ada").post("/process-definitions/relay/versions/1/suspend"), 403, "not_allowed")


def test_by_api_work_is_paused_listed_and_let_go_on(program: Any, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    olga = program("olga")
    body = {"kind": "external_task", "topic": "ship"}
    assert olga.post("/pauses", {**body, "reason": "no carrier"}).json == {**body, "outcome": "paused"}
    [listed] = olga.get("/pauses").json["items"]
    assert {name: listed[name] for name in ("kind", "topic", "paused_by", "reason", "waiting")} == {
        **body, "paused_by": "olga", "reason": "no carrier", "waiting": 1,
    }  # fmt: skip
    assert problem(olga.post("/pauses", body), 409, "already_paused")["detail"] == "no carrier"
    assert olga.post("/pauses/remove", body).json == {**body, "outcome": "unpaused"}
    problem(olga.post("/pauses/remove", body), 409, "not_paused")
    problem(olga.post("/pauses", {"kind": "timer", "topic": "x"}), 422, "invalid")
    problem(olga.post("/pauses", {"kind": "definition", "topic": "none"}), 404, "not_found")
    for answer in (program("ada").get("/pauses"), program("ada").post("/pauses", body), program("ada").post("/pauses/remove", body)):
        problem(answer, 403, "not_allowed")
