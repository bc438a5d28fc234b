"""Called instances on the screens of operations: what is refused, what is repaired, what an author is told."""

from __future__ import annotations

import html
import re

import psycopg
from psycopg.types.json import Jsonb

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.web.operations import OLGA, Client, deployed, model, one, started
from tests.web.rows import Rows

CALLER = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:test">
  <process id="caller" name="Caller">
    <startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="c"/>
    <callActivity id="c" name="Have it checked" calledElement="check"/>
    <sequenceFlow id="g" sourceRef="c" targetRef="e"/><endEvent id="e"/>
  </process>
</definitions>"""


def words(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)).strip())


def test_a_called_instance_has_no_cancel_button_and_a_press_all_the_same_is_told_why(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_order_calls_a_check")
    started(committed_db, "order", amount=60, positions=["nut"])
    called = one(committed_db, "SELECT id FROM process_instance WHERE parent_id IS NOT NULL AND status = 'running'")
    olga = client_for("olga")
    refused = olga.post(f"/operations/instances/{called}/cancel", {"request_id": "o"})
    assert refused.status_code == 409
    assert "Another process called this one; it ends with its caller. Cancel the case that it belongs to instead." in words(refused.text)
    assert one(committed_db, "SELECT count(*) FROM process_instance WHERE status = 'cancelled'") == 0


def test_a_call_of_nothing_is_warned_about_fails_and_is_retried_once_it_is_there(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    outcome = deploy(committed_db, [("caller.bpmn", CALLER)], actor=OLGA)
    assert isinstance(outcome, Deployed)
    olga = client_for("olga")
    page = words(olga.get(f"/operations/deployments/{outcome.deployment_id}").text)
    assert "Have it checked calls the process 'check', which is not deployed" in page

    here = started(committed_db, "caller")
    why = words(olga.get(f"/operations/instances/{here}/part?part=why").text)
    assert "It could not go on: Have it checked: expected the process check, found none that is deployed." in why
    assert "Have it checked" in words(olga.get("/operations/failed").text)

    deploy(committed_db, [("check.bpmn", model("an_order_calls_a_check"))], actor=OLGA)
    assert "not deployed" not in words(olga.get(f"/operations/deployments/{outcome.deployment_id}").text)
    token = one(committed_db, "SELECT token_id FROM incident")
    again = olga.post(f"/operations/failed/token/{token}/retry", {"attempts": "1", "request_id": "r"})
    assert again.status_code == 303, words(again.text)
    assert "Waits for Check, version 1" in words(olga.get(f"/operations/instances/{here}/part?part=why").text)


def test_the_page_of_a_caller_says_that_what_it_called_has_an_incident(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_order_calls_a_check")
    here = started(committed_db, "order")  # without an amount: what it calls first cannot compute
    olga = client_for("olga")
    why = words(olga.get(f"/operations/instances/{here}/part?part=why").text)
    assert "Waits for Add the tax, version 1" in why and "It has an incident." in why
    assert "running, 1 incident" in words(olga.get(f"/operations/instances/{here}").text)


def test_the_page_of_a_deployment_names_a_handler_that_no_worker_alive_knows(client_for: Client, committed_db: psycopg.Connection) -> None:
    outcome = deployed(committed_db, "order-fulfilment")
    path, olga = f"/operations/deployments/{outcome.deployment_id}", client_for("olga")
    unknown = re.findall(r"is bound to the handler '([\w.]+)', which no worker knows", words(olga.get(path).text))
    assert unknown
    Rows(committed_db).worker(kinds=Jsonb([["service", name] for name in unknown]))
    assert "which no worker knows" not in words(olga.get(path).text)
