"""What each route of the API declares: closed unless it does, and every declared type has a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID

import jsonschema_rs
import pytest
from flask import Flask, jsonify

from tests.web.conftest import Browser
from tests.web.described import Comparison
from webapp.api.describing import SCOPES, Raw, operation, operation_of
from webapp.api.openapi import as_path, description
from webapp.api.schemas import Listed, Moment, Schemas, words
from webapp.app import create_app
from webapp.errors import problem

T = TypeVar("T")


def declarations(app: Flask) -> Mapping[str, Any]:
    """rule and methods -> what its view declared."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/")]
    assert rules
    return {f"{sorted(rule.methods or ())} {rule.rule}": operation_of(app.view_functions[rule.endpoint]) for rule in rules}


def test_every_route_declares_its_scope_its_summary_and_its_answers(app: Flask) -> None:
    found = declarations(app)
    assert [route for route, declared in found.items() if declared is None] == []
    for route, declared in found.items():
        assert declared.scope in SCOPES, route
        assert declared.summary.endswith("."), f"{route}: the docstring's first line is the summary"
        assert "\n" not in declared.summary, f"{route}: one line, then a blank one"
        assert declared.answers, route


def test_every_answer_has_a_schema(app: Flask) -> None:
    schemas = Schemas()
    for declared in declarations(app).values():
        for kind in declared.answers.values():
            if kind is not None and not isinstance(kind, Raw):
                assert schemas.of(kind)
    assert schemas.named["Task"]["properties"]["due_at"] == {"type": ["string", "null"], "format": "date-time"}


def test_a_scope_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of read, tasks"):
        operation(scope="everything", answers=None)  # type: ignore[arg-type]  # that is what is tested


class LeafShape(TypedDict):
    """A leaf
    of the tree."""

    colour: Literal["red", "green"]
    seen: NotRequired[Moment]
    kind: Annotated[str, words("oak")] | None


class TreeShape(TypedDict, Generic[T]):
    fruit: T
    branches: list[TreeShape[T]]
    about: dict[str, Any]


def test_a_type_becomes_a_schema_with_names() -> None:
    schemas = Schemas()
    assert schemas.of(Listed[LeafShape]) == {"$ref": "#/components/schemas/ListedLeaf"}
    assert schemas.named["Leaf"] == {
        "type": "object",
        "description": "A leaf of the tree.",
        "properties": {
            "colour": {"enum": ["red", "green"]},
            "seen": {"type": "string", "format": "date-time"},
            "kind": {"type": ["string", "null"], "enum": ["oak", None]},
        },
        "required": ["colour", "kind"],
    }
    assert schemas.named["ListedLeaf"]["properties"]["items"] == {"type": "array", "items": {"$ref": "#/components/schemas/Leaf"}}
    assert schemas.of(int | str | None) == {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}


def test_a_generic_type_may_hold_itself() -> None:
    schemas = Schemas()
    schemas.of(TreeShape[UUID])
    assert schemas.named["TreeUUID"]["properties"] == {
        "fruit": {"type": "string", "format": "uuid"},
        "branches": {"type": "array", "items": {"$ref": "#/components/schemas/TreeUUID"}},
        "about": {"type": "object"},
    }


def test_a_type_that_no_schema_is_known_for_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a type that"):
        Schemas().of(bytes)


# ---- the document


def document(app: Flask) -> dict[str, Any]:
    """As it goes over the wire."""
    with app.app_context():
        found: dict[str, Any] = json.loads(app.json.dumps(description(app)))
    return found


def test_every_route_stands_in_the_description_with_a_name_of_its_own(app: Flask) -> None:
    served = {
        (method.lower(), as_path(rule))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(method, path) for path, item in document(app)["paths"].items() for method in item}
    assert described == served
    names = [told["operationId"] for item in document(app)["paths"].values() for told in item.values()]
    assert len(names) == len(set(names))


def test_the_description_is_openapi_3_1_and_each_reference_leads_somewhere(app: Flask) -> None:
    found = document(app)
    assert found["openapi"] == "3.1.0"
    assert set(found["components"]["securitySchemes"]) == {"bearer", "session", "csrf"}
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(found)):
        place: Any = found
        for step in reference.split("/"):
            place = place[step]
        assert place, reference
    for schema in found["components"]["schemas"].values():
        jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})


def test_every_example_is_valid_under_its_schema(app: Flask) -> None:
    found = document(app)
    compared = 0
    for path, item in found["paths"].items():
        for method, told in item.items():
            bodies = [told.get("requestBody", {}), *told["responses"].values()]
            for content in [content for body in bodies for content in body.get("content", {}).values()]:
                if "example" in content:
                    whole = {**content["schema"], "components": found["components"]}
                    errors = list(jsonschema_rs.Draft202012Validator(whole, validate_formats=True).iter_errors(content["example"]))
                    assert not errors, f"{method} {path}: {errors[0].message}"
                    compared += 1
    assert compared > 100


def test_what_is_taken_refused_and_needed_stands_in_the_description(app: Flask) -> None:
    told = document(app)["paths"]["/tasks/{task_id}/claim"]["post"]
    assert told["security"] == [{"bearer": ["tasks"]}, {"session": [], "csrf": []}]
    assert {"$ref": "#/components/parameters/IdempotencyKey"} in told["parameters"]
    narrowed = told["responses"]["409"]["content"]["application/problem+json"]["schema"]["allOf"][1]
    assert "already_claimed" in narrowed["properties"]["reason"]["enum"]
    listed = document(app)["paths"]["/tasks"]["get"]
    assert {each.get("name") for each in listed["parameters"]} >= {"status", "cursor", "limit"}
    assert listed["responses"]["200"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ListedTask"}


def test_the_description_is_given_to_whoever_is_signed_in_alone(app: Flask, client_for: Any, browser: Any) -> None:
    assert browser.get("/api/v1/openapi.json").status_code == 401
    assert client_for("cy").get("/api/v1/openapi.json").json == document(app)


# ---- the comparison of tests with it


def test_an_answer_that_is_not_described_is_found(app: Flask, client_for: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = create_app(app.config["BATON"])
    compared = Comparison(apart)
    ada = Browser(apart.test_client())
    ada.sign_in("ada")
    assert ada.get("/api/v1/tasks").json == {"items": [], "next_cursor": None}
    assert compared.wrong == []
    monkeypatch.setattr("webapp.api.tasks.listed", lambda page, shape: jsonify(items=[{"id": 1}], more=True))
    ada.get("/api/v1/tasks")
    assert len(compared.wrong) > 2
    assert any("more" in line for line in compared.wrong)
    monkeypatch.setattr("webapp.api.tasks.listed", lambda page, shape: problem(409, "already_claimed"))
    ada.get("/api/v1/tasks")
    assert "found 409" in compared.wrong[-1]
