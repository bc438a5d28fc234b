"""Schemathesis over the whole description: no 5xx, no answer outside it; and what is Ada's stays unknown to whoever may not see it.

`make describe` asks longer, and other questions (EXAMPLES=200 SEED=7).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from flask import Flask, jsonify
from werkzeug.routing import Rule, UUIDConverter

from engine.commands.messages import publish_message
from engine.commands.outcome import Actor
from engine.commands.tasks import claim
from engine.config import Settings
from engine.ids import new_id
from tests.web.asking import PHASES, ask, things
from tests.web.conftest import add_person
from tests.web.operations import ADA, OLGA, api_key, deployed, failed_external_task, started
from tests.web.test_api_contract import Program
from webapp.api.examples import example_of
from webapp.api.openapi import as_path, declared_routes, description
from webapp.app import create_app

FEW = 4
EXAMPLES = int(os.environ.get("BATON_API_EXAMPLES", FEW))
SEED = int(os.environ.get("BATON_API_SEED", "1"))
NAMES = re.compile(r"\bada\b|Ada Moreno|INV-\d|ORD-\d", re.IGNORECASE)
MODELS = ("an_external_task", "a_task_a_delivery_a_task", "wait_for_an_answer", "jobs_side_by_side", "every_quarter_of_an_hour")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, api_limit=0, api_guest_limit=0)


@pytest.fixture
def world(people: Any, committed_db: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """Something of everything that a path can name."""
    deployed(committed_db, *MODELS)
    deployed(committed_db, "a_form_of_every_kind")
    add_person(committed_db, "root", "Root Account", "administrator", ())
    for number in range(3):
        failed_external_task(committed_db, business_key=f"ORD-{number}")
        started(committed_db, "shipping")
        started(committed_db, "relay", business_key=f"INV-{number}")
        started(committed_db, "invoice", amount=number)
        started(committed_db, "wait_for_an_answer", ticket=f"T{number}")
        publish_message(committed_db, "ANSWER", actor=OLGA, correlation_key=f"t{number}", variables={}, time_to_live_seconds=3600)
    [task, *_] = things(committed_db)["task_id"]
    claim(committed_db, task, actor=Actor("ada", groups=ADA.groups), request_id=None)  # type: ignore[arg-type]  # an id is its text
    yield committed_db


@pytest.mark.parametrize(("username", "phases"), [("root", ("examples", "coverage")), ("ada", ("fuzzing",))])
def test_no_answer_to_whatever_is_asked_is_outside_the_description(
    world: psycopg.Connection, app: Flask, username: str, phases: tuple[str, ...]
) -> None:
    longer = EXAMPLES > FEW
    key = api_key(world, username)
    spared = frozenset({username, *(str(row[0]) for row in world.execute("SELECT id FROM api_key"))})
    failures = ask(app, key, spared=spared, known=things(world), examples=EXAMPLES, seed=SEED, phases=PHASES if longer else phases)
    assert not failures, "\n".join(failures)


def test_an_answer_outside_the_description_does_not_pass(
    world: psycopg.Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.api.tasks.listed", lambda page, shape: jsonify(items=[{"id": 1}]))
    failures = ask(create_app(settings), api_key(world, "ada"), known={}, examples=1, phases=("fuzzing",), only="/tasks")
    assert any("response_schema_conformance" in line for line in failures)

    def broken(*args: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr("webapp.api.tasks.listed", broken)
    failures = ask(create_app(settings), api_key(world, "ada"), known={}, examples=1, phases=("fuzzing",), only="/tasks")
    assert any("not_a_server_error" in line for line in failures)


# ---- what is Ada's, to somebody else's key


def test_R13_what_is_adas_is_to_others_as_if_it_were_not_there(world: psycopg.Connection, app: Flask) -> None:
    """Every operation that names something by id, with every id of Ada's: the answer is that to an id of nothing, and names nobody."""
    program = Program(app.test_client(), api_key(world, "cy"))
    ids = sorted({each for kind in ("task_id", "instance_id", "item_id", "incident_id", "token_id") for each in things(world)[kind]})
    asked = 0
    for rule, method, told in by_id(app):
        with app.app_context():
            body = sent_body(description(app), told)
        for each in ids:
            answer = asked_about(program, method, rule, each, body)
            nothing = asked_about(program, method, rule, str(new_id()), body)
            where = f"{method} {rule.rule} {each}"
            assert answer.status_code in (403, 404), f"{where}: {answer.status_code} {answer.text}"
            assert (answer.status_code, answer.json) == (nothing.status_code, nothing.json), where
            assert not NAMES.search(answer.text), f"{where}: {answer.text}"
            asked += 1
    assert asked > 150


def test_R13_no_list_shows_others_what_is_adas(world: psycopg.Connection, app: Flask) -> None:
    program = Program(app.test_client(), api_key(world, "cy"))
    ids = {each for kind in ("task_id", "instance_id", "item_id") for each in things(world)[kind]}
    seen = 0
    for rule, method, declared in declared_routes(app):
        if method == "GET" and not rule.arguments and rule.rule != "/api/v1/openapi.json":
            asked = {name: field.example for name, field in (declared.query or {}).items() if field.required}
            answer = program.get(rule.rule.removeprefix("/api/v1"), query_string=asked)
            assert answer.status_code in (200, 403), f"{rule.rule}: {answer.text}"
            assert not NAMES.search(answer.text), rule.rule
            assert not [each for each in ids if each in answer.text], rule.rule
            seen += 1
    assert seen > 5


def by_id(app: Flask) -> Iterator[tuple[Rule, str, dict[str, Any]]]:
    """The operations that name something by an id, as they are described."""
    for rule, method, _ in declared_routes(app):
        if any(isinstance(converter, UUIDConverter) for converter in rule._converters.values()):
            with app.app_context():
                yield rule, method, description(app)["paths"][as_path(rule)][method.lower()]


def asked_about(program: Program, method: str, rule: Rule, item_id: str, body: Any) -> Any:
    values = {name: item_id if isinstance(kind, UUIDConverter) else 1 for name, kind in rule._converters.items()}
    built = rule.build(values)
    assert built is not None
    path = built[1].removeprefix("/api/v1")
    return program.client.open(f"/api/v1{path}", method=method, headers=program.headers, **body)


def sent_body(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """A body that is right in itself, so that what it is about decides."""
    content = told.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return {}
    schema = content["application/json"]["schema"]
    named = document["components"]["schemas"]
    needed = {name: example_of(schema["properties"][name], named, field=name) for name in schema["required"]}
    return {"json": {**needed, **content["application/json"].get("example", {})}}
