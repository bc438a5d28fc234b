"""The frame that every page hangs in."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.web.conftest import Browser
from webapp import gunicorn


def test_a_guest_is_sent_to_sign_in_and_comes_back_to_the_page(browser: Browser) -> None:
    answer = browser.get("/inbox?view=mine")
    assert answer.status_code == 302
    assert answer.location == "/login?next=%2Finbox%3Fview%3Dmine"
    browser.get(answer.location)
    signed_in = browser.post("/login", {"username": "ada", "password": "correct horse battery staple", "next": "/inbox?view=mine"})
    assert (signed_in.status_code, signed_in.location) == (303, "/inbox?view=mine")


def test_every_page_carries_the_strict_headers(client_for: Callable[[str], Browser]) -> None:
    answer = client_for("ada").get("/inbox")
    assert answer.status_code == 200
    csp = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in csp and "unsafe" not in csp and "frame-ancestors 'none'" in csp
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/inbox", "/start", "/login", "/nowhere"])
def test_no_page_has_inline_script_or_style(client_for: Callable[[str], Browser], path: str) -> None:
    html = client_for("ada").get(path).get_data(as_text=True)
    assert "style=" not in html and "<style" not in html and "<script>" not in html and " onclick" not in html


def test_an_idle_connection_is_closed_by_the_client_or_proxy_and_not_by_us() -> None:
    """Fifty users who pressed again after about five idle seconds met connections that we had just closed: some were reset."""
    minute_of_a_proxy, client = 60, httpx.Limits().keepalive_expiry
    assert client is not None
    assert gunicorn.keepalive > max(minute_of_a_proxy, client)
    assert gunicorn.worker_connections > gunicorn.threads, "kept connections never take the place of working ones"
