"""People, service accounts and groups over the API: administrators change them, and a person who is shut out is out at once."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.web.conftest import Browser, add_person
from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program

PASSWORD = "another good password"


@pytest.fixture
def root(program: Any, committed_db: psycopg.Connection) -> Any:
    add_person(committed_db, "root", "Root Account", "administrator", ())
    return program("root")


def test_a_program_asks_who_it_is(program: Any, client_for: Any) -> None:
    assert program("ada").get("/me").json == {
        "username": "ada", "display_name": "Ada Moreno", "role": "user", "groups": ["clerks"], "by_key": True, "scopes": None,
    }  # fmt: skip
    assert client_for("olga").get("/api/v1/me").json["by_key"] is False


def test_a_person_is_added_once_a_key_signs_in_is_changed_shut_out_and_let_in_again(root: Any, app: Any) -> None:
    sent = {"username": "dora", "display_name": "Dora Maar", "groups": ["clerks"], "password": PASSWORD}
    made = root.post("/people", sent, key="one")
    assert made.status_code == 201
    assert (made.json["role"], made.json["groups"], made.json["kind"], made.json["may_sign_in"]) == ("user", ["clerks"], "person", True)
    assert root.post("/people", sent, key="one").json == made.json
    assert problem(root.post("/people", sent), 422, "invalid")["problems"][0]["field"] == "username"

    dora = Browser(app.test_client())
    assert dora.sign_in("dora", PASSWORD).status_code == 303
    changed = root.post("/people/dora/change", {"role": "operator", "groups": []}).json
    assert (changed["role"], changed["groups"], changed["display_name"]) == ("operator", [], "Dora Maar")
    assert dora.get("/operations").status_code == 200
    assert root.post("/people/dora/disable").json["may_sign_in"] is False
    assert dora.get("/api/v1/me").status_code == 401
    assert dora.sign_in("dora", PASSWORD).status_code != 303
    assert root.post("/people/dora/enable").json["disabled_at"] is None
    assert root.post("/people/dora/password", {"password": "a third good password"}).status_code == 200
    assert Browser(app.test_client()).sign_in("dora", "a third good password").status_code == 303


def test_people_are_listed_searched_and_paged_and_groups_counted(root: Any) -> None:
    first = root.get("/people?limit=3").json
    rest = root.get("/people", query_string={"limit": 3, "cursor": first["next_cursor"]}).json
    assert [each["username"] for each in first["items"] + rest["items"]] == ["ada", "bo", "cy", "olga", "root"]
    assert [each["username"] for each in root.get("/people?group=clerks").json["items"]] == ["ada", "bo"]
    assert [each["username"] for each in root.get("/people?q=petrova").json["items"]] == ["olga"]
    assert root.get("/people/ada").json == first["items"][0]
    assert root.get("/groups").json["items"] == [{"key": "clerks", "members": 2}, {"key": "drivers", "members": 1}]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"username": "Dora!", "display_name": "D"}, "username"),
        ({"username": "dora", "display_name": "D", "role": "king"}, "role"),
        ({"username": "dora", "display_name": "D", "groups": ["a b"]}, "groups"),
        ({"username": "dora", "display_name": "D", "groups": None}, "groups"),
        ({"username": "dora", "display_name": "D", "password": "short"}, "password"),
        ({"username": "dora", "display_name": "D", "password": 12345678}, "password"),
        ({"username": "robot", "display_name": "R", "kind": "service", "password": PASSWORD}, "password"),
        ({"username": "dora"}, "display_name"),
        ({"username": "dora", "display_name": "D", "more": 1}, "more"),
    ],
)
def test_wrong_fields_are_named_and_nobody_is_added(root: Any, sent: dict[str, Any], field: str) -> None:
    body = problem(root.post("/people", sent), 422, "invalid")
    assert [each["field"] for each in body["problems"]] == [field]
    assert len(root.get("/people").json["items"]) == 5


def test_who_is_not_there_is_not_found_and_nobody_shuts_themselves_out(root: Any) -> None:
    for verb, sent in (("change", {"role": "user"}), ("password", {"password": PASSWORD}), ("disable", {}), ("enable", {})):
        problem(root.post(f"/people/nobody/{verb}", sent), 404, "not_found")
    problem(root.get("/people/nobody"), 404, "not_found")
    myself = "/people/root"
    problem(root.post(f"{myself}/disable"), 422, "invalid")
    problem(root.post(f"{myself}/change", {"role": "user"}), 422, "invalid")
