"""S32 and S38 over HTTP: kinds of numbers and the scripts of the world, from a file and a form to pages, search, API and the file again."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from io import BytesIO
from typing import Any

import psycopg
import pytest
from flask import Flask

from tests.web.conftest import Browser
from tests.web.operations import api_key, deployed, model, one, started
from tests.web.test_api_contract import Program

Client = Callable[[str], Browser]
SIGNS = {"件数": 3, "größe": "ß", "مبلغ-كلي": 2.5, "data": {"ключ": "😀", "列": ["一", 1.0]}}


@pytest.fixture
def olga(app: Flask, people: Any, committed_db: psycopg.Connection) -> Program:
    return Program(app.test_client(), api_key(committed_db, "olga"))


def open_task(conn: psycopg.Connection) -> str:
    return str(one(conn, "SELECT id FROM user_task WHERE ended_at IS NULL"))


def typed(conn: psycopg.Connection) -> dict[str, tuple[str, Any]]:
    return {name: (kind, value) for name, kind, value in conn.execute("SELECT name, type, value FROM variable")}


def test_S32_numbers_keep_their_kind_from_the_form_to_the_condition_to_the_api(
    client_for: Client, olga: Program, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "s32_numbers")
    ada = client_for("ada")
    form = ada.get("/start/numbers").text
    assert 'name="count" value="33"' in form and 'name="price" value="10.10"' in form
    wrong = ada.post("/start/numbers", {"count": "33", "price": "12,5", "rate": "0.1", "request_id": "s"})
    assert wrong.status_code == 422 and "Write 12.5" in wrong.text
    assert one(committed_db, "SELECT count(*) FROM process_instance") == 0

    assert ada.post("/start/numbers", {"count": "33", "price": "10.10", "rate": "0.1", "request_id": "s"}).status_code == 303
    assert typed(committed_db) == {"count": ("integer", 33), "price": ("double", 10.1), "rate": ("double", 0.1)}
    page = ada.get(f"/tasks/{open_task(committed_db)}").text
    assert "Order 33, 10.1" in page and "33.0" not in page
    assert 'name="count" value="33"' in page and 'name="price" value="10.1"' in page
    done = ada.post(f"/tasks/{open_task(committed_db)}/complete", {"count": "33", "price": "10.1", "request_id": "c"})
    assert done.status_code == 303
    assert one(committed_db, "SELECT name FROM user_task WHERE ended_at IS NULL") == "Right: 13.4"
    instance = one(committed_db, "SELECT id FROM process_instance")
    told = olga.get(f"/process-instances/{instance}")
    assert told.json["variables"] == {"count": 33, "price": 10.1, "rate": 0.1, "sum": 13.4}
    assert '"count":33,' in told.text.replace(" ", "") and '"price":10.1' in told.text.replace(" ", "")


@pytest.mark.parametrize(
    ("sent", "kind", "stored"),
    [
        ("33", "integer", 33),
        ("33.0", "double", 33.0),
        ("-0.5", "double", -0.5),
        ("9007199254740993", "integer", 9007199254740993),
        ("-9223372036854775807", "integer", -9223372036854775807),
        ("1e3", "double", 1000.0),
        ("0.1", "double", 0.1),
        ("5e-324", "double", 5e-324),
        ('"33"', "string", "33"),
        ("[1, 1.0, 9007199254740993]", "json", [1, 1.0, 9007199254740993]),
        ('{"n": 33.0}', "json", {"n": 33.0}),
    ],
)
def test_S32_a_number_of_the_api_comes_back_as_it_went_in(
    olga: Program, committed_db: psycopg.Connection, sent: str, kind: str, stored: Any
) -> None:
    deployed(committed_db, "s36_names_with_signs")
    body = f'{{"variables": {{"x": {sent}}}}}'
    headers = {**olga.headers, "Content-Type": "application/json"}
    begun = olga.client.post("/api/v1/process-definitions/names_with_signs/start", data=body, headers=headers)
    assert begun.status_code == 201, begun.text
    assert one(committed_db, "SELECT type FROM variable WHERE name = 'x'") == kind
    value = olga.get(f"/process-instances/{begun.json['id']}").json["variables"]["x"]
    assert value == stored
    assert repr(value).replace(".0", "") == repr(stored).replace(".0", "")


@pytest.mark.parametrize("sent", ["9223372036854775808", "1e400", "NaN", "Infinity", '"\\ud800"', '"a\\u0000"'])
def test_S32_what_no_variable_can_hold_is_refused_before_anything_starts(
    olga: Program, committed_db: psycopg.Connection, sent: str
) -> None:
    deployed(committed_db, "s36_names_with_signs")
    headers = {**olga.headers, "Content-Type": "application/json"}
    answer = olga.client.post(
        "/api/v1/process-definitions/names_with_signs/start", data=f'{{"variables": {{"x": {sent}}}}}', headers=headers
    )
    assert answer.status_code in (400, 422), answer.text
    assert one(committed_db, "SELECT count(*) FROM process_instance") == 0


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.replace('"UTF-8"', '"UTF-16"').encode("utf-16"),
    ],
    ids=["UTF-8", "with a mark", "UTF-16"],
)
def test_S38_a_model_in_every_script_is_deployed_runs_is_found_and_comes_out_byte_by_byte(
    client_for: Client, olga: Program, committed_db: psycopg.Connection, encoded: Callable[[str], bytes]
) -> None:
    content = encoded(model("s38_every_script").decode())
    sent = {"file": [(BytesIO(content), "注文 🙂.bpmn")]}
    made = olga.client.post("/api/v1/deployments", headers=olga.headers, data=sent, content_type="multipart/form-data")
    assert made.status_code == 201, made.text
    assert made.json["definitions"][0]["key"] == "注文処理" and made.json["definitions"][0]["file"] == "注文 🙂.bpmn"

    begun = olga.post("/process-definitions/注文処理/start", {"variables": SIGNS, "business_key": "Größe-審批"})
    assert begun.status_code == 201, begun.text
    boss, ada = client_for("olga"), client_for("ada")
    assert boss.get("/operations/processes/注文処理/1/model").data == content
    page = boss.get(f"/operations/instances/{begun.json['id']}").text
    assert "注文の処理 🙂" in page and "件数" in page and "مبلغ-كلي" in page

    name = "審批 3 · مراجعة 👍🏽"
    for written in ("審批", "مراجعة", unicodedata.normalize("NFD", "Größe-"), "größe-審", "👍🏽"):
        assert name in ada.get("/inbox", query_string={"view": "groups", "q": written}).text, written
    task = open_task(committed_db)
    assert ada.post(f"/tasks/{task}/claim", {"request_id": "a"}).status_code == 303
    assert "मूल्य" in ada.get(f"/tasks/{task}").text
    assert ada.post(f"/tasks/{task}/complete", {"मूल्य": "7", "request_id": "b"}).status_code == 303
    assert one(committed_db, "SELECT name FROM user_task WHERE ended_at IS NULL") == "Prüfung 😀"
    told = olga.get(f"/process-instances/{begun.json['id']}").json
    assert told["variables"] == {**SIGNS, "मूल्य": 7}
    assert [token["element_id"] for token in told["tokens"]] == ["Prüfung"]
    assert {event["element_id"] for event in olga.get(f"/process-instances/{begun.json['id']}/history").json["items"]} >= {"審批", "分岐"}


def test_S38_names_in_both_forms_sort_side_by_side_and_stay_as_they_were_written(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "s38_every_script")
    composed, apart = unicodedata.normalize("NFC", "ä-1"), unicodedata.normalize("NFD", "ä-1")
    for key in (composed, apart):
        started(committed_db, "注文処理", business_key=key, 件数=1)
    stored = {row[0] for row in committed_db.execute("SELECT business_key FROM process_instance")}
    assert stored == {composed, apart}, "nothing is rewritten"
    for asked in (composed, apart):
        page = client_for("olga").get("/operations/instances", query_string={"q": asked}).text
        assert composed in page and apart in page, ascii(asked)
    for asked in (composed, apart, "Ä-1"):
        page = client_for("ada").get("/inbox", query_string={"view": "groups", "q": asked}).text
        assert composed in page and apart in page, ascii(asked)


def test_S38_processes_are_found_by_name_in_either_form_and_whatever_the_accents(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "names_of_the_world", "s36_names_with_signs")
    olga = client_for("olga")
    for asked in ("Prüfung", unicodedata.normalize("NFD", "Prüfung"), "PRUFUNG", "審批", "оплата 🙂"):
        page = olga.get("/operations/processes", query_string={"q": asked}).text
        assert "/operations/processes/names_of_the_world" in page, ascii(asked)
        assert "/operations/processes/names_with_signs" not in page, ascii(asked)
