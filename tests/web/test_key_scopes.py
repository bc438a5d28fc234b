"""What a limited API key opens: the operations of its scopes, and nothing that names none."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from engine.commands.scopes import SCOPES
from engine.queries.people import api_keys
from webapp.auth.identity import Identity
from webapp.auth.scopes import MissingScope, check_scope, scope_needed


def asked(client: FlaskClient, conn: psycopg.Connection, path: str, *, who: str = "olga", scopes: list[str] | None) -> TestResponse:
    made = add_api_key(conn, who, actor=SYSTEM, name="test", scopes=scopes)
    assert isinstance(made, ApiKeyAdded)
    return client.get(path, headers={"Authorization": f"Bearer {made.token}"})


@pytest.fixture
def probe(app: Flask) -> FlaskClient:
    """The application with routes that say what they need, one each; under a prefix that the description does not describe."""

    class Says:
        def __init__(self, scope: str) -> None:
            self.scope = scope

    for scope in (*SCOPES, ""):

        def view(scope: str = scope) -> dict[str, str]:
            return {"scope": scope}

        if scope:
            view.operation = Says(scope)  # type: ignore[attr-defined]  # as webapp.api.describing marks a view
        app.add_url_rule(f"/api/v2/probe-{scope or 'silent'}", f"probe_{scope}", view)
    return app.test_client()


def test_a_key_opens_the_operations_of_its_scopes_and_is_told_which_is_missing(
    probe: FlaskClient, people: Any, committed_db: psycopg.Connection
) -> None:
    assert asked(probe, committed_db, "/api/v2/probe-tasks", scopes=["read", "tasks"]).status_code == 200
    refused = asked(probe, committed_db, "/api/v2/probe-operate", scopes=["read", "tasks"])
    assert (refused.status_code, refused.mimetype) == (403, "application/problem+json")
    assert refused.json is not None
    assert {name: refused.json[name] for name in ("reason", "scope", "detail")} == {
        "reason": "missing_scope",
        "scope": "operate",
        "detail": "expected a key with the scope operate, found one with read, tasks",
    }
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="baton", error="insufficient_scope", scope="operate"'


def test_each_scope_opens_its_own_operations_alone(probe: FlaskClient, people: Any, committed_db: psycopg.Connection) -> None:
    committed_db.execute("UPDATE person SET role = 'administrator' WHERE username = 'olga'")
    for held in SCOPES:
        made = add_api_key(committed_db, "olga", actor=SYSTEM, name=held, scopes=[held])
        assert isinstance(made, ApiKeyAdded)
        for wanted in SCOPES:
            answer = probe.get(f"/api/v2/probe-{wanted}", headers={"Authorization": f"Bearer {made.token}"})
            assert answer.status_code == (200 if held == wanted else 403), (held, wanted)


def test_an_operation_that_names_no_scope_is_closed_to_every_limited_key(
    probe: FlaskClient, people: Any, committed_db: psycopg.Connection
) -> None:
    committed_db.execute("UPDATE person SET role = 'administrator' WHERE username = 'olga'")
    assert asked(probe, committed_db, "/api/v2/probe-silent", scopes=list(SCOPES)).status_code == 403
    assert asked(probe, committed_db, "/api/v2/probe-silent", scopes=None).status_code == 200


def test_a_key_without_scopes_may_what_its_person_may_and_a_page_is_no_place_for_keys(
    probe: FlaskClient, people: Any, committed_db: psycopg.Connection
) -> None:
    assert asked(probe, committed_db, "/api/v1/jobs", who="ada", scopes=None).status_code == 403
    assert asked(probe, committed_db, "/api/v1/jobs", scopes=None).status_code == 200
    assert asked(probe, committed_db, "/inbox", scopes=None).status_code == 302
    assert asked(probe, committed_db, "/api/v1/nowhere", scopes=["read"]).status_code == 404


def test_that_a_key_was_used_and_from_where_is_noted_once_a_minute(
    probe: FlaskClient, people: Any, committed_db: psycopg.Connection, clock: Any
) -> None:
    made = add_api_key(committed_db, "olga", actor=SYSTEM, name="test")
    assert isinstance(made, ApiKeyAdded)

    def use(address: str) -> Any:
        probe.get("/api/v1/jobs", headers={"Authorization": f"Bearer {made.token}"}, environ_base={"REMOTE_ADDR": address})
        return api_keys(committed_db)[0]

    first = use("192.0.2.1")
    assert first.last_used_at is not None and first.last_used_from == "192.0.2.1"
    assert use("192.0.2.2").last_used_at == first.last_used_at
    clock.advance(seconds=61)
    later = use("192.0.2.2")
    assert later.last_used_at > first.last_used_at and later.last_used_from == "192.0.2.2"


def test_nobody_signs_in_as_a_service_account(app: Flask, people: Any, committed_db: psycopg.Connection) -> None:
    committed_db.execute("UPDATE person SET kind = 'service', password_hash = NULL WHERE username = 'olga'")
    assert asked(app.test_client(), committed_db, "/api/v1/jobs", scopes=None).status_code == 200
    from tests.web.conftest import Browser

    assert Browser(app.test_client()).sign_in("olga").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "task", "read"),
        ("GET", "external-task/7/errorDetails", "read"),
        ("POST", "external-task", "read"),
        ("POST", "external-task/count", "read"),
        ("POST", "external-task/fetchAndLock", "external_tasks"),
        ("POST", "external-task/7/bpmnError", "external_tasks"),
        ("PUT", "external-task/7/retries", "operate"),
        ("POST", "message", "messages"),
        ("POST", "signal", "messages"),
        ("POST", "process-definition/key/leave/start", "start"),
        ("POST", "task/7/complete", "tasks"),
        ("PUT", "task/7/localVariables/x", "tasks"),
        ("POST", "deployment/create", "deploy"),
        ("DELETE", "deployment/7", "deploy"),
        ("DELETE", "process-instance/7", "operate"),
        ("POST", "user/create", None),
        ("PUT", "task/7", None),
    ],
)
def test_a_path_of_engine_rest_needs_the_scope_of_what_it_does(method: str, path: str, scope: str | None) -> None:
    assert scope_needed(None, method=method, path=f"/engine-rest/{path}") == scope


def test_the_check_lets_sessions_pass() -> None:
    session: Any = Identity(None, None, "", None)  # type: ignore[arg-type]  # nothing of it is looked at
    check_scope(session, None, method="POST", path="/api/v1/x")
    limited: Any = Identity(None, None, "", None, True, ("read",))  # type: ignore[arg-type]  # the same
    with pytest.raises(MissingScope):
        check_scope(limited, None, method="POST", path="/api/v1/x")
