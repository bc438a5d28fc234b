"""One's own API keys, and people and keys for administrators: who may, what is asked, what is shown once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from flask import Flask

from engine.commands.api_keys import MOST, add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from engine.commands.people import add_person as add_somebody
from engine.queries.people import ApiKeyRow, api_keys
from engine.queries.people import people as everybody
from tests.web.conftest import PASSWORD, Browser, add_person
from tests.web.operations import one

Client = Callable[[str], Browser]
TOKEN = re.compile(r'value="(baton_[\w-]{43})"')


@pytest.fixture
def root(client_for: Client, committed_db: psycopg.Connection[Any]) -> Browser:
    add_person(committed_db, "rae", "Rae Ot", "administrator", ())
    return client_for("rae")


def key_of(conn: psycopg.Connection[Any], username: str) -> ApiKeyRow:
    (found,) = api_keys(conn, username=username)
    return found


# ---- one's own keys


def test_a_key_is_made_shown_once_and_used(client_for: Client, app: Flask, committed_db: psycopg.Connection[Any]) -> None:
    ada = client_for("ada")
    assert "There is no key yet" in ada.get("/account/keys").text
    made = ada.post("/account/keys", {"name": "Import", "days": "30", "scope": ["read", "tasks"], "request_id": "r"})
    assert made.status_code == 201 and made.headers["Cache-Control"] == "no-store"
    [token] = TOKEN.findall(made.text)
    assert app.test_client().get("/api/v1/tasks", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    listed = ada.get("/account/keys").text
    assert token not in listed and f"baton_…{token[-4:]}" in listed and "read, tasks" in listed
    assert key_of(committed_db, "ada").scopes == ["read", "tasks"]


def test_R10_a_reload_of_the_page_with_the_key_makes_no_other_and_does_not_show_it_again(
    client_for: Client, committed_db: psycopg.Connection[Any]
) -> None:
    ada = client_for("ada")
    form = {"name": "Import", "days": "30", "scope": "read", "request_id": "r"}
    first, again = ada.post("/account/keys", form), ada.post("/account/keys", form)
    assert TOKEN.findall(first.text) and not TOKEN.findall(again.text)
    assert "was made already" in again.text and key_of(committed_db, "ada")


def test_what_is_wrong_with_a_key_is_said_and_what_was_typed_is_kept(client_for: Client, committed_db: psycopg.Connection[Any]) -> None:
    ada = client_for("ada")

    def told(**form: Any) -> str:
        answer = ada.post("/account/keys", {"name": "Import", "days": "30", "scope": "read", "request_id": str(uuid4()), **form})
        assert answer.status_code == 422
        return answer.text

    assert "says what uses the key" in told(name=" ") and 'name="scope" value="tasks" checked' in told(name="", scope=["tasks"])
    assert "expected at least one of read, tasks, start, found none" in told(scope=[])
    assert "found operate" in told(scope=["operate"])
    assert "expected 1 to 3650, found 0" in told(days="for ever")
    assert api_keys(committed_db) == []
    for number in range(MOST):
        add_api_key(committed_db, "ada", actor=SYSTEM, name=str(number))
    assert "revoke one that nobody uses" in told()


def test_a_key_for_everything_and_for_ever_is_made_only_if_so_asked(client_for: Client, committed_db: psycopg.Connection[Any]) -> None:
    ada = client_for("ada")
    ada.post("/account/keys", {"name": "Import", "days": "never", "reach": "everything", "request_id": "r"})
    key = key_of(committed_db, "ada")
    assert (key.scopes, key.expires_at) == (None, None)
    assert "Everything that you may" in ada.get("/account/keys").text


def test_the_house_may_forbid_keys_without_an_end(client_for: Client, app: Flask) -> None:
    object.__setattr__(app.config["BATON"], "key_max_days", 20)
    ada = client_for("ada")
    page = ada.get("/account/keys").text
    assert re.findall(r'<option value="(\w+)"', page.split('name="days"')[1].split("</select>")[0]) == ["7"]
    assert ada.post("/account/keys", {"name": "x", "days": "never", "scope": "read", "request_id": "r"}).status_code == 422


def test_a_key_is_revoked_after_the_page_has_asked_once_more(client_for: Client, committed_db: psycopg.Connection[Any]) -> None:
    add_api_key(committed_db, "ada", actor=SYSTEM, name="Import")
    key, ada = key_of(committed_db, "ada"), client_for("ada")
    assert "Revoke the key “Import” for good?" in ada.get(f"/account/keys?revoke={key.id}").text
    for _ in range(2):
        assert ada.post(f"/account/keys/{key.id}/revoke", {"request_id": "r"}).status_code == 303
    assert key_of(committed_db, "ada").status == "revoked"
    assert "The key is revoked." in ada.get("/account/keys").text
    assert "for good?" not in ada.get("/account/keys?revoke=nonsense").text


def test_R13_nobody_revokes_the_key_of_another_by_its_page(client_for: Client, committed_db: psycopg.Connection[Any]) -> None:
    add_api_key(committed_db, "ada", actor=SYSTEM, name="Import")
    key = key_of(committed_db, "ada")
    for name in ("bo", "olga"):
        assert client_for(name).post(f"/account/keys/{key.id}/revoke", {"request_id": "r"}).status_code == 404
    assert key_of(committed_db, "ada").status == "active"


# ---- people


def test_R13_people_and_keys_are_for_administrators(client_for: Client, browser: Browser) -> None:
    pages = ("", "/add", "/ada")
    changes = ("/add", "/ada/change", "/ada/password", "/ada/disable", "/ada/enable", "/ada/keys", f"/ada/keys/{uuid4()}/revoke")
    for name in ("ada", "olga"):
        somebody = client_for(name)
        assert "People and keys" not in somebody.get("/inbox").text
        for path in pages:
            assert somebody.get(f"/administration/people{path}").status_code == 403
        for path in changes:
            assert somebody.post(f"/administration/people{path}", {"request_id": "r"}).status_code == 403
    assert browser.get("/administration/people").status_code == 302


def test_every_change_is_a_post_with_the_token_of_this_session(root: Browser) -> None:
    for path in ("/account/keys", "/administration/people/ada/disable", "/administration/people/ada/change"):
        assert root.client.post(path, data={"name": "x"}).status_code == 400, path
    assert root.get("/administration/people/ada/disable").status_code == 405


def test_everybody_is_listed_found_and_told_apart_from_service_accounts(root: Browser, committed_db: psycopg.Connection[Any]) -> None:
    add_somebody(committed_db, "robot", actor=SYSTEM, display_name="Robot", groups=["clerks"], kind="service")
    page = root.get("/administration/people").text
    assert "Ada Moreno" in page and "service account" in page.split("Robot")[1].split("</tr>")[0]
    services = root.get("/administration/people?kind=service").text
    assert "Robot" in services and "Ada Moreno" not in services
    assert "Cy Okafor" not in root.get("/administration/people?group=clerks").text
    assert "No name matches “zebra”" in root.get("/administration/people?q=zebra").text
    assert root.get("/administration/people?after=nonsense").status_code == 400


def test_a_person_is_added_and_signs_in(root: Browser, app: Flask) -> None:
    form = {"username": "dora", "display_name": "Dora Maar", "role": "user", "groups": "clerks, drivers", "password": PASSWORD}
    assert root.post("/administration/people/add", {**form, "request_id": "r"}).status_code == 303
    assert root.post("/administration/people/add", {**form, "request_id": "r"}).status_code == 303  # the same press
    assert "clerks, drivers" in root.get("/administration/people/dora").text
    assert Browser(app.test_client()).sign_in("dora").status_code == 303
    again = root.post("/administration/people/add", {**form, "request_id": "s"})
    assert again.status_code == 422 and "dora exists already" in again.text and PASSWORD not in again.text
    short = root.post("/administration/people/add", {**form, "username": "eve", "password": "short", "request_id": "t"})
    assert "expected 8 to 1,024 characters, found 5" in short.text and 'value="eve"' in short.text


def test_a_service_account_is_made_with_a_key_of_its_own(root: Browser, app: Flask, committed_db: psycopg.Connection[Any]) -> None:
    form = {"username": "robot", "display_name": "Robot", "role": "operator", "groups": "", "kind": "service", "request_id": "r"}
    assert 'name="password"' not in root.get("/administration/people/add?kind=service").text
    assert root.post("/administration/people/add", {**form, "password": "ignored-by-intent"}).status_code == 303
    assert 'name="password"' not in root.get("/administration/people/robot").text
    made = root.post("/administration/people/robot/keys", {"name": "x", "days": "30", "scope": "external_tasks", "request_id": "k"})
    [token] = TOKEN.findall(made.text)
    acquired = app.test_client().post(
        "/api/v1/external-tasks/acquire", json={"worker_id": "w", "topics": ["t"]}, headers={"Authorization": f"Bearer {token}"}
    )
    assert acquired.status_code == 200
    assert key_of(committed_db, "robot").made_by == "rae"
    assert one(committed_db, "SELECT password_hash FROM person WHERE username = 'robot'") is None
    page = root.get(f"/administration/people/robot?revoke={key_of(committed_db, 'robot').id}").text
    assert f'action="/administration/people/robot/keys/{key_of(committed_db, "robot").id}/revoke"' in page
    root.post(f"/administration/people/robot/keys/{key_of(committed_db, 'robot').id}/revoke", {"request_id": "v"})
    assert key_of(committed_db, "robot").revoked_by == "rae"
    set_one = root.post("/administration/people/robot/password", {"password": PASSWORD})
    assert set_one.status_code == 422 and "a service account: programs act as it by API keys" in set_one.text


def test_nobody_makes_a_key_with_which_a_program_acts_as_another_person(root: Browser, committed_db: psycopg.Connection[Any]) -> None:
    assert root.post("/administration/people/ada/keys", {"name": "x", "days": "30", "scope": "read", "request_id": "r"}).status_code == 403
    assert api_keys(committed_db) == []


def test_a_person_is_changed_shut_out_and_let_in_again(root: Browser, client_for: Client, committed_db: psycopg.Connection[Any]) -> None:
    ada = client_for("ada")
    change = {"display_name": "Ada M.", "role": "operator", "groups": "drivers", "request_id": "r"}
    assert root.post("/administration/people/ada/change", change).status_code == 303
    assert ada.get("/operations").status_code == 200
    assert "Let Ada M. in no more?" in root.get("/administration/people/ada?disable=1").text
    assert root.post("/administration/people/ada/disable", {"request_id": "d"}).status_code == 303
    assert ada.get("/inbox").status_code == 302
    assert root.post("/administration/people/ada/enable", {"request_id": "e"}).status_code == 303
    assert root.post("/administration/people/ada/password", {"password": "another-secret"}).status_code == 303
    page = root.get("/administration/people/ada").text
    for words in ("changed this", "disabled this", "let this in again", "set the password", "role: operator", "groups: drivers"):
        assert words in page, words
    wrong = root.post("/administration/people/ada/change", {"display_name": " ", "role": "king", "groups": "a/b", "request_id": "w"})
    assert wrong.status_code == 422 and wrong.text.count('class="err"') == 3
    assert next(person for person in everybody(committed_db) if person.username == "ada").groups == ["drivers"]


def test_an_administrator_neither_shuts_out_nor_demotes_themselves(root: Browser) -> None:
    page = root.get("/administration/people/rae?disable=1").text
    assert "Disable…" not in page and "in no more?" not in page
    assert root.post("/administration/people/rae/disable", {"request_id": "r"}).status_code == 422
    demoted = root.post("/administration/people/rae/change", {"display_name": "R", "role": "user", "groups": "", "request_id": "s"})
    assert demoted.status_code == 422 and "nobody changes their own role" in demoted.text
    assert root.get("/administration/people").status_code == 200


def test_who_is_not_there_is_not_found(root: Browser) -> None:
    assert root.get("/administration/people/nobody").status_code == 404
    for path in ("change", "password", "disable", "enable", "keys", f"keys/{uuid4()}/revoke"):
        form = {"display_name": "x", "role": "user", "password": PASSWORD, "request_id": "r"}
        assert root.post(f"/administration/people/nobody/{path}", form).status_code == 404, path


def test_a_stale_page_keeps_no_password(root: Browser, committed_db: psycopg.Connection[Any]) -> None:
    stale = root.token
    root.sign_in("rae")
    answer = root.client.post("/administration/people/ada/password", data={"csrf_token": stale, "password": "typed-but-not-kept"})
    assert answer.status_code == 400 and "type the password again" in answer.text and "typed-but-not-kept" not in answer.text
    added = {"csrf_token": stale, "username": "eve", "display_name": "Eve", "role": "user", "password": "typed-but-not-kept"}
    answer = root.client.post("/administration/people/add", data=added)
    assert answer.status_code == 400 and 'value="eve"' in answer.text and "typed-but-not-kept" not in answer.text
    answer = root.client.post("/account/keys", data={"csrf_token": stale, "name": "x"})
    assert answer.status_code == 400 and api_keys(committed_db) == []


def test_names_become_no_markup(root: Browser, committed_db: psycopg.Connection[Any]) -> None:
    add_somebody(committed_db, "eve", actor=SYSTEM, display_name="<script>x</script>", kind="service")
    made = add_api_key(committed_db, "eve", actor=SYSTEM, name="<img src=x>")
    assert isinstance(made, ApiKeyAdded)
    for path in ("/administration/people", "/administration/people/eve", f"/administration/people/eve?revoke={made.key_id}"):
        page = root.get(path).text
        assert "<script>x" not in page and "<img src=x" not in page and "&lt;script&gt;x" in page
