"""A real Chromium, a real server on a port of its own, and people who press buttons in separate browsers."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from werkzeug.serving import make_server

from engine.config import Settings
from tests.web.conftest import PASSWORD, PEOPLE, add_person
from webapp.app import create_app
from webapp.db import db as flask_db
from webapp.live import close_streams

expect.set_options(timeout=15_000)  # a bound for slow machines; what is expected comes as soon as it comes

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium_path() -> str:
    """BATON_CHROMIUM, or one on the PATH."""
    found = os.environ.get("BATON_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "expected a Chromium on the PATH or in BATON_CHROMIUM, found none: apt-get install chromium"
    return found


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass(frozen=True)
class Site:
    url: str
    people: dict[str, UUID]


@pytest.fixture
def site(database_url: str, committed_db: psycopg.Connection) -> Iterator[Site]:
    """The application with a thread for each request, as gunicorn's gthread has."""
    people = {name: add_person(committed_db, name, *rest) for name, rest in PEOPLE.items()}
    app = create_app(Settings(database_url=database_url, secret_key="b" * 40, pool_size=10))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.daemon_threads = True  # type: ignore[attr-defined]  # of socketserver's ThreadingMixIn: streams end with the test
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Site(f"http://127.0.0.1:{server.port}", people)
    close_streams()
    server.shutdown()
    thread.join()
    with app.app_context():
        for engine in flask_db.engines.values():
            engine.dispose()


@pytest.fixture
def open_browser(chromium: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """open_browser("ada"): a browser of her own in which Ada is signed in. Complaints of the page fail the test."""
    contexts = []
    complaints: list[str] = []

    def make(username: str, *, width: int = 1280, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 900}, base_url=site.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
        if username:
            page.goto("/login")
            page.get_by_label("Name").fill(username)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/inbox")
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []
