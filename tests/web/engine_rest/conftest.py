"""A program that speaks as those written for Camunda 7 do."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.web.conftest import PASSWORD
from tests.web.operations import api_key


def basic(username: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()}


class Program:
    """Asks /engine-rest; `headers` say who it is."""

    def __init__(self, client: FlaskClient, headers: dict[str, str]) -> None:
        self.client, self.headers = client, headers

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/engine-rest{path}", headers=self.headers, query_string=query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        sent = {} if body is None else {"json": body}
        return self.client.post(f"/engine-rest{path}", headers=self.headers, query_string=query, **sent)

    def put(self, path: str, body: Any = None) -> Any:
        return self.client.put(f"/engine-rest{path}", headers=self.headers, json=body)

    def delete(self, path: str, **query: Any) -> Any:
        return self.client.delete(f"/engine-rest{path}", headers=self.headers, query_string=query)


@pytest.fixture
def program(app: Flask, people: Any, committed_db: psycopg.Connection) -> Callable[..., Program]:
    """program("olga"): by her API key."""
    return lambda username: Program(app.test_client(), {"Authorization": f"Bearer {api_key(committed_db, username)}"})


def refused(answer: Any, status: int, *words: str) -> str:
    """The message of an error in Camunda's shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.json) == {"type", "message", "code"}
    assert (answer.json["type"], answer.json["code"]) == ("RestException", status)
    message = answer.json["message"]
    assert message
    for word in words:
        assert word in message, message
    return message
