"""A web application over a fresh database, people to use it, and a client that behaves like a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from engine.config import Settings
from engine.ids import new_id
from tests.web.described import Comparison
from webapp.app import create_app
from webapp.db import db as flask_db

PASSWORD = "correct horse battery staple"
HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)  # the checks are the same, only cheap
TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')

PEOPLE = {
    "ada": ("Ada Moreno", "user", ("clerks",)),
    "bo": ("Bo Lindqvist", "user", ("clerks",)),
    "cy": ("Cy Okafor", "user", ("drivers",)),
    "olga": ("Olga Petrova", "operator", ()),
}


def add_person(conn: psycopg.Connection, username: str, name: str, role: str, groups: tuple[str, ...]) -> UUID:
    person_id = new_id()
    conn.execute(
        "INSERT INTO person (id, username, display_name, sort_key, password_hash, role) VALUES (%s, %s, %s, %s, %s, %s)",
        (person_id, username, name, name.casefold(), HASH, role),
    )
    for group in groups:
        conn.execute("INSERT INTO person_group (person_id, group_key) VALUES (%s, %s)", (person_id, group))
    return person_id


class Browser:
    """A test client that keeps cookies and sends the CSRF token of the page it looked at last."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client
        self.token = ""

    def get(self, path: str, **options: Any) -> TestResponse:
        return self._seen(self.client.get(path, **options))

    def post(self, path: str, data: dict[str, Any] | None = None, **options: Any) -> TestResponse:
        return self._seen(self.client.post(path, data={"csrf_token": self.token, **(data or {})}, **options))

    def htmx(self, path: str, data: dict[str, Any] | None = None) -> TestResponse:
        return self.post(path, data, headers={"HX-Request": "true"})

    def sign_in(self, username: str, password: str = PASSWORD) -> TestResponse:
        self.get("/login")
        answer = self.post("/login", {"username": username, "password": password})
        if answer.status_code == 303:
            self.get("/start")
        return answer

    def _seen(self, response: TestResponse) -> TestResponse:
        found = TOKEN.search(response.get_data(as_text=True)) if response.mimetype == "text/html" else None
        if found:
            self.token = found[1]
        return response


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(database_url=database_url, secret_key="s" * 40, pool_size=5)


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    """Whatever a test asks of the API is compared with its description."""
    app = create_app(settings)
    compared = Comparison(app)
    yield app
    with app.app_context():
        for engine in flask_db.engines.values():
            engine.dispose()
    assert compared.wrong == []


@pytest.fixture
def people(committed_db: psycopg.Connection) -> dict[str, UUID]:
    return {name: add_person(committed_db, name, *rest) for name, rest in PEOPLE.items()}


@pytest.fixture
def browser(app: Flask, people: dict[str, UUID]) -> Browser:
    """A browser of nobody yet."""
    return Browser(app.test_client())


@pytest.fixture
def client_for(app: Flask, people: dict[str, UUID]) -> Callable[[str], Browser]:
    """client_for("ada"): a browser in which Ada is signed in."""

    def make(username: str) -> Browser:
        browser = Browser(app.test_client())
        assert browser.sign_in(username).status_code == 303
        return browser

    return make
