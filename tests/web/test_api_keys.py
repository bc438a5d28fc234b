"""Keys over the API: made once, listed without their text, revoked; and no way for a limited key to make a stronger one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from flask import Flask

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from engine.commands.scopes import SCOPES
from tests.web.conftest import add_person
from tests.web.operations import one
from webapp.api import describing


@pytest.fixture
def ask(app: Flask, people: Any, committed_db: psycopg.Connection) -> Any:
    """ask("ada", "POST", "/keys", {…}, scopes=…): by a key of hers."""
    add_person(committed_db, "root", "Ro Ot", "administrator", ())

    def ask(who: str, method: str, path: str, body: Any = None, *, scopes: list[str] | None = None, **headers: str) -> Any:
        made = add_api_key(committed_db, who, actor=SYSTEM, name="a test", scopes=scopes)
        assert isinstance(made, ApiKeyAdded)
        sent = {"json": body if body is not None else {}} if method == "POST" else {}
        return app.test_client().open(f"/api/v1{path}", method=method, headers={"Authorization": f"Bearer {made.token}", **headers}, **sent)

    return ask


def test_the_scopes_of_routes_are_those_of_keys() -> None:
    assert tuple(SCOPES) == describing.SCOPES


def test_a_person_makes_lists_and_revokes_a_key_of_their_own(ask: Any, app: Flask) -> None:
    made = ask("ada", "POST", "/keys", {"name": "import", "days": 5, "scopes": ["tasks", "read"]})
    assert made.status_code == 201, made.text
    assert made.json["key"].endswith(made.json["ending"]) and not made.json["repeated"]
    mine = app.test_client().get("/api/v1/keys", headers={"Authorization": f"Bearer {made.json['key']}"}).json["items"]
    [shown] = [key for key in mine if key["id"] == made.json["id"]]
    assert (shown["scopes"], shown["status"], shown["made_by"], shown["username"]) == (["read", "tasks"], "active", "ada", "ada")
    assert made.json["key"] not in str(mine)
    assert ask("ada", "POST", f"/keys/{shown['id']}/revoke").json == {"id": shown["id"], "status": "revoked"}
    assert app.test_client().get("/api/v1/keys", headers={"Authorization": f"Bearer {made.json['key']}"}).status_code == 401


def test_R13_a_key_of_somebody_else_is_not_there_but_for_administrators(ask: Any) -> None:
    made = ask("ada", "POST", "/keys", {"name": "mine"}).json
    for stranger in ("bo", "olga"):
        assert ask(stranger, "POST", f"/keys/{made['id']}/revoke").status_code == 404
        assert ask(stranger, "GET", "/people/ada/keys").status_code == 403
        assert ask(stranger, "POST", "/people/ada/keys", {"name": "x"}).status_code == 403
    assert made["id"] in str(ask("root", "GET", "/people/ada/keys").json)
    assert ask("root", "POST", f"/keys/{made['id']}/revoke").status_code == 200
    assert ask("root", "GET", "/people/nobody/keys").status_code == 404
    assert ask("root", "POST", "/people/nobody/keys", {"name": "x"}).status_code == 404


def test_a_limited_key_makes_no_other_and_administer_does(ask: Any) -> None:
    refused = ask("root", "POST", "/keys", {"name": "stronger"}, scopes=[scope for scope in SCOPES if scope != "administer"])
    assert (refused.status_code, refused.json["reason"], refused.json["scope"]) == (403, "missing_scope", "administer")
    assert ask("root", "POST", "/people/olga/keys", {"name": "x"}, scopes=["administer"]).status_code == 201


def test_R10_a_repeat_is_told_that_the_key_was_made_and_not_the_key(ask: Any, committed_db: psycopg.Connection) -> None:
    first, again = (ask("ada", "POST", "/keys", {"name": "import"}, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert (again.status_code, again.json["id"], again.json["key"], again.json["repeated"]) == (201, first.json["id"], None, True)
    assert one(committed_db, "SELECT count(*) FROM api_key WHERE name = 'import'") == 1


def test_what_is_wrong_is_named_field_by_field(ask: Any, app: Flask) -> None:
    def fields(body: Any) -> list[str]:
        answer = ask("ada", "POST", "/keys", body)
        assert answer.status_code == 422, answer.text
        return [problem["field"] for problem in answer.json["problems"]]

    assert fields({}) == ["name"]
    assert fields({"name": "x", "days": 0}) == ["days"]
    assert fields({"name": "x", "scopes": "read"}) == ["scopes"]
    assert fields({"name": "x", "scopes": []}) == ["scopes"]
    assert fields({"name": "x", "scopes": ["operate"]}) == ["scopes"]
    assert fields({"name": "x\ny"}) == ["name"]


def test_a_key_holds_ninety_days_by_itself_for_ever_if_so_asked_and_never_longer_than_the_house_allows(ask: Any, app: Flask) -> None:
    assert ask("ada", "POST", "/keys", {"name": "x"}).json["expires_at"] is not None
    assert ask("ada", "POST", "/keys", {"name": "x", "days": None}).json["expires_at"] is None
    object.__setattr__(app.config["BATON"], "key_max_days", 30)
    assert ask("ada", "POST", "/keys", {"name": "x"}).status_code == 201
    refused = ask("ada", "POST", "/keys", {"name": "x", "days": None})
    assert refused.json["problems"] == [{"field": "days", "message": "expected 1 to 30 days, found no end"}]
