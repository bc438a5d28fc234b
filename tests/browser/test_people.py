"""Keys and people as somebody meets them: axe in light and dark, a phone's width, the copy button, no JavaScript."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from playwright.sync_api import Page, expect

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded
from engine.commands.people import add_person as add_somebody
from tests.browser.test_pages import too_wide, violations
from tests.web.conftest import add_person

pytestmark = pytest.mark.browser
Open = Callable[..., Page]
WORDY = "a_name_that_goes_on_and_on_" * 2


def fill_and_make(page: Page) -> None:
    page.get_by_label("What uses it").fill("Nightly import")
    page.get_by_role("button", name="Make the key").click()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 320)])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    open_browser: Open, committed_db: psycopg.Connection, scheme: str, width: int
) -> None:
    add_person(committed_db, "rae", "Rae Ot", "administrator", ())
    add_somebody(committed_db, "robot", actor=SYSTEM, display_name="Robot " * 20, groups=[WORDY, "office"], role="operator", kind="service")
    made = add_api_key(committed_db, "robot", actor=SYSTEM, name=f"Import {WORDY}", days=30, scopes=["read", "external_tasks", "operate"])
    assert isinstance(made, ApiKeyAdded)
    root = open_browser("rae", width=width, color_scheme=scheme)
    found: list[str] = []

    def look() -> None:
        found.extend(violations(root))
        if too_wide(root) > 0:
            found.append(f"{root.url}: {too_wide(root)} px wider than the screen")

    people = "/administration/people"
    paths = (people, f"{people}?q=zebra", f"{people}/add", f"{people}/add?kind=service", f"{people}/robot", f"{people}/ada?disable=1")
    for path in (*paths, f"{people}/robot?revoke={made.key_id}", "/account/keys"):
        root.goto(path)
        look()
    for box in root.get_by_role("checkbox").all():
        box.uncheck()
    fill_and_make(root)  # refused: it may do nothing
    expect(root.get_by_role("heading", name="No key was made")).to_be_visible()
    look()
    root.get_by_role("checkbox", name="read").check()
    fill_and_make(root)
    expect(root.get_by_label("Key", exact=True)).to_be_visible()
    look()
    root.goto(f"{people}/add")
    root.get_by_label("Short name").fill("Not A Name")
    root.get_by_label("Name that people read").fill("x")
    root.get_by_role("button", name="Add the person").click()
    expect(root.locator("section.errors")).to_be_focused()
    look()
    assert found == []


def test_a_new_key_is_copied_by_a_button(open_browser: Open) -> None:
    page = open_browser("ada")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/account/keys")
    fill_and_make(page)
    page.get_by_role("button", name="Copy the key").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.get_by_label("Key", exact=True).input_value()


def test_where_copying_is_forbidden_the_key_is_selected(open_browser: Open) -> None:
    page = open_browser("ada")
    page.goto("/account/keys")
    fill_and_make(page)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.get_by_role("button", name="Copy the key").click()
    expect(page.get_by_role("button", name="Selected: copy it with the keyboard")).to_be_visible()
    assert page.evaluate("document.getSelection().toString()") == page.get_by_label("Key", exact=True).input_value()


def test_without_javascript_a_key_is_made_and_revoked(open_browser: Open) -> None:
    page = open_browser("ada", java_script_enabled=False, width=390)
    page.goto("/account/keys")
    fill_and_make(page)
    expect(page.get_by_role("button", name="Copy the key")).to_be_hidden()
    assert page.get_by_label("Key", exact=True).input_value().startswith("baton_")
    page.get_by_role("link", name="I have kept it").click()
    page.get_by_role("link", name="Revoke… Nightly import").click()
    page.get_by_role("button", name="Revoke the key").click()
    expect(page.get_by_text("The key is revoked.")).to_be_visible()
    expect(page.get_by_role("cell", name="Revoked")).to_be_visible()
