"""Compares every answer of `/api/v1` that a test gets with the description: its status, its media type, each field, each reason.

Stricter than the description is to clients: an answer with a field more than it says is wrong, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from flask import Flask, Response, request

from webapp.api.openapi import PREFIX, as_path, description


class Comparison:
    """`wrong`: what does not fit, a line each. `seen`: (method, path, status) of what was compared."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.document: dict[str, Any] = {}
        self.validators: dict[tuple[str, str, str], Any] = {}
        self.wrong: list[str] = []
        self.seen: set[tuple[str, str, str]] = set()
        app.after_request(self.compare)

    def compare(self, response: Response) -> Response:
        rule = request.url_rule
        if rule is not None and rule.rule.startswith(f"{PREFIX}/") and request.method not in ("HEAD", "OPTIONS"):
            self._compare(request.method, as_path(rule), response)
        return response

    def _compare(self, method: str, path: str, response: Response) -> None:
        self.document = self.document or description(self.app)
        where, status = f"{method} {path}", str(response.status_code)
        self.seen.add((method, path, status))
        answers = self.document["paths"][path][method.lower()]["responses"]
        if status not in answers:
            self.wrong.append(f"{where}: expected one of {', '.join(answers)}, found {status}: {response.get_data(as_text=True)[:300]}")
            return
        content = answers[status].get("content", {})
        if not content:
            if response.status_code != 304 and response.get_data():  # the server sends none with a 304
                self.wrong.append(f"{where} {status}: expected no body, found {response.get_data(as_text=True)[:300]}")
            return
        if response.mimetype not in content:
            self.wrong.append(f"{where} {status}: expected {', '.join(content)}, found {response.mimetype}")
        elif schema := content[response.mimetype].get("schema"):
            body = json.loads(response.get_data())
            for error in self._validator(method, path, status, schema).iter_errors(body):
                self.wrong.append(f"{where} {status}: {'/'.join(map(str, error.instance_path))}: {error.message}")

    def _validator(self, method: str, path: str, status: str, schema: Mapping[str, Any]) -> Any:
        key = (method, path, status)
        if key not in self.validators:
            named = {name: closed(each) for name, each in self.document["components"]["schemas"].items()}
            whole = {**schema, "components": {"schemas": named}}
            self.validators[key] = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        return self.validators[key]


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has no fields but those that it names."""
    return {**schema, "additionalProperties": False} if "properties" in schema else dict(schema)
