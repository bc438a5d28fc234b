"""The description of `/api/v1`: OpenAPI 3.1, made from what each route declares (`@operation`). Nothing of it is kept by hand."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from flask import Flask, Response, current_app, jsonify
from werkzeug.routing import IntegerConverter, Rule, UUIDConverter

from webapp.api.blueprint import blueprint
from webapp.api.describing import Operation, Raw, Upload, operation, operation_of
from webapp.api.examples import example_of
from webapp.api.refusing import HEADERS, PARAMETERS, ProblemShape, headers_of, parameters_of, refusals_of
from webapp.api.schemas import Schemas

PREFIX = "/api/v1"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

ABOUT = """
JSON for programs: the commands and queries of the screens, with the same permissions.

**Who asks.** `Authorization: Bearer KEY`, or the session of a signed-in browser, which sends its CSRF token in `X-CSRFToken` with every
change. The list beside `bearer` says which scope a key needs.

**Repeats.** `Idempotency-Key` makes a change harmless to repeat for a day: the same key, path and body get the first answer.

**States** have names: `ETag`. `If-None-Match` spares a body that you have (304), `If-Match` a change of what has changed (412).

**Limits** are told with each answer (`RateLimit`, `RateLimit-Policy`); beyond them 429 says when to come back (`Retry-After`).

**Lists** are `{"items": […], "next_cursor": …}`; give the cursor back as `cursor`, with the same filters, until it is null.

**Errors** are `application/problem+json` with a machine-readable `reason`. What you may not see is answered as if it were not there.

**Text** holds neither U+0000 nor half of a surrogate pair; whole numbers fit 64 bits; nothing is nested deeper than 64 levels.
"""

PATH_WORDS = {
    "key": "The key of a process.",
    "version": "The number of its version.",
}


@blueprint.get("/openapi.json")
@operation(scope="read", answers=dict[str, Any])
def describe() -> Response:
    """This description: OpenAPI 3.1."""
    return jsonify(description(current_app))


def description(app: Flask) -> dict[str, Any]:
    """The document. It is made once an application: the routes do not change while it runs."""
    kept: dict[str, Any] | None = app.extensions.get("baton_openapi")
    if kept is None:
        kept = app.extensions["baton_openapi"] = _made(app)
    return kept


def _made(app: Flask) -> dict[str, Any]:
    schemas = Schemas()
    schemas.of(ProblemShape)
    paths: dict[str, dict[str, Any]] = {}
    tags: dict[str, str] = {}
    for rule, method, declared in declared_routes(app):
        view = inspect.unwrap(app.view_functions[rule.endpoint])
        tag = view.__module__.rpartition(".")[2].replace("_", " ").capitalize()
        tags.setdefault(tag, (sys.modules[view.__module__].__doc__ or "").partition("\n")[0])
        item = paths.setdefault(as_path(rule), {})
        item[method.lower()] = {"tags": [tag], **_operation(rule, method, declared, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Baton",
            "version": _version(),
            "description": ABOUT.strip(),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "tags": [{"name": name, "description": about} for name, about in tags.items()],
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "securitySchemes": _security_schemes(app),
        },
    }


def declared_routes(app: Flask) -> Iterator[tuple[Rule, str, Operation]]:
    """Every route of the API with a method and its declaration, by path."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith(f"{PREFIX}/")]
    for rule in sorted(rules, key=lambda rule: rule.rule):
        declared = operation_of(app.view_functions[rule.endpoint])
        if declared is not None:
            for method in METHODS:
                if method in (rule.methods or ()):
                    yield rule, method, declared


def as_path(rule: Rule) -> str:
    """`/api/v1/tasks/<uuid:task_id>` as OpenAPI writes it."""
    return re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", rule.rule.removeprefix(PREFIX))


