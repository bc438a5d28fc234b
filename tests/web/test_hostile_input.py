"""What no page of ours sends: cursors, numbers and texts made to break something. Always a refusal, never a 500."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Callable
from io import BytesIO

import pytest
from argon2 import PasswordHasher
from flask import Flask

from engine.core.values import Variable
from engine.ids import new_id
from engine.queries.rows import BadCursor, time_cursor, unpacked
from engine.queries.sort import Key, keyset
from tests.web.conftest import Browser
from webapp.auth import passwords
from webapp.filters import shown

NUL = "a\0b"
LISTS = ("instances", "jobs", "leases", "failed", "outbox", "messages")


def packed(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text", [packed("[" * 2900), "x" * 20_001, "é", "=", packed(["\ud800"])], ids=["deep", "long", "foreign", "pad", "half"]
)
def test_a_cursor_that_no_list_wrote_is_refused_however_it_was_made(text: str) -> None:
    with pytest.raises(BadCursor):
        unpacked(text)


def test_a_cursor_with_a_number_for_an_id_is_refused() -> None:
    with pytest.raises(BadCursor, match="expected a time and an id"):
        time_cursor(packed(["2026-01-01T00:00:00+00:00", 5]))


def test_a_place_with_half_a_surrogate_pair_is_refused_before_the_database_sees_it() -> None:
    with pytest.raises(BadCursor):
        keyset((Key("name", "t.name", "text"),), packed(["\ud800"]), descending=False)


@pytest.mark.parametrize("cursor", [packed("[" * 2900), packed(["2026-01-01T00:00:00+00:00", 5]), packed(["\ud800"] * 5)])
def test_lists_answer_400_to_a_place_that_never_was(client_for: Callable[[str], Browser], cursor: str) -> None:
    olga = client_for("olga")
    pages = ["/inbox", *(f"/operations/{name}" for name in LISTS)]
    assert {page: olga.get(page, query_string={"after": cursor}).status_code for page in pages} == dict.fromkeys(pages, 400)


@pytest.mark.parametrize("path", ["/start/%00", "/operations/processes/%00", "/operations/processes/a%00/1"])
def test_an_address_with_nul_leads_nowhere(client_for: Callable[[str], Browser], path: str) -> None:
    assert client_for("olga").get(path).status_code == 404


def test_the_api_answers_404_to_a_key_with_nul(client_for: Callable[[str], Browser]) -> None:
    olga = client_for("olga")
    answer = olga.client.post("/api/v1/process-definitions/%00/start", json={}, headers={"X-CSRFToken": olga.token})
    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/inbox/next", {"request_id": NUL}),
        ("/tasks/{id}/claim", {"request_id": NUL}),
        ("/tasks/{id}/assign", {"assignee": NUL}),
        ("/operations/failed/job/{id}/retry", {"request_id": NUL}),
        ("/operations/failed/job/{id}/retry", {"attempts": "1" * 5000}),
        ("/operations/deploy", {"name": NUL}),
    ],
)
def test_a_form_that_nobody_typed_is_422(client_for: Callable[[str], Browser], path: str, fields: dict[str, str]) -> None:
    assert client_for("olga").post(path.format(id=new_id()), fields).status_code == 422


def test_what_was_deployed_is_named_without_asking_for_nul(client_for: Callable[[str], Browser]) -> None:
    assert client_for("olga").get("/operations/deploy", query_string={"same": "a\0/1"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/messages", {"name": "paid", "time_to_live_seconds": 10**400}),
        ("/external-tasks/acquire", {"worker_id": "w", "topics": ["t"], "lease_seconds": 10**400}),
        ("/external-tasks/acquire", {"worker_id": "w", "topics": ["t"], "limit": 10**400}),
    ],
)
def test_a_number_that_no_float_holds_is_422(client_for: Callable[[str], Browser], path: str, body: dict[str, object]) -> None:
    olga = client_for("olga")
    answer = olga.client.post(f"/api/v1{path}", json=body, headers={"X-CSRFToken": olga.token})
    assert (answer.status_code, answer.json and answer.json["reason"]) == (422, "invalid")
    assert answer.json is not None
    assert "… (401 characters)" in answer.json["detail"]


def test_a_session_that_sends_a_form_to_the_api_is_told_and_nothing_is_taken_for_an_empty_body(
    client_for: Callable[[str], Browser],
) -> None:
    olga = client_for("olga")
    headers = {"X-CSRFToken": olga.token}
    answer = olga.client.post(f"/api/v1/tasks/{new_id()}/complete", data={"variables": "{}"}, headers=headers)
    assert answer.status_code == 415


def test_a_session_has_no_wider_limit_for_json_than_a_key(client_for: Callable[[str], Browser]) -> None:
    olga = client_for("olga")
    body = {"name": "paid", "variables": {"n": "x" * 3_000_000}}
    assert olga.client.post("/api/v1/messages", json=body, headers={"X-CSRFToken": olga.token}).status_code == 413


def test_a_deployment_is_not_named_with_nul(client_for: Callable[[str], Browser]) -> None:
    olga = client_for("olga")
    files = {"name": NUL, "file": (BytesIO(b"<a/>"), "a.bpmn")}
    answer = olga.client.post("/api/v1/deployments", data=files, headers={"X-CSRFToken": olga.token})
    assert (answer.status_code, answer.json and answer.json["problems"][0]["field"]) == (422, "name")


def test_a_guest_whose_htmx_names_no_page_is_sent_to_sign_in(browser: Browser) -> None:
    answer = browser.get("/inbox", headers={"HX-Request": "true", "HX-Current-URL": "http://["})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/login")


def test_a_referrer_that_is_no_address_is_refused_over_https(browser: Browser) -> None:
    browser.get("/login", base_url="https://baton.test")
    fields = {"username": "ada", "password": "x"}
    answer = browser.post("/login", fields, base_url="https://baton.test", headers={"Referer": "https://["})
    assert answer.status_code == 400


@pytest.mark.parametrize("value", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_the_zone_of_the_pages_does_not_have_is_shown_as_it_is(app: Flask, value: str) -> None:
    with app.app_context():
        assert shown(Variable("datetime", value)) == value


def test_invented_methods_share_one_counter(browser: Browser) -> None:
    browser.client.open("/login", method="INVENTED")
    counted = browser.get("/metrics").get_data(as_text=True)
    assert "INVENTED" not in counted
    assert 'method="other"' in counted


def test_S71_a_name_that_does_not_exist_costs_one_verification_from_the_first_try_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = importlib.reload(passwords)  # as in a process that has seen no sign-in yet

    def made_late(self: PasswordHasher, password: str) -> str:
        raise AssertionError("a hash was made while somebody waited: twice the time of a name that exists")

    monkeypatch.setattr(PasswordHasher, "hash", made_late)
    assert not fresh.matches(None, "anything")
