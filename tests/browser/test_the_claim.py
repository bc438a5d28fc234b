"""Two people press at the same moment: what each of them sees. The row is locked from outside until both wait for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg
import pytest
from playwright.sync_api import Page, expect

from engine.db.session import connect
from tests.browser.conftest import Site
from tests.web.tasks import open_task

pytestmark = pytest.mark.browser
Open = Callable[..., Page]
SENTENCE = re.compile(r"(Ada Moreno|Bo Lindqvist) claimed this (just now|\d+ seconds? ago)\.")
WAITING = """
    SELECT count(*) FROM pg_stat_activity a
    WHERE a.datname = current_database() AND %s = ANY (pg_blocking_pids(a.pid)) OR EXISTS (
      SELECT FROM unnest(pg_blocking_pids(a.pid)) b WHERE %s = ANY (pg_blocking_pids(b)))
"""


@contextmanager
def row_locked(url: str, task: UUID, *, waiters: int) -> Iterator[None]:
    """Hold the task's row while the body presses; let go once `waiters` sessions wait for it, whoever is first."""
    with connect(url) as holder, connect(url) as watcher:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM user_task WHERE id = %s FOR UPDATE", (task,))
        yield
        pid = holder.info.backend_pid
        until(lambda: _value(watcher, WAITING, (pid, pid)) >= waiters, f"{waiters} sessions wait for the row")
        holder.execute("COMMIT")
        until(lambda: _value(watcher, "SELECT assignee FROM user_task WHERE id = %s", (task,)) is not None, "somebody has the task")


def until(holds: Callable[[], bool], what: str) -> None:
    """Look again until it holds; how long that takes is the machine's business, within a minute."""
    ends = monotonic() + 60
    while not holds():
        assert monotonic() < ends, f"expected within a minute: {what}"


def _value(conn: psycopg.Connection, sql: str, params: tuple[object, ...]) -> Any:
    row = conn.execute(sql.encode(), params).fetchone()
    assert row is not None
    return row[0]


def in_words(page: Page, selector: str = "main") -> str:
    return re.sub(r"\s+", " ", page.locator(selector).inner_text())


def holder_of(conn: psycopg.Connection, task: UUID) -> str:
    row = conn.execute("SELECT assignee FROM user_task WHERE id = %s", (task,)).fetchone()
    assert row is not None
    return str(row[0])


def test_two_browsers_race_for_one_row_and_both_screens_tell_the_truth(
    open_browser: Open, committed_db: psycopg.Connection, database_url: str
) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1", priority=90)
    following = open_task(committed_db, groups=("clerks",), business_key="INV-2")
    pages = {"ada": open_browser("ada"), "bo": open_browser("bo")}
    row = f"#task-{task}"
    for page in pages.values():
        page.get_by_role("button", name="Pause").click()  # the press itself must answer, not the live update
    with row_locked(database_url, task, waiters=2):
        for page in pages.values():
            page.locator(row).get_by_role("button", name="Claim").click()
    winner = holder_of(committed_db, task)
    won, lost = pages.pop(winner), pages.popitem()[1]

    expect(won.locator(row).get_by_role("link", name="Open Check invoice, INV-1")).to_be_focused()
    expect(won.locator(row)).to_contain_text("You")
    expect(won.get_by_role("status").first).to_have_text("You claimed Check invoice, INV-1.")
    assert "claimed this" not in in_words(won)

    name = {"ada": "Ada Moreno", "bo": "Bo Lindqvist"}[winner]
    expect(lost.locator(f"{row}.lost")).to_be_visible()
    found = SENTENCE.search(in_words(lost, row))
    assert found and found[1] == name
    assert lost.locator(f"{row} time[datetime]").count() >= 1
    expect(lost.locator(row).locator("strong")).to_be_focused()
    expect(lost.locator(row).get_by_role("button", name="Claim", exact=True)).to_have_count(0)
    expect(lost.get_by_role("status").first).to_contain_text(f"{name} claimed this")

    lost.locator(row).get_by_role("button", name="Claim the next free: INV-2").click()
    expect(lost.locator(f"#task-{following}")).to_contain_text("You")
    assert {holder_of(committed_db, task), holder_of(committed_db, following)} == {"ada", "bo"}


def test_without_javascript_the_loser_gets_the_same_sentence_as_a_page(
    open_browser: Open, committed_db: psycopg.Connection, database_url: str
) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1", priority=90)
    open_task(committed_db, groups=("clerks",), business_key="INV-2")
    pages = {name: open_browser(name, java_script_enabled=False) for name in ("ada", "bo")}
    with row_locked(database_url, task, waiters=2):
        for page in pages.values():
            page.locator(f"#task-{task}").get_by_role("button", name="Claim").click(no_wait_after=True)
    won, lost = pages.pop(holder_of(committed_db, task)), pages.popitem()[1]
    won.wait_for_url(re.compile(f"/tasks/{task}"))
    expect(won.locator("main")).to_contain_text("You claimed this")
    lost.wait_for_url(re.compile(f"/tasks/{task}/claim"))
    assert SENTENCE.search(lost.get_by_role("heading", level=1).inner_text())
    expect(lost.locator("main")).to_contain_text("Next free Check invoice: INV-2")

    for again in (lost.reload, lost.go_back):  # the press repeated, and the list as the browser kept it
        again()
        press = lost.locator(f"#task-{task}").get_by_role("button", name="Claim")
        if press.count():
            press.click()
        assert SENTENCE.search(in_words(lost)) or "Ada Moreno" in in_words(lost) or "Bo Lindqvist" in in_words(lost)

    lost.goto(f"/tasks/{task}")
    assert re.search(r"claimed this", in_words(lost))


def test_in_another_tab_and_by_back_the_task_says_who_has_it(open_browser: Open, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    bo, ada = open_browser("bo"), open_browser("ada")
    bo.goto(f"/tasks/{task}")
    expect(bo.get_by_role("button", name="Claim", exact=True)).to_be_visible()
    ada.goto(f"/tasks/{task}")
    ada.get_by_role("button", name="Claim", exact=True).click()
    expect(bo.locator("#standing")).to_contain_text("Ada Moreno claimed this")  # by itself, in the open tab
    bo.goto("/inbox")
    bo.go_back()
    expect(bo.locator("#standing")).to_contain_text("Ada Moreno claimed this")


def test_who_completes_too_late_keeps_everything_typed(open_browser: Open, committed_db: psycopg.Connection, site: Site) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="bo", business_key="INV-1")
    bo, olga = open_browser("bo"), open_browser("olga")
    bo.goto(f"/tasks/{task}?back=/inbox?view%3Dmine")
    bo.get_by_label("Net amount").fill("3912.50")
    bo.get_by_label("Reject").check()
    olga.goto(f"/tasks/{task}")
    olga.get_by_text("Assign…").click()
    olga.get_by_label("Give it to").select_option("ada")
    olga.get_by_role("button", name="Assign", exact=True).click()
    olga.wait_for_url(re.compile(f"/tasks/{task}"))

    expect(bo.locator("#standing")).to_contain_text("Ada Moreno claimed this")  # live, and the form is not touched
    expect(bo.get_by_label("Net amount")).to_have_value("3912.50")
    bo.get_by_label("Note").fill("Ask for a credit before paying.")
    bo.get_by_role("button", name="Complete").click()
    heading = bo.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Ada Moreno claimed this")
    words = in_words(bo)
    assert "Nothing that you typed is lost" in words
    assert "3912.50" in words and "Reject" in words and "Ask for a credit before paying." in words
    expect(bo.get_by_role("link", name="Back to My tasks")).to_be_visible()
