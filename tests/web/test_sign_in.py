"""Signing in and out: sessions, the CSRF token, the slow-down on guessing, where one lands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

import psycopg
import pytest
from flask import Flask

from engine.config import Settings
from tests.conftest import Clock
from tests.web.conftest import PASSWORD, Browser
from webapp.app import create_app
from webapp.auth import guessing, passwords

Client = Callable[[str], Browser]
COOKIE = "baton_session"


def wrong(browser: Browser, username: str, *, address: str = "198.51.100.7", password: str = "no") -> Any:
    browser.get("/login", environ_base={"REMOTE_ADDR": address})
    return browser.post("/login", {"username": username, "password": password}, environ_base={"REMOTE_ADDR": address})


@pytest.fixture
def second_replica(settings: Settings, people: dict[str, UUID]) -> Iterator[Flask]:
    yield create_app(settings)


# ---- sessions


def test_the_cookie_holds_a_token_of_which_the_database_knows_only_the_hash(browser: Browser, committed_db: psycopg.Connection) -> None:
    answer = browser.sign_in("ada")
    cookie = next(value for value in answer.headers.getlist("Set-Cookie") if value.startswith(f"{COOKIE}="))
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie and "Domain" not in cookie
    token = cookie.split("=", 1)[1].split(";")[0]
    row = committed_db.execute("SELECT token_hash FROM web_session").fetchone()
    assert row is not None and bytes(row[0]) == sha256(token.encode()).digest()


def test_in_production_the_cookie_is_secure_and_https_is_demanded(database_url: str, people: dict[str, UUID]) -> None:
    app = create_app(Settings(database_url=database_url, secret_key="p" * 40, environment="production"))
    answer = app.test_client().get("/login", base_url="https://localhost")
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=31536000")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-baton_guest=") and "Secure" in cookie


def test_S69_signing_in_again_gives_a_new_token_and_ends_the_old_session(browser: Browser, committed_db: psycopg.Connection) -> None:
    browser.sign_in("ada")
    before = browser.client.get_cookie(COOKIE)
    browser.post("/logout")
    browser.sign_in("ada")
    after = browser.client.get_cookie(COOKIE)
    assert before is not None and after is not None and before.value != after.value
    assert committed_db.execute("SELECT count(*) FROM web_session").fetchone() == (1,)
    browser.client.set_cookie(COOKIE, before.value)
    assert browser.get("/inbox").status_code == 302


def test_signing_out_ends_the_session_and_clears_the_browser(client_for: Client, committed_db: psycopg.Connection) -> None:
    ada = client_for("ada")
    answer = ada.post("/logout")
    assert (answer.status_code, answer.location) == (303, "/login")
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    assert committed_db.execute("SELECT count(*) FROM web_session").fetchone() == (0,)
    assert ada.get("/inbox").status_code == 302
    again = ada.post("/logout")  # from another tab that was still open
    assert (again.status_code, again.location) == (303, "/login")


def test_a_session_ends_by_itself_and_says_so(client_for: Client, clock: Clock) -> None:
    ada = client_for("ada")
    clock.advance(hours=13)
    answer = ada.get("/inbox")
    assert answer.location == "/login?next=%2Finbox&lapsed=1"
    assert "Your session has ended" in ada.get(answer.location).text


def test_a_session_that_is_used_goes_on(client_for: Client, clock: Clock) -> None:
    ada = client_for("ada")
    for _ in range(3):
        clock.advance(hours=8)
        assert ada.get("/inbox").status_code == 200


def test_a_disabled_person_is_out_at_once(client_for: Client, committed_db: psycopg.Connection) -> None:
    ada = client_for("ada")
    committed_db.execute("UPDATE person SET disabled_at = baton_clock() WHERE username = 'ada'")
    assert ada.get("/inbox").status_code == 302
    assert ada.sign_in("ada").status_code == 401


# ---- cross-site


@pytest.mark.parametrize("path", ["/login", "/logout", "/theme", "/inbox/next", "/start/invoice"])
def test_S69_no_change_works_without_a_token(client_for: Client, path: str) -> None:
    ada = client_for("ada")
    answer = ada.client.post(path, data={"username": "ada", "password": PASSWORD, "theme": "dark"})
    assert answer.status_code == 400
    assert "Nothing was done" in answer.text
    assert ada.get("/inbox").status_code == 200


def test_S69_a_guests_sign_in_needs_a_token_too(browser: Browser) -> None:
    answer = browser.client.post("/login", data={"username": "ada", "password": PASSWORD})
    assert answer.status_code == 400
    assert browser.client.get_cookie(COOKIE) is None


def test_S69_json_sent_as_text_is_refused(client_for: Client) -> None:
    ada = client_for("ada")
    answer = ada.client.post("/logout", data='{"csrf_token": "x"}', content_type="text/plain", headers={"X-CSRFToken": ada.token})
    assert answer.status_code == 415
    assert ada.get("/inbox").status_code == 200


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "\t//evil", "/\n/evil"]
)
def test_nobody_is_sent_elsewhere_after_signing_in(browser: Browser, target: str) -> None:
    browser.get("/login")
    answer = browser.post("/login", {"username": "ada", "password": PASSWORD, "next": target})
    assert (answer.status_code, answer.location) == (303, "/")


# ---- guessing


def test_one_wrong_try_blocks_nobody(browser: Browser) -> None:
    assert wrong(browser, "ada").status_code == 401
    assert wrong(browser, "ada", password=PASSWORD).status_code == 303


def test_S71_tries_are_counted_over_replicas_and_the_pause_ends_by_itself(
    browser: Browser, second_replica: Flask, clock: Clock, committed_db: psycopg.Connection
) -> None:
    replicas = [browser, Browser(second_replica.test_client())]
    answers = [wrong(replicas[n % 2], "ada") for n in range(8)]
    assert [answer.status_code for answer in answers] == [401] * guessing.PAIR + [429] * 3
    paused = wrong(browser, "ada", password=PASSWORD)
    assert paused.status_code == 429
    assert 0 < int(paused.headers["Retry-After"]) <= guessing.PAUSE_MINUTES * 60
    assert "Try again in 5 minutes. The pause ends by itself." in paused.text
    # Hammering does not prolong it: only the first five count.
    clock.advance(minutes=guessing.PAUSE_MINUTES, seconds=1)
    assert wrong(browser, "ada", password=PASSWORD).status_code == 303
    assert committed_db.execute("SELECT count(*) FROM login_attempt WHERE NOT succeeded").fetchone() == (guessing.PAIR,)
    assert committed_db.execute("SELECT count(*) FROM refusal WHERE reason = 'too_many_tries'").fetchone() == (4,)


def test_S71_a_name_that_does_not_exist_gets_the_same_answers(browser: Browser) -> None:
    def course(username: str, address: str) -> list[tuple[int, str]]:
        answers = [wrong(browser, username, address=address) for _ in range(7)]
        return [(answer.status_code, re.sub(r'value="[^"]*"', "", answer.text)) for answer in answers]

    real, nobody = course("ada", "198.51.100.1"), course("nobody", "198.51.100.2")
    assert real == nobody
    assert real[0][1].count("Name or password is wrong") == 1


def test_S71_a_name_that_does_not_exist_costs_the_same_time() -> None:
    stored = passwords.rehash(PASSWORD)
    assert not passwords.matches(None, "warm")

    def cost(hash_of: str | None) -> float:
        times = []
        for _ in range(9):
            began = perf_counter()
            assert not passwords.matches(hash_of, "wrong")
            times.append(perf_counter() - began)
        return median(times)

    real, nobody = cost(stored), cost(None)
    assert 0.5 < real / nobody < 2


def test_S71_an_outsider_cannot_keep_a_person_out_who_is_known_there(browser: Browser, app: Flask, clock: Clock) -> None:
    office = "203.0.113.5"
    assert wrong(browser, "ada", address=office, password=PASSWORD).status_code == 303
    for n in range(guessing.NAME + 5):  # many addresses, one try each
        wrong(Browser(app.test_client()), "ada", address=f"198.51.100.{n}")
    assert wrong(Browser(app.test_client()), "ada", address="192.0.2.99", password=PASSWORD).status_code == 429
    assert wrong(Browser(app.test_client()), "ada", address=office, password=PASSWORD).status_code == 303
    # The browser that she used carries its own count, wherever it is, and even from the attacker's address.
    browser.get("/start")
    assert browser.post("/logout").status_code == 303
    assert wrong(browser, "ada", address="198.51.100.1", password=PASSWORD).status_code == 303
    clock.advance(minutes=guessing.WINDOW_MINUTES + 1)
    assert wrong(Browser(app.test_client()), "ada", address="192.0.2.99", password=PASSWORD).status_code == 303


def test_one_address_cannot_try_one_password_on_every_name(browser: Browser, app: Flask) -> None:
    answers = [wrong(Browser(app.test_client()), f"name{n}").status_code for n in range(guessing.ADDRESS + 2)]
    assert answers == [401] * guessing.ADDRESS + [429] * 2


# ---- the rest


def test_a_theme_is_kept_with_the_person_and_shown_on_the_sign_in_page(client_for: Client) -> None:
    ada = client_for("ada")
    assert ada.post("/theme", {"theme": "dark", "next": "/start"}).location == "/start"
    assert '<html lang="en" data-theme="dark">' in ada.get("/inbox").text
    ada.post("/logout")
    assert '<html lang="en" data-theme="dark">' in ada.get("/login").text
    assert ada.sign_in("ada").status_code == 303
    assert ada.post("/theme", {"theme": "pink"}).status_code == 422


def test_health_needs_nobody_and_metrics_are_not_for_everybody(app: Flask, database_url: str) -> None:
    client = app.test_client()
    assert client.get("/health/live").get_json() == {"status": "live"}
    assert client.get("/health/ready").get_json() == {"status": "ready"}
    assert b"baton_web_requests_total" in client.get("/metrics", environ_base={"REMOTE_ADDR": "127.0.0.1"}).data
    assert client.get("/metrics", environ_base={"REMOTE_ADDR": "198.51.100.1"}).status_code == 404
    assert client.get("/metrics", headers={"X-Forwarded-For": "198.51.100.1"}).status_code == 404
    token = "m" * 32
    guarded = create_app(Settings(database_url=database_url, secret_key="s" * 40, metrics_token=token)).test_client()
    assert guarded.get("/metrics").status_code == 404
    assert guarded.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_without_a_database_the_process_lives_is_not_ready_and_says_so_calmly(people: dict[str, UUID]) -> None:
    nowhere = create_app(Settings(database_url="postgresql://nobody@127.0.0.1:1/none", secret_key="s" * 40)).test_client()
    assert nowhere.get("/health/live").status_code == 200
    assert nowhere.get("/health/ready").status_code == 503
    nowhere.set_cookie(COOKIE, "x" * 43)
    answer = nowhere.get("/inbox")
    assert answer.status_code == 503
    assert "The database cannot be reached at the moment." in answer.text and answer.headers["Retry-After"] == "2"
