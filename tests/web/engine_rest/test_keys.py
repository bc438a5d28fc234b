"""API keys under /engine-rest: as bearer or as the password of their person, within their scopes."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from flask import Flask

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from tests.web.engine_rest.conftest import Program, basic, refused
from webapp.auth.scopes import scope_needed


def key(conn: psycopg.Connection, *scopes: str) -> str:
    made = add_api_key(conn, "olga", actor=SYSTEM, name="test", scopes=scopes or None)
    assert isinstance(made, ApiKeyAdded)
    return made.token


def test_a_program_that_knows_no_bearer_sends_the_key_as_the_password_of_its_person(
    app: Flask, people: Any, committed_db: psycopg.Connection
) -> None:
    token = key(committed_db)
    assert Program(app.test_client(), basic("olga", token)).get("/engine").status_code == 200
    refused(Program(app.test_client(), basic("ada", token)).get("/engine"), 401)
    committed_db.execute("UPDATE api_key SET revoked_at = baton_clock()")
    refused(Program(app.test_client(), basic("olga", token)).get("/engine"), 401)


def test_a_limited_key_is_told_which_scope_it_lacks(app: Flask, people: Any, committed_db: psycopg.Connection) -> None:
    for headers in ({"Authorization": f"Bearer {key(committed_db, 'tasks')}"}, basic("olga", key(committed_db, "tasks"))):
        refused(Program(app.test_client(), headers).get("/engine"), 403, "expected a key with the scope read", "found one with tasks")


def test_every_path_needs_a_scope(app: Flask) -> None:
    without = []
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/engine-rest"):
            path = re.sub(r"<[^>]+>", "x", rule.rule)
            view = app.view_functions[rule.endpoint]
            without += [(method, rule.rule) for method in rule.methods or () if scope_needed(view, method=method, path=path) is None]
    assert not without, "webapp/auth/scopes.py: ENGINE_REST"
