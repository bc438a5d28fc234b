"""Deploying by hand, the definitions, their diagrams, and the counts that follow without a reload."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any

import psycopg
import pytest

from tests.web.conftest import Browser
from tests.web.operations import Client, deployed, failed_external_task, model, one, sample, started


def send(browser: Browser, *files: tuple[str, bytes], **fields: Any) -> Any:
    uploads = [(BytesIO(content), name) for name, content in files]
    return browser.post("/operations/deploy", {"file": uploads, "request_id": "r", **fields}, content_type="multipart/form-data")


def stored(conn: psycopg.Connection) -> int:
    return int(one(conn, "SELECT count(*) FROM process_definition"))


def test_a_deployment_answers_303_to_what_it_brought(client_for: Client, committed_db: psycopg.Connection) -> None:
    olga = client_for("olga")
    answer = send(olga, ("shipping.bpmn", model("an_external_task")), ("relay.bpmn", model("a_task_a_delivery_a_task")), name="autumn")
    assert answer.status_code == 303
    page = olga.get(answer.headers["Location"]).text
    assert "2 processes deployed" in page
    assert "Shipping" in page and "Relay" in page and "autumn" in page
    assert stored(committed_db) == 2


def test_S49_the_same_file_again_makes_no_version_and_says_so(client_for: Client, committed_db: psycopg.Connection) -> None:
    olga = client_for("olga")
    send(olga, ("a.bpmn", model("an_external_task")))
    answer = send(olga, ("b.bpmn", model("an_external_task")), request_id="r2")
    assert answer.status_code == 303
    assert "version 1 has the same content, so no version was made" in olga.get(answer.headers["Location"]).text
    assert stored(committed_db) == 1


def test_S48_a_broken_file_among_good_ones_lists_every_problem_and_stores_nothing(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    olga = client_for("olga")
    answer = send(
        olga,
        ("good.bpmn", model("an_external_task")),
        ("faults.bpmn", model("s48_faults")),
        ("key.bpmn", model("s48_one_key")),
        ("again.bpmn", model("s48_one_key_again")),
    )
    assert answer.status_code == 422
    page = answer.text
    assert "so nothing was deployed" in page
    rows = re.findall(
        r'<tr role="row"><th role="rowheader" scope="row">([^<]*)</th>.*?data-l="Line" class="num"><span>([^<]*)</span>', page
    )
    assert len(rows) >= 4
    assert any(file == "faults.bpmn" and line.isdigit() for file, line in rows)
    assert any(file in ("key.bpmn", "again.bpmn") for file, _ in rows)
    assert stored(committed_db) == 0
    assert one(committed_db, "SELECT count(*) FROM deployment") == 0


@pytest.mark.parametrize(
    ("name", "content"), [("empty.bpmn", b""), ("a.zip", b"PK\x03\x04rest"), ("x.bpmn", b"<nope/>"), ("t.bpmn", b"hello")]
)
def test_S48_what_is_no_model_is_refused_with_its_file(
    client_for: Client, committed_db: psycopg.Connection, name: str, content: bytes
) -> None:
    answer = send(client_for("olga"), (name, content))
    assert answer.status_code == 422
    assert name in answer.text
    assert stored(committed_db) == 0


def test_S48_a_file_of_twenty_megabytes_is_413_and_a_deployment_without_a_file_422(client_for: Client) -> None:
    olga = client_for("olga")
    assert send(olga, ("big.bpmn", b"<" * 20_000_000)).status_code == 413
    nothing = send(olga)
    assert nothing.status_code == 422
    assert "Choose at least one BPMN, DMN or form file." in nothing.text


def test_S63_a_doctype_is_refused_within_a_second_and_names_no_file_of_ours(client_for: Client) -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><definitions>&a;</definitions>'
    answer = send(client_for("olga"), ("bomb.bpmn", bomb))
    assert answer.status_code == 422
    assert "root:" not in answer.text


def test_a_process_page_has_its_diagram_and_the_same_in_words(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "order-fulfilment")
    olga = client_for("olga")
    page = olga.get("/operations/processes/order-fulfilment/1").text
    assert 'data-diagram="/operations/processes/order-fulfilment/1/drawing"' in page
    assert "bpmn-navigated-viewer" in page
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    for step in (
        "Reserve the stock Service task",
        "Ship the order Subprocess",
        "Payment received Waits for message payment-received",
        "Out of stock Event at the border of Reserve the stock",
    ):
        assert step in words, step
    assert olga.get("/operations/processes/order-fulfilment").text.count("version 1") > 0
    xml = olga.get("/operations/processes/order-fulfilment/1/model")
    assert xml.data == sample("order-fulfilment")
    assert olga.get("/operations/processes/order-fulfilment/1/model", headers={"If-None-Match": xml.headers["ETag"]}).status_code == 304


def test_the_counts_of_a_diagram_change_with_the_part_that_is_fetched_again(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    olga = client_for("olga")

    def part() -> Any:
        return olga.get("/operations/processes/shipping/1/elements")

    def counts(answer: Any) -> Any:
        return json.loads(re.search(r"data-counts='([^']*)'", answer.text)[1])["elements"]  # type: ignore[index]

    first = part()
    assert counts(first) == {}
    started(committed_db, "shipping")
    failed_external_task(committed_db)
    second = olga.get("/operations/processes/shipping/1/elements", headers={"If-None-Match": first.headers["ETag"]})
    assert second.status_code == 200
    assert counts(second) == {"ship": {"tokens": 2, "incidents": 1}}
    assert "2 tokens" in second.text


def test_an_instance_shows_the_way_that_it_took(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    steps = client_for("olga").get(f"/operations/instances/{here}/part?part=steps").text
    found = json.loads(re.search(r"data-counts='([^']*)'", steps)[1])  # type: ignore[index]
    assert found == {"elements": {"ship": {"tokens": 1, "incidents": 0}}, "taken": {"f1": 1}}


def test_S48_a_stored_model_that_todays_rules_refuse_still_has_its_pages(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping", business_key="OLD-1")
    committed_db.execute("UPDATE process_definition SET id = id, xml = %s", (b"<definitions/>",))
    from engine.db import definitions

    definitions._kept.clear()
    olga = client_for("olga")
    page = olga.get("/operations/processes/shipping/1")
    assert page.status_code == 200
    assert "stored under older rules" in page.text
    instance = olga.get(f"/operations/instances/{here}")
    assert instance.status_code == 200
    assert "OLD-1" in instance.text
    for path in ("/operations", "/operations/jobs", "/operations/failed", "/operations/instances"):
        assert olga.get(path).status_code == 200