def _operation(rule: Rule, method: str, declared: Operation, schemas: Schemas) -> dict[str, Any]:
    changes = method != "GET"
    parameters = [_path_parameter(name, rule) for name in re.findall(r"{([a-z_]+)}", as_path(rule))]
    parameters += [_query_parameter(name, field) for name, field in (declared.query or {}).items()]
    parameters += parameters_of(method, declared)
    cookie: dict[str, list[str]] = {"session": [], "csrf": []} if changes else {"session": []}
    answers = {str(status): _answer(status, kind, method, declared, schemas) for status, kind in declared.answers.items()}
    if method == "GET":
        answers["304"] = {"description": "It is still so.", "headers": headers_of(304, tagged=True)}
    return {
        "operationId": rule.endpoint.rpartition(".")[2],
        "summary": declared.summary,
        **({"description": declared.description} if declared.description else {}),
        "security": [{"bearer": [declared.scope]}, cookie],
        "parameters": parameters,
        **({"requestBody": _request_body(declared.body)} if changes and declared.body else {}),
        "responses": dict(sorted({**answers, **refusals_of(rule, method, declared)}.items())),
    }


def _path_parameter(name: str, rule: Rule) -> dict[str, Any]:
    match rule._converters[name]:
        case UUIDConverter():
            schema: dict[str, Any] = {"type": "string", "format": "uuid"}
        case IntegerConverter():
            schema = {"type": "integer", "minimum": 0}
        case _:
            schema = {"type": "string", "minLength": 1, "pattern": "^[^/]+$"}
    about = {"description": PATH_WORDS[name]} if name in PATH_WORDS else {}
    return {"name": name, "in": "path", "required": True, **about, "schema": schema}


def _query_parameter(name: str, field: Any) -> dict[str, Any]:
    about = {"description": field.about} if field.about else {}
    example = {} if field.example is ... else {"example": field.example}
    return {"name": name, "in": "query", "required": field.required, **about, "schema": _field_schema(field), **example}


def _field_schema(field: Any) -> dict[str, Any]:
    """With its default, where the default is a value that may also be sent."""
    shown = not field.required and field.default not in (None, "") and {"default": field.default}
    return {**field.read.schema, **(shown or {})}


def _request_body(body: Mapping[str, Any] | Upload) -> dict[str, Any]:
    fields = body.fields if isinstance(body, Upload) else body
    properties = {name: _described(field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if field.required]
    if isinstance(body, Upload):
        binary = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
        files = {"type": "array", "items": binary, "minItems": 1, "description": body.about}
        properties, required = {body.files: files, **properties}, [body.files, *required]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if isinstance(body, Upload):
        return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    example = {name: field.example for name, field in fields.items() if field.example is not ...}
    content: dict[str, Any] = {"schema": schema, **({"example": example} if example else {})}
    return {"required": bool(required), "content": {"application/json": content}}


def _described(field: Any) -> dict[str, Any]:
    return {**_field_schema(field), **({"description": field.about} if field.about else {})}


def _answer(status: int, kind: Any, method: str, declared: Operation, schemas: Schemas) -> dict[str, Any]:
    about = {200: "Done." if method != "GET" else "What was asked for.", 201: "Made.", 202: "Accepted.", 204: "Done."}.get(status, "Done.")
    answer: dict[str, Any] = {
        "description": about,
        "headers": headers_of(status, tagged=status == 200 and (method == "GET" or declared.of is not None)),
    }
    if isinstance(kind, Raw):
        return {**answer, "content": {kind.media_type: {}}}
    if kind is None:
        return answer
    schema = schemas.of(kind)
    return {**answer, "content": {"application/json": {"schema": schema, "example": example_of(schema, schemas.named)}}}


def _security_schemes(app: Flask) -> dict[str, Any]:
    cookie = getattr(app.session_interface, "cookie", "baton_session")
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key. It speaks for its person, within its scopes."},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of a signed-in browser."},
        "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRFToken", "description": "Beside the session, with every change."},
    }


def _version() -> str:
    try:
        return version("baton")
    except PackageNotFoundError:  # run from a source tree that nobody installed
        return "0"
