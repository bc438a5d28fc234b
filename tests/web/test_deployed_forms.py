"""Deployed forms on the pages of tasks and starts, through the API, and where they are deployed."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, Deployed
from engine.commands.start import start_instance
from tests.commands.test_forms import process, titled
from tests.forms.schemas import ORDER, component, schema
from tests.web.conftest import Browser

Client = Callable[[str], Browser]
Database = psycopg.Connection[Any]
OLGA, ADA = Actor("olga", role="operator"), Actor("ada", groups=frozenset({"clerks"}))
MINE = 'camunda:assignee="ada"'
GOOD = {"title": "Chair", "pieces": "2", "price": "99.50", "place": "home", "mail": "ada@example.com", "pays": "we", "sure": "true"}


def put(conn: Database, **files: bytes) -> Deployed:
    outcome = deploy(conn, [(name.replace("_", "."), content) for name, content in files.items()], actor=OLGA)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def the_task(conn: Database, attributes: str = 'camunda:formRef="order"', inside: str = "", **files: bytes) -> UUID:
    """A task of Ada's, whose process refers to a form."""
    put(conn, buying_bpmn=process(f"{MINE} {attributes}", inside), **files)
    start_instance(conn, "buying", actor=ADA, variables={"why": "It broke", "number": 7})
    row = conn.execute("SELECT id FROM user_task").fetchone()
    assert row is not None
    return UUID(str(row[0]))


def stored(conn: Database) -> dict[str, Any]:
    rows = conn.execute("SELECT data -> 'variables' FROM history WHERE kind = 'variables_set' ORDER BY id").fetchall()
    return {name: each["value"] for row in rows[1:] for name, each in (row[0] or {}).items()}


