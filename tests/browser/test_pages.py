"""What a person meets on each page: axe in light and dark, a phone's width, the keyboard, live lists, refused forms."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from engine.commands.outcome import Actor
from engine.commands.tasks import claim
from tests.browser.conftest import Site
from tests.web.tasks import open_task
from tests.web.test_start import deployed

pytestmark = pytest.mark.browser
Open = Callable[..., Page]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
ADA = Actor("ada", groups=frozenset({"clerks"}))


def violations(page: Page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{page.url} {each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


def too_wide(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 320)])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    open_browser: Open, committed_db: psycopg.Connection, scheme: str, width: int
) -> None:
    deployed(committed_db, "a_start_form_and_two_steps_of_the_starter.bpmn")
    mine = open_task(committed_db, groups=("clerks",), assignee="ada", business_key="INV-1", due="2026-01-01", priority=95)
    theirs = open_task(committed_db, groups=("clerks",), assignee="bo", business_key="INV-2", about="A supplier with a long name " * 3)
    open_task(committed_db, groups=("clerks",), business_key="INV-3", variables={"order": ("json", {"lines": [1, 2]})})
    guest, ada = open_browser("", width=width, color_scheme=scheme), open_browser("ada", width=width, color_scheme=scheme)
    found: list[str] = []

    def look(page: Page) -> None:
        found.extend(violations(page))
        if too_wide(page) > 0:
            found.append(f"{page.url}: {too_wide(page)} px wider than the screen")

    guest.goto("/login")
    look(guest)
    guest.get_by_label("Name").fill("ada")
    guest.get_by_label("Password").fill("wrong")
    guest.get_by_role("button", name="Sign in").click()
    look(guest)
    paths = ("/inbox", "/inbox?view=mine", "/inbox?view=done", "/inbox?q=nothing", f"/tasks/{mine}", f"/tasks/{theirs}")
    for path in (*paths, "/start", "/start/leave", "/nowhere"):
        ada.goto(path)
        look(ada)
    ada.goto(f"/tasks/{mine}")
    ada.get_by_role("button", name="Complete").click()  # refused: nothing is filled in
    look(ada)
    ada.goto("/inbox")
    claim(committed_db, theirs, actor=ADA, request_id=None)
    assert found == []


def test_a_refused_form_takes_the_focus_to_the_summary_and_each_line_to_its_field(
    open_browser: Open, committed_db: psycopg.Connection
) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    page = open_browser("ada")
    page.goto(f"/tasks/{task}")
    page.get_by_label("Goods received").uncheck()
    page.get_by_label("Note").fill("kept")
    page.get_by_role("button", name="Complete").click()
    expect(page.locator("section.errors")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Net amount")).to_be_focused()
    expect(page.get_by_label("Note")).to_have_value("kept")
    expect(page.get_by_label("Goods received")).not_to_be_checked()


def test_the_keyboard_alone_claims_fills_in_and_completes(open_browser: Open, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    page = open_browser("ada")
    page.locator(f"#task-{task}").get_by_role("button", name="Claim").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Open Check invoice, INV-1")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/tasks/{task}"))
    page.get_by_label("Net amount").focus()
    page.keyboard.type("12.5")
    page.get_by_label("Approve").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Complete").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/inbox"))
    expect(page.get_by_text("You completed Check invoice, INV-1.")).to_be_visible()


def test_an_open_list_follows_what_others_do_and_stands_still_when_paused(open_browser: Open, committed_db: psycopg.Connection) -> None:
    first = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    second = open_task(committed_db, groups=("clerks",), business_key="INV-2")
    bo = open_browser("bo")
    expect(bo.locator("[data-live-words]")).to_have_text("Live")
    claim(committed_db, first, actor=ADA, request_id=None)
    expect(bo.locator(f"#task-{first}")).to_contain_text("Ada Moreno")

    bo.get_by_role("button", name="Pause").click()
    claim(committed_db, second, actor=ADA, request_id=None)
    expect(bo.locator("[data-live-words]")).to_contain_text("waiting")
    expect(bo.locator(f"#task-{second}")).to_contain_text("Free")
    bo.get_by_role("button", name="Go on").click()
    expect(bo.locator(f"#task-{second}")).to_contain_text("Ada Moreno")


def test_a_refused_stream_makes_the_page_poll(open_browser: Open, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    bo = open_browser("bo")
    bo.route("**/live?*", lambda route: route.fulfill(status=503))
    bo.reload()
    expect(bo.locator("[data-live-words]")).to_have_text("Every 5 s")
    claim(committed_db, task, actor=ADA, request_id=None)
    expect(bo.locator(f"#task-{task}")).to_contain_text("Ada Moreno")


def test_a_hidden_tab_closes_its_stream(open_browser: Open, site: Site) -> None:
    page = open_browser("ada")
    expect(page.locator("[data-live-words]")).to_have_text("Live")
    closed = page.evaluate(
        """() => {
          const real = EventSource.prototype.close; let closed = 0;
          EventSource.prototype.close = function () { closed += 1; return real.call(this); };
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
          return closed;
        }"""
    )
    assert closed == 1


def test_without_javascript_everything_is_reachable_and_nothing_pretends_to_be_live(
    open_browser: Open, committed_db: psycopg.Connection
) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    page = open_browser("ada", java_script_enabled=False, width=390)
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="My tasks")).to_be_visible()
    page.goto("/inbox")
    page.get_by_role("button", name="Take next").click()
    page.wait_for_url(re.compile(f"/tasks/{task}"))
    page.get_by_label("Net amount").fill("5")
    page.get_by_label("Approve").check()
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("You completed Check invoice, INV-1.")).to_be_visible()
