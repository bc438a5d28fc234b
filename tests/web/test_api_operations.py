"""Operations over the API: what their pages show and do, for operators; closed to everybody else."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed
from tests.web.conftest import add_person
from tests.web.decisions import cooked, dinner
from tests.web.operations import ADA, OLGA, deployed, failed_external_task, model, one, started
from tests.web.rows import Rows
from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program
from tests.web.test_deployed_forms import put
from tests.web.test_operations_calls import CALLER
from webapp.api.describing import operation_of

OPEN = {"read", "tasks", "start"}


def names(answer: Any, field: str = "key") -> list[Any]:
    assert answer.status_code == 200, answer.text
    return [item[field] for item in answer.json["items"]]


def waiting(conn: psycopg.Connection) -> UUID:
    """A case that waits for the answer of ticket t1."""
    case = started(conn, "wait_for_an_answer", ticket="t1")
    complete_task(conn, one(conn, "SELECT id FROM user_task WHERE instance_id = %s", case), actor=ADA, variables={}, request_id=None)
    return case


# ---- who may


def test_whatever_is_for_operators_or_administrators_is_closed_to_users(app: Flask, program: Any) -> None:
    """Every list and every change that names a kind of thing: 403, whatever is in it."""
    cy, olga = program("cy"), program("olga")
    closed = 0
    for rule in app.url_map.iter_rules():
        declared = operation_of(app.view_functions[rule.endpoint])
        if not rule.rule.startswith("/api/v1/") or declared is None or declared.needs is None:
            continue
        path = re.sub(r"<uuid:[a-z_]+>", str(uuid4()), rule.rule.removeprefix("/api/v1"))
        path = re.sub(r"<(?:int:version)>", "1", path)
        path = re.sub(r"<[a-z_]+>", "x", path)
        for who in (cy, olga) if declared.scope == "administer" else (cy,):
            answer = who.get(path) if "GET" in (rule.methods or ()) else who.post(path, {})
            problem(answer, 403, "not_allowed")
            closed += 1
    assert closed > 40


# ---- definitions


def test_a_version_is_shown_with_its_steps_counts_file_drawing_and_schedules(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "a_task_a_delivery_a_task", "every_quarter_of_an_hour")
    started(committed_db, "relay")
    path = "/process-definitions/relay/versions/1"
    version = olga.get(path).json
    assert (version["running"], version["tasks"], version["incidents"], version["deployed_by"]) == (1, 1, 0, "olga")
    steps = {step["id"]: step for step in olga.get(f"{path}/elements").json["items"]}
    assert (steps["check"]["kind"], steps["check"]["tokens"]) == ("User task", 1)
    xml = olga.get(f"{path}/xml")
    assert (xml.data, xml.mimetype) == (model("a_task_a_delivery_a_task"), "application/octet-stream")
    assert xml.headers["Content-Disposition"] == "attachment; filename=relay-1.bpmn"
    drawn = olga.get(f"{path}/drawing")
    assert drawn.status_code == 200 and b"BPMNShape" in drawn.data
    assert olga.get(f"{path}/schedules").json == {"items": []}
    [timer] = olga.get("/process-definitions/every_quarter_of_an_hour/versions/1/schedules").json["items"]
    assert olga.get("/schedules").json["items"] == [timer | {"key": "every_quarter_of_an_hour", "version": 1, "held": []}]
    for missing in ("relay/versions/2", "nothing/versions/1", f"relay/versions/{10**30}"):
        problem(olga.get(f"/process-definitions/{missing}"), 404, "not_found")
        problem(olga.get(f"/process-definitions/{missing}/xml"), 404, "not_found")


def test_a_suspended_version_says_by_whom_and_is_listed_as_such(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "a_task_a_delivery_a_task")
    olga.post("/process-definitions/relay/versions/1/suspend", {"reason": "audit"})
    stop = olga.get("/process-definitions/relay/versions/1").json["suspension"]
    assert (stop["suspended_by"], stop["reason"]) == ("olga", "audit")
    [listed] = olga.get("/suspensions").json["items"]
    assert (listed["kind"], listed["process_definition_key"], listed["instances"]) == ("definition", "relay", 0)


def test_deployments_are_listed_and_say_what_they_brought(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    made = [deployed(committed_db, name).deployment_id for name in ("a_task_a_delivery_a_task", "an_external_task")]
    listed = olga.get("/deployments?limit=1").json
    assert listed["items"][0]["id"] == str(made[1])
    assert names(olga.get("/deployments", query_string={"cursor": listed["next_cursor"]}), "id") == [str(made[0])]
    brought = olga.get(f"/deployments/{made[0]}").json
    assert [(each["key"], each["version"]) for each in brought["definitions"]] == [("relay", 1)]
    assert (brought["decisions"], brought["forms"]) == ([], [])
    caller = deploy(committed_db, [("caller.bpmn", CALLER)], actor=OLGA)
    assert isinstance(caller, Deployed)
    [warning] = olga.get(f"/deployments/{caller.deployment_id}").json["warnings"]
    assert "which is not deployed" in warning["what"] + warning["why"]
    problem(olga.get(f"/deployments/{uuid4()}"), 404, "not_found")


def test_decisions_are_listed_with_their_files_and_how_they_were_made(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    cooked(committed_db)
    for guests in (2, 12):
        dinner(committed_db, guests=guests, business_key=f"D-{guests}")
    keys = names(olga.get("/decision-definitions"))
    assert keys == sorted(keys) and len(keys) > 1
    key = one(
        committed_db,
        "SELECT d.key FROM history h JOIN decision_definition d ON d.id = h.item_id WHERE h.kind = 'decision_evaluated' LIMIT 1",
    )
    first = olga.get(f"/decision-definitions/{key}/versions/1/evaluations?limit=1").json
    assert first["items"][0]["business_key"] == "D-12"
    assert first["items"][0]["data"]
    assert first["next_cursor"]
    assert olga.get(f"/decision-definitions/{key}/versions/1/xml").data.startswith(b"<?xml")
    for part in ("xml", "evaluations"):
        problem(olga.get(f"/decision-definitions/{key}/versions/9/{part}"), 404, "not_found")


def test_forms_are_listed_and_given_as_they_were_deployed(program: Any, committed_db: psycopg.Connection) -> None:
    from tests.forms.schemas import ORDER, schema

    olga = program("olga")
    content = schema(*ORDER)
    put(committed_db, order_form=content)
    [form] = olga.get("/forms").json["items"]
    assert (form["key"], form["version"], form["latest"]) == ("order", 1, True)
    assert olga.get("/forms/order/versions/1/file").data == content
    problem(olga.get("/forms/order/versions/2/file"), 404, "not_found")


# ---- one instance


def test_an_instance_is_told_part_by_part_and_why_nothing_happens(program: Any, committed_db: psycopg.Connection) -> None:
    ada, olga = program("ada"), program("olga")
    deployed(committed_db, "a_task_a_delivery_a_task", "wait_for_an_answer")
    case = started(committed_db, "relay", amount=3)
    [token] = ada.get(f"/process-instances/{case}/tokens").json["items"]
    assert (token["element_id"], token["status"]) == ("check", "waiting")
    [variable] = ada.get(f"/process-instances/{case}/variables").json["items"]
    assert (variable["name"], variable["value"], variable["scope_element"]) == ("amount", 3, None)
    assert ada.get(f"/process-instances/{case}/subscriptions").json["items"] == []
    elements = ada.get(f"/process-instances/{case}/elements").json
    assert {"element_id": "check", "tokens": 1, "failed": 0, "incidents": 0} in elements["elements"]
    assert sum(elements["flows"].values()) == 1
    standing = ada.get(f"/process-instances/{case}/standing").json
    assert (standing["started_by"], standing["mark"], standing["suspension"]) == ("ada", None, None)
    [one_waits] = standing["waiting"]
    [reason] = one_waits["reasons"]
    assert (reason["kind"], reason["item_kind"], reason["detail"]) == ("task_free", "task", "Check invoice")
    olga.post(f"/process-instances/{case}/suspend", {"reason": "audit"})
    standing = ada.get(f"/process-instances/{case}/standing").json
    assert (standing["mark"], standing["suspension"]["suspended_by_name"], standing["suspension"]["reason"]) == (
        "suspended", "Olga Petrova", "audit",
    )  # fmt: skip
    assert ada.get(f"/process-instances/{case}/xml").data == model("a_task_a_delivery_a_task")
    assert ada.get(f"/process-instances/{case}/drawing").status_code == 200
    waits = waiting(committed_db)
    told = [part for each in ada.get(f"/process-instances/{waits}/standing").json["waiting"] for part in each["reasons"] + each["besides"]]
    [reason] = [part for part in told if part["kind"] == "message"]
    assert reason["item_kind"] == "subscription"
    assert names(ada.get(f"/process-instances/{waits}/subscriptions"), "message_name") == [reason["detail"]]


@pytest.mark.parametrize("part", ["standing", "tokens", "variables", "subscriptions", "elements", "xml", "drawing"])
def test_S61_no_part_of_an_instance_of_others_is_told(program: Any, committed_db: psycopg.Connection, part: str) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    case, cy = started(committed_db, "relay"), program("cy")
    hidden, missing = cy.get(f"/process-instances/{case}/{part}"), cy.get(f"/process-instances/{uuid4()}/{part}")
    assert problem(hidden, 404, "not_found") == problem(missing, 404, "not_found")


def test_every_kind_of_reason_has_a_shape(program: Any, committed_db: psycopg.Connection) -> None:
    """A failed task, a lease, a pause, work of its turn, a timer: each answer is compared with the description."""
    olga = program("olga")
    deployed(committed_db, "an_external_task", "wait_for_an_answer")
    failed = failed_external_task(committed_db)
    case = one(committed_db, "SELECT instance_id FROM external_task WHERE id = %s", failed)
    [stuck] = olga.get(f"/process-instances/{case}/standing").json["waiting"]
    assert stuck["stuck"] is True
    assert (stuck["reasons"][0]["kind"], stuck["reasons"][0]["item_id"]) == ("incident", str(failed))
    leased = started(committed_db, "shipping")
    acquire_external_tasks(committed_db, actor=OLGA, worker_id="w", topics=["ship"], limit=1)
    [reason] = olga.get(f"/process-instances/{leased}/standing").json["waiting"][0]["reasons"]
    assert (reason["kind"], reason["item_kind"], reason["by"]) == ("leased", "external_task", "w")
    free = started(committed_db, "shipping")
    assert olga.get(f"/process-instances/{free}/standing").json["waiting"][0]["reasons"][0]["kind"] == "job_due"
    olga.post("/pauses", {"kind": "external_task", "topic": "ship", "reason": "no carrier"})
    [reason] = olga.get(f"/process-instances/{free}/standing").json["waiting"][0]["reasons"]
    assert (reason["kind"], reason["by"], reason["detail"]) == ("paused", "olga", "no carrier")


def test_instances_are_filtered_by_parent_place_version_and_incident(program: Any, committed_db: psycopg.Connection) -> None:
    ada = program("ada")
    deployed(committed_db, "a_task_a_delivery_a_task", "an_external_task")
    case = started(committed_db, "relay", business_key="R-1")
    failed_external_task(committed_db, business_key="ORD-1")
    assert names(ada.get("/process-instances?element_id=check"), "id") == [str(case)]
    assert names(ada.get("/process-instances?incidents=true"), "business_key") == ["ORD-1"]
    assert names(ada.get("/process-instances?q=R-"), "id") == [str(case)]
    assert names(ada.get("/process-instances?process_definition_key=relay&version=2"), "id") == []
    assert names(ada.get(f"/process-instances?parent_id={case}"), "id") == []
    assert names(program("cy").get("/process-instances?q=R-"), "id") == []
    assert ada.get("/process-instances/count?q=R-").json == {"count": 1}
    assert program("cy").get("/process-instances/count").json == {"count": 0}


# ---- work


def test_an_external_task_is_followed_from_free_to_leased_to_its_end(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping", business_key="ORD-1")
    [task] = olga.get("/external-tasks").json["items"]
    assert (task["kind"], task["status"], task["topic"]) == ("external", "available", "ship")
    assert olga.get(f"/external-tasks/{task['id']}").json == task
    problem(olga.get(f"/jobs/{task['id']}"), 404, "not_found")
    [leased] = olga.post("/external-tasks/acquire", {"worker_id": "w1", "topics": ["ship"]}).json["items"]
    [outside] = olga.get("/external-workers").json["items"]
    assert (outside["worker_id"], outside["present"], outside["leases"]) == ("w1", 1, 1)
    [lease] = olga.get("/leases").json["items"]
    assert (lease["work"], lease["id"], lease["owner"], lease["lease_number"], lease["business_key"]) == (
        "external_task", task["id"], "w1", leased["lease_number"], "ORD-1",
    )  # fmt: skip
    assert names(olga.get("/leases?owner=w2"), "id") == []
    assert olga.get("/leases/counts").json == {"total": 1, "ended": 0, "soon": 0}
    assert olga.get("/jobs/counts").json == {"available": 0, "leased": 1, "failed": 0}
    assert names(olga.get("/leases?work=external_task&q=ord-1"), "id") == [task["id"]]
    released = olga.post(f"/leases/external_task/{task['id']}/release", {"reason": "it hangs"}, key="r")
    assert released.json == {"id": task["id"], "outcome": "released"}
    assert olga.post(f"/leases/external_task/{task['id']}/release", {"reason": "it hangs"}, key="r").json == released.json
    problem(olga.post(f"/leases/external_task/{task['id']}/release", {}), 409, "not_leased")
    problem(olga.post(f"/external-tasks/{task['id']}/complete", {"lease_number": leased["lease_number"]}), 409, "lease_lost")
    [late] = olga.get("/late-completions").json["items"]
    assert (late["item_id"], late["actor"]) == (task["id"], "olga")
    [again] = olga.post("/external-tasks/acquire", {"worker_id": "w2", "topics": ["ship"]}).json["items"]
    olga.post(f"/external-tasks/{task['id']}/complete", {"lease_number": again["lease_number"]})
    problem(olga.get(f"/external-tasks/{task['id']}"), 404, "not_found")
    past = names(olga.get(f"/external-tasks/{task['id']}/history"), "kind")
    assert past[0] == "external_task_completed" and past[-1] == "external_task_created"
    problem(olga.get(f"/jobs/{task['id']}/history"), 404, "not_found")
    [deed] = olga.get("/audit?action=release").json["items"]
    assert (deed["object_id"], deed["reason"], deed["actor_name"]) == (task["id"], "it hangs", "Olga Petrova")


def test_a_lease_of_no_kind_or_nobody_is_not_found_and_users_may_not_release(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    problem(olga.post(f"/leases/timer/{uuid4()}/release", {}), 404, "not_found")
    problem(olga.post(f"/leases/job/{uuid4()}/release", {}), 404, "not_found")
    problem(program("ada").post(f"/leases/job/{uuid4()}/release", {}), 403, "not_allowed")


def test_much_that_failed_gets_new_attempts_at_once_and_each_says_what_came_of_it(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "an_external_task")
    failed = [str(failed_external_task(committed_db, business_key=f"ORD-{number}")) for number in range(2)]
    incidents = olga.get("/incidents?item_kind=external_task&q=carrier").json["items"]
    assert {incident["item_id"] for incident in incidents} == set(failed)
    assert olga.get("/incidents?item_kind=job").json["items"] == []
    assert olga.get(f"/incidents/{incidents[0]['id']}").json == incidents[0]
    gone = str(uuid4())
    sent = {"items": [{"item_kind": "external_task", "item_id": each} for each in (*failed, gone)], "attempts": 2}
    results = olga.post("/incidents/retry", sent, key="k").json["items"]
    assert [(each["item_id"], each["reason"]) for each in results] == [(failed[0], None), (failed[1], None), (gone, "not_found")]
    assert olga.post("/incidents/retry", sent, key="k").json["items"] == results
    assert [each["reason"] for each in olga.post("/incidents/retry", sent).json["items"]] == ["not_failed", "not_failed", "not_found"]
    assert one(committed_db, "SELECT count(*) FROM external_task WHERE status = 'available' AND max_attempts - attempts = 2") == 2
    problem(olga.get(f"/incidents/{incidents[0]['id']}"), 404, "not_found")


ID = str(uuid4())
NO_ITEMS: list[Any] = [
    [], [{}], "x", [{"item_kind": "job"}], [{"item_kind": "car", "item_id": ID}], [{"item_kind": "job", "item_id": "x"}],
    [{"item_kind": "job", "item_id": ID, "more": 1}], [{"item_kind": [], "item_id": 1}], [{"item_kind": "job", "item_id": ID}] * 201,
]  # fmt: skip


@pytest.mark.parametrize("items", NO_ITEMS)
def test_what_is_no_list_of_items_is_refused(program: Any, items: Any) -> None:
    body = problem(program("olga").post("/incidents/retry", {"items": items}), 422, "invalid")
    assert body["problems"][0]["field"] == "items"


def test_a_token_that_could_not_go_on_is_tried_again(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deploy(committed_db, [("caller.bpmn", CALLER)], actor=OLGA)
    started(committed_db, "caller")
    [incident] = olga.get("/incidents?item_kind=token").json["items"]
    deploy(committed_db, [("check.bpmn", model("an_order_calls_a_check"))], actor=OLGA)
    path = f"/tokens/{incident['item_id']}/retry"
    again = olga.post(path, key="k")
    assert again.json == {"id": incident["item_id"], "status": "available", "attempts_left": 1}
    assert olga.post(path, key="k").json == again.json
    problem(olga.post(path), 409, "not_failed")
    assert incident["id"] not in names(olga.get("/incidents?item_kind=token"), "id")
    problem(olga.post(f"/tokens/{uuid4()}/retry"), 404, "not_found")
    problem(program("ada").post(f"/tokens/{uuid4()}/retry"), 403, "not_allowed")


# ---- the whole


def test_the_overview_has_every_number_of_its_page(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "a_task_a_delivery_a_task", "an_external_task")
    started(committed_db, "relay")
    started(committed_db, "shipping")
    shown = olga.get("/overview").json
    assert (shown["running"], shown["tasks"], shown["due"], shown["incidents"]) == (2, 1, 1, 0)
    assert [(lane["work"], lane["topic"], lane["due"]) for lane in shown["lanes"]] == [("external_task", "ship", 1)]
    slices = olga.get("/overview/throughput?hours=1&slices=4").json["items"]
    assert len(slices) == 4
    problem(olga.get("/overview/throughput?slices=0"), 422, "invalid")


def test_workers_the_audit_and_failed_sign_ins_are_listed(program: Any, browser: Any, committed_db: psycopg.Connection) -> None:
    add_person(committed_db, "root", "Root Account", "administrator", ())
    olga, root = program("olga"), program("root")
    worker = Rows(committed_db).worker()
    [shown] = olga.get("/workers").json["items"]
    assert (shown["host"], shown["leases"]) == ("fra-7", 0)
    assert olga.get(f"/workers/{worker}").json["id"] == str(worker)
    problem(olga.get(f"/workers/{uuid4()}"), 404, "not_found")
    browser.sign_in("ada", "wrong")
    [tries] = olga.get("/failed-sign-ins").json["items"]
    assert (tries["username"], tries["tries"]) == ("ada", 1)
    assert olga.get("/audit").json["items"] == []
    assert set(names(root.get("/audit"), "action")) == {"api_key_added"}
    problem(root.get("/audit?since=yesterday"), 422, "invalid")
    problem(root.get("/audit?since=2026-01-01T00:00:00"), 422, "invalid")
    assert root.get("/audit", query_string={"until": "2020-01-01T00:00:00+00:00"}).json["items"] == []


def test_messages_that_nobody_had_and_who_waits_are_listed(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    deployed(committed_db, "wait_for_an_answer")
    waiting(committed_db)
    publish_message(committed_db, "ANSWER", actor=OLGA, correlation_key="t9", variables={"n": 1}, time_to_live_seconds=60)
    [message] = olga.get("/messages?q=answ").json["items"]
    assert (message["correlation_key"], message["variables"], message["published_by"]) == ("t9", {"n": 1}, "olga")
    assert olga.get(f"/messages/{message['id']}").json == message
    problem(olga.get(f"/messages/{uuid4()}"), 404, "not_found")
    assert olga.get("/messages?q=nothing").json == {"items": [], "next_cursor": None}
    assert olga.get("/messages/expired").json == {"items": [], "next_cursor": None}
    [waits] = olga.get("/subscriptions").json["items"]
    assert (waits["kind"], waits["correlation_key"], waits["process_definition_key"]) == ("message", "t1", "wait_for_an_answer")