def version_on(page: str) -> str:
    found = re.search(r'name="form_version" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_the_page_of_a_task_shows_the_deployed_form_and_stores_typed_values(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=schema(*ORDER))
    ada = client_for("ada")
    page = ada.get(f"/tasks/{task}").text
    for text in ("What shall we buy?", "As the shop calls it", "Delivery", ">\nIt broke</textarea>", 'value="1"', "EUR", "1 to 99"):
        assert text in page, text
    assert page.index("What shall we buy?") < page.index('name="title"') < page.index("Delivery") < page.index('name="place"')
    sent = {**GOOD, "why": "It broke\ntwice", "form_version": version_on(page), "request_id": "r"}
    assert ada.post(f"/tasks/{task}/complete", sent).status_code == 303
    assert stored(committed_db) == {
        "title": "Chair", "why": "It broke\ntwice", "pieces": 2, "price": 99.5, "place": "home", "day": None, "mail": "ada@example.com",
        "pays": "we", "sure": True,
    }  # fmt: skip


def test_what_is_wrong_is_said_at_its_field_and_everything_typed_stays(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=schema(*ORDER))
    ada = client_for("ada")
    ada.get(f"/tasks/{task}")
    sent = {**GOOD, "title": "", "price": "9.999", "mail": "nobody", "pieces": "100", "sure": "", "why": "Kept words", "request_id": "r"}
    answer = ada.post(f"/tasks/{task}/complete", sent)
    assert answer.status_code == 422
    for text in (
        "Fill this in.",
        "at most 2 decimals",
        "does not have the form",
        "99 or less",
        "Tick this.",
        "Kept words",
        'value="9.999"',
    ):
        assert text in answer.text, text
    assert stored(committed_db) == {}


def test_what_was_typed_before_a_newer_version_came_is_judged_by_the_version_shown(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=titled("What"))
    ada = client_for("ada")
    shown = version_on(ada.get(f"/tasks/{task}").text)
    put(committed_db, order_form=schema(component("textfield", "colour", label="Colour", validate={"required": True})))
    assert "Colour" in ada.get(f"/tasks/{task}").text
    assert ada.post(f"/tasks/{task}/complete", {"title": "Chair", "form_version": shown, "request_id": "r"}).status_code == 303
    assert stored(committed_db) == {"title": "Chair"}


def test_a_page_of_an_older_version_that_comes_back_says_so(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=schema(component("textfield", "title", validate={"required": True})))
    ada = client_for("ada")
    shown = version_on(ada.get(f"/tasks/{task}").text)
    put(committed_db, order_form=titled("Which"))
    answer = ada.post(f"/tasks/{task}/complete", {"title": "", "form_version": shown, "request_id": "r"})
    assert answer.status_code == 422 and "Version 2 of this form was deployed meanwhile" in answer.text
    assert version_on(answer.text) == shown


def test_a_form_that_is_missing_is_named_and_the_task_can_be_completed(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db)
    ada = client_for("ada")
    page = ada.get(f"/tasks/{task}").text
    assert "The form “order” is not deployed." in page and "You can go on without it" in page
    assert "It broke" in page, "what the case knows is shown"
    assert "asks for nothing" not in page
    assert ada.post(f"/tasks/{task}/complete", {"form_version": "nonsense", "request_id": "r"}).status_code == 303


def test_while_a_form_is_missing_the_fields_of_the_model_are_shown(client_for: Client, committed_db: Database) -> None:
    fields = '<camunda:formData><camunda:formField id="amount" label="Amount" type="long"/></camunda:formData>'
    task = the_task(committed_db, inside=fields)
    ada = client_for("ada")
    page = ada.get(f"/tasks/{task}").text
    assert 'name="amount"' in page and "These are the fields that the model itself has." in page
    put(committed_db, order_form=titled("What"))
    page = ada.get(f"/tasks/{task}").text
    assert 'name="amount"' not in page and 'name="title"' in page


def test_a_start_event_shows_its_form(client_for: Client, committed_db: Database) -> None:
    model = process().replace(b'<startEvent id="start"/>', b'<startEvent id="start" camunda:formRef="order"/>')
    put(committed_db, buying_bpmn=model, order_form=schema(*ORDER))
    ada = client_for("ada")
    page = ada.get("/start/buying").text
    assert "What shall we buy?" in page and 'name="pieces" value="1"' in page
    refused = ada.post("/start/buying", {**GOOD, "title": "", "why": "Kept", "form_version": version_on(page), "request_id": "s"})
    assert refused.status_code == 422 and "Kept" in refused.text
    assert ada.post("/start/buying", {**GOOD, "form_version": version_on(page), "request_id": "s"}).status_code == 303


def test_texts_of_a_form_are_texts(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=schema(component("text", text="<script>x</script>"), component("textfield", "a", label="<b>")))
    page = client_for("ada").get(f"/tasks/{task}").text
    assert "<script>x" not in page and "&lt;script&gt;x" in page and "&lt;b&gt;" in page


def test_the_api_tells_the_form_of_a_task(client_for: Client, committed_db: Database) -> None:
    task = the_task(committed_db, order_form=schema(*ORDER))
    told = client_for("ada").get(f"/api/v1/tasks/{task}/form").get_json()
    assert (told["key"], told["version"], told["missing"]) == ("order", 1, None)
    place = next(field for field in told["fields"] if field["id"] == "place")
    assert (place["type"], place["values"][0]) == ("enum", {"value": "office", "label": "Office"})
    assert client_for("cy").get(f"/api/v1/tasks/{task}/form").status_code == 404


def test_the_deploy_page_takes_forms_and_tells_what_came_of_them(client_for: Client, committed_db: Database) -> None:
    olga = client_for("olga")
    olga.get("/operations/deploy")
    form = schema(component("textfield", "a", colour="red"))

    def press(content: bytes, request: str) -> Any:
        return olga.post("/operations/deploy", {"file": (BytesIO(content), "order.form"), "request_id": request})

    answer = press(form, "a")
    page = olga.get(answer.location).text
    assert "1 form deployed" in page and "order.form" in page and "has the property &#39;colour&#39;" in page
    again = press(form, "b")
    assert "Nothing is new in the form order: version 1" in olga.get(again.location).text
    refused = press(schema(component("taglist", "tags")), "c")
    assert refused.status_code == 422 and "taglist Field_tags is a component that is not read" in refused.text
