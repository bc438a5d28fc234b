"""Who may ask /engine-rest: a bearer key or name and password, never a cookie; errors have Camunda's shape."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from flask import Flask

from tests.web.conftest import PASSWORD, Browser
from tests.web.engine_rest.conftest import Program, basic, refused
from tests.web.operations import api_key, one
from webapp.auth import basic as basic_auth
from webapp.auth import guessing, passwords, store


def version(app: Flask, headers: dict[str, str]) -> Any:
    return app.test_client().get("/engine-rest/version", headers=headers)


def test_a_key_and_a_password_are_let_in_and_a_guest_is_told_how(app: Flask, people: Any, committed_db: psycopg.Connection) -> None:
    assert version(app, {"Authorization": f"Bearer {api_key(committed_db, 'olga')}"}).json == {"version": "7.20.0"}
    assert version(app, basic("olga")).json == {"version": "7.20.0"}
    guest = version(app, {})
    refused(guest, 401)
    assert guest.headers["WWW-Authenticate"] == 'Basic realm="baton", Bearer realm="baton"'
    for headers in (basic("olga", "wrong"), basic("nobody"), {"Authorization": "Basic !!!"}, {"Authorization": "Bearer no"}, basic("", "")):
        refused(version(app, headers), 401)


def test_a_cookie_alone_is_nobody_and_so_nothing_can_be_forged(client_for: Callable[[str], Browser]) -> None:
    olga = client_for("olga")
    assert olga.get("/operations").status_code == 200
    refused(olga.client.get("/engine-rest/version"), 401)


def test_a_password_does_not_open_the_pages_or_the_other_api(app: Flask, people: Any) -> None:
    assert app.test_client().get("/api/v1/tasks", headers=basic("olga")).status_code == 401
    assert app.test_client().get("/inbox", headers=basic("olga")).status_code == 302


def test_a_change_with_name_and_password_needs_no_token(app: Flask, people: Any) -> None:
    refused(app.test_client().post("/engine-rest/version", headers=basic("olga"), json={}), 405)


def test_S71_wrong_passwords_are_counted_with_those_of_the_form_and_then_refused_unseen(
    app: Flask, people: Any, committed_db: psycopg.Connection
) -> None:
    for _ in range(guessing.PAIR):
        refused(version(app, basic("olga", "wrong")), 401)
    paused = version(app, basic("olga"))
    refused(paused, 429)
    assert 0 < int(paused.headers["Retry-After"]) <= guessing.PAUSE_MINUTES * 60
    form = Browser(app.test_client())
    assert form.sign_in("olga").status_code == 429


def test_a_password_that_was_right_is_recognised_without_another_check_or_row(
    app: Flask, people: Any, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    real = passwords.matches
    monkeypatch.setattr(passwords, "matches", lambda stored, password: checked.append(password) or real(stored, password))
    monkeypatch.setattr(passwords, "outdated", lambda stored: False)
    for _ in range(3):
        assert version(app, basic("bo")).status_code == 200
    assert checked == [PASSWORD]
    assert one(committed_db, "SELECT count(*) FROM login_attempt") == 1
    refused(version(app, basic("bo", PASSWORD + "x")), 401)
    committed_db.execute("UPDATE person SET password_hash = %s WHERE username = 'bo'", (passwords.rehash("another"),))
    refused(version(app, basic("bo")), 401)
    committed_db.execute("UPDATE person SET disabled_at = baton_clock() WHERE username = 'bo'")
    refused(version(app, basic("bo", "another")), 401)


def test_the_first_questions_of_a_program_come_side_by_side_and_do_not_shut_it_out(
    app: Flask, people: Any, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each check counts as a wrong try until it was right: one is checked, the others wait for it."""
    many = guessing.PAIR  # as many as the pool of this application has connections
    arrived, checked = threading.Semaphore(0), []
    find, real = store.find_person, passwords.matches

    def found(*args: Any, **named: Any) -> Any:
        known = find(*args, **named)
        arrived.release()
        return known

    def matches(stored: str | None, password: str) -> bool:
        checked.append(password)
        if len(checked) == 1:
            assert all(arrived.acquire(timeout=30) for _ in range(many)), "expected all of them to have come before the first is checked"
        return real(stored, password)

    monkeypatch.setattr(basic_auth, "_remembered", basic_auth.Remembered())
    monkeypatch.setattr(store, "find_person", found)
    monkeypatch.setattr(passwords, "matches", matches)
    monkeypatch.setattr(passwords, "outdated", lambda stored: False)
    with ThreadPoolExecutor(many) as threads:
        answers = list(threads.map(lambda _: version(app, basic("bo")).status_code, range(many)))
    assert answers == [200] * many
    assert len(checked) == 1


def test_what_is_not_there_and_what_is_no_json_has_the_shape_of_every_error(program: Callable[[str], Program]) -> None:
    olga = program("olga")
    refused(olga.get("/nowhere"), 404)
    wrong_method = olga.delete("/version")
    refused(wrong_method, 405)
    assert "GET" in wrong_method.headers["Allow"]
    foreign = olga.client.post("/engine-rest/version", headers=olga.headers, data="{}", content_type="text/plain")
    refused(foreign, 415)
