"""Operations in a real browser: seconds that count without a network, marks that follow without a reload, no script at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from engine.commands.attempt_log import Line, report_attempt
from engine.commands.cancel import cancel_instance
from engine.commands.destinations import Wanted, add_destination
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.pause import pause_work
from engine.commands.suspend import suspend_instance
from engine.commands.suspend_definition import suspend_definition
from tests import rows
from tests.bpmn.models import around
from tests.web.decisions import cooked, dinner
from tests.web.operations import OLGA, deployed, failed_external_task, one, started
from tests.web.rows import Rows

pytestmark = pytest.mark.browser

Open = Callable[..., Page]


def furnished(conn: psycopg.Connection[Any]) -> Any:
    """Something on every screen; returns an instance with a diagram."""
    deployed(conn, "order-fulfilment", "an_external_task")
    made = Rows(conn)
    worker = made.worker()
    here = started(conn, "order-fulfilment", business_key="ORD-1")
    failed_external_task(conn)
    started(conn, "shipping", business_key="ORD-3")
    [task] = acquire_external_tasks(conn, actor=OLGA, worker_id="mint-02", topics=["ship"], limit=1, lease_seconds=60)
    lines = [
        Line(f"label {number} of 40: printed on a tray with a long name", "warning" if number % 7 == 0 else "info") for number in range(40)
    ]
    report_attempt(conn, task.id, actor=OLGA, lease_number=1, progress=0.4, doing="printing labels", lines=lines)
    definition = one(conn, "SELECT id FROM process_definition WHERE key = 'shipping'")
    made.delivery(definition, here, status="failed", attempts=8, last_error="503")
    made.delivery(definition, here, **made.lease(worker, seconds_left=-20))
    made.insert("message", name="paid", correlation_key="1", published_by="x", expires_at=made.at(hours=1))
    for address in ("10.0.0.1", "2001:db8:1234:5678:9abc:def0:1234:5678"):
        conn.execute("INSERT INTO external_worker (worker_id, address) VALUES ('shipping-worker-of-a-long-name-1', %s)", (address,))
    conn.execute("INSERT INTO login_attempt (username_key, address, succeeded) VALUES ('mira', '10.0.0.1', false)")
    return here


def resting(conn: psycopg.Connection[Any]) -> Any:
    """A pause, a suspended version, and a suspended case."""
    pause_work(conn, "service", "shop.charge", actor=OLGA, reason="the bank is down until noon")
    suspend_definition(
        conn, one(conn, "SELECT id FROM process_definition WHERE key = 'shipping'"), actor=OLGA, reason="a wrong address form"
    )
    here = started(conn, "order-fulfilment", business_key="ORD-9")
    suspend_instance(conn, here, actor=OLGA, reason="the auditors are here")
    return here


def a_destination(conn: psycopg.Connection[Any]) -> None:
    """With one delivery that is due and one that waits behind it."""
    wanted = Wanted("http", "https://shop.example/hooks/with/a/long/address/of/its/own", concurrency=2, retry="R8/PT10S*2/PT1H")
    add_destination(conn, "shop", wanted, actor=OLGA)
    route = str(one(conn, "SELECT id FROM destination"))
    rows.delivery(conn, route=route, line="ada")
    rows.delivery(conn, route=route, line="ada", held=["ordered"])


def furnished_with_decisions(conn: psycopg.Connection[Any]) -> Any:
    """A case that was decided."""
    cooked(conn)
    dinner(conn, degrees=30, guests=4)
    return dinner(conn, business_key="D-1")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390), ("light", 320)])
def test_axe_finds_nothing_on_any_page_of_operations_and_none_overflows(
    open_browser: Open, committed_db: psycopg.Connection, scheme: str, width: int
) -> None:
    here, decided = furnished(committed_db), furnished_with_decisions(committed_db)
    suspended = resting(committed_db)
    a_destination(committed_db)
    item = one(committed_db, "SELECT external_task_id FROM incident WHERE external_task_id IS NOT NULL")
    lease = one(committed_db, "SELECT id FROM external_task WHERE status = 'leased'")
    olga = open_browser("olga", width=width, color_scheme=scheme)
    paths = (
        "", "/processes", "/processes/order-fulfilment/1", "/instances", "/instances?q=zebra", f"/instances/{here}",
        f"/instances/{here}?cancel=1", f"/instances/{here}?suspend=1", f"/instances/{suspended}", "/processes/order-fulfilment/1?suspend=1",
        "/processes/shipping/1", "/pauses", "/jobs", "/leases", f"/leases?release={lease}&item={lease}", "/failed",
        f"/failed/external_task/{item}", "/workers", "/outbox", "/outbox/destinations/new",
        "/outbox/destinations/shop", "/messages", "/sign-ins", "/deploy", f"/jobs/{lease}", f"/jobs/{item}",
        "/decisions", "/decisions?q=zebra", "/decisions/dish/1", "/decisions/season/1", f"/instances/{decided}",
    )  # fmt: skip
    for path in paths:
        olga.goto(f"/operations{path}")
        if olga.locator("[data-diagram]").count():
            expect(olga.locator(".bjs-powered-by")).to_be_visible()
        found = Axe().run(olga).response["violations"]
        assert not found, (path, [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found])
        assert olga.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_lease_counts_down_without_a_network_and_stands_still_while_paused(open_browser: Open, committed_db: psycopg.Connection) -> None:
    furnished(committed_db)
    olga = open_browser("olga")
    olga.goto("/operations/leases?work=external_task")
    words = olga.locator("[data-countdown-words]").first
    expect(words).to_have_text(re.compile(r"^\d+ s of 60 s$"))
    olga.context.set_offline(True)
    seconds = int(words.inner_text().split()[0])
    expect(words).to_have_text(re.compile(rf"^({seconds - 2}|{seconds - 3}) s of 60 s$"))
    olga.get_by_role("button", name="Pause").click()
    still = words.inner_text()
    olga.wait_for_function("start => performance.now() - start > 2500", arg=olga.evaluate("performance.now()"))
    assert words.inner_text() == still
    live = "element => Boolean(element.closest('[aria-live], [role=status], [role=timer], [role=log]'))"
    assert not words.evaluate(live), "the seconds are not announced"


def test_the_head_of_a_case_follows_what_happens_and_keeps_its_pause_button(open_browser: Open, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "order-fulfilment")
    case = started(committed_db, "order-fulfilment", business_key="ORD-1")
    olga = open_browser("olga")
    olga.goto(f"/operations/instances/{case}")
    expect(olga.locator("[data-live-words]")).to_have_text("Live")
    cancel_instance(committed_db, case, actor=OLGA, reason="a mistake", request_id=None)
    expect(olga.locator("h1")).to_contain_text("Cancelled")
    olga.get_by_role("button", name="Pause").click()
    expect(olga.get_by_role("button", name="Go on")).to_have_attribute("aria-pressed", "true")


def test_marks_on_a_diagram_follow_what_happens_without_a_reload(open_browser: Open, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "order-fulfilment")
    olga = open_browser("olga")
    olga.goto("/operations/processes/order-fulfilment/1")
    expect(olga.locator(".djs-shape").first).to_be_attached()
    expect(olga.locator(".mark")).to_have_count(0)
    olga.evaluate("window.stayed = true")
    started(committed_db, "order-fulfilment", business_key="ORD-1")
    expect(olga.locator(".mark.tokens")).to_have_text("1")
    started(committed_db, "order-fulfilment", business_key="ORD-2")
    expect(olga.locator(".mark.tokens")).to_have_text("2")
    committed_db.execute("UPDATE job SET status = 'failed', attempts = 1 WHERE id = (SELECT min(id::text)::uuid FROM job)")
    made = Rows(committed_db)
    made.incident(
        "down", definition=one(committed_db, "SELECT id FROM process_definition"), element="reserve",
        job_id=one(committed_db, "SELECT id FROM job WHERE status = 'failed'"),
    )  # fmt: skip
    expect(olga.locator(".mark.incidents")).to_have_text("!")
    assert olga.evaluate("window.stayed") is True


def test_two_operators_press_retry_and_the_second_reads_who_was_first_in_the_row_that_was_pressed(
    open_browser: Open, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    failed_external_task(committed_db, business_key="ORD-1")
    committed_db.execute("UPDATE person SET role = 'operator' WHERE username = 'bo'")
    olga, bo = open_browser("olga"), open_browser("bo")
    for page in (olga, bo):
        page.goto("/operations/failed")
    olga.get_by_role("button", name="Retry Ship the parcel, ORD-1").click()
    expect(olga.get_by_text("Running again")).to_be_visible()
    bo.get_by_role("button", name="Retry Ship the parcel, ORD-1").click()
    said = bo.get_by_text(re.compile(r"Olga Petrova retried this"))
    expect(said).to_be_visible()
    expect(said).to_be_focused()
    expect(bo).to_have_url(re.compile(r"/operations/failed$"))


def test_a_lease_is_released_and_a_file_deployed_without_any_script(
    open_browser: Open, committed_db: psycopg.Connection, tmp_path: Any
) -> None:
    furnished(committed_db)
    olga = open_browser("olga", java_script_enabled=False)
    olga.goto("/operations/leases?work=external_task")
    olga.get_by_role("link", name="Release Ship the parcel, ORD-3").click()
    olga.get_by_role("button", name="Release lease 1").click()
    expect(olga.get_by_text("Ship the parcel of ORD-3 was released")).to_be_visible()
    assert one(committed_db, "SELECT count(*) FROM external_task WHERE status = 'leased'") == 0
    olga.goto("/operations/deploy")
    broken = tmp_path / "broken.bpmn"
    broken.write_text("<definitions/>")
    olga.get_by_label("BPMN, DMN and form files").set_input_files(broken)
    olga.get_by_role("button", name="Deploy").click()
    expect(olga.get_by_role("heading", name=re.compile("so nothing was deployed"))).to_be_visible()
    expect(olga.get_by_role("rowheader", name="broken.bpmn").first).to_be_visible()
    olga.goto("/operations/processes/order-fulfilment/1")
    expect(olga.get_by_text("Reserve the stock").first).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_what_is_said_about_long_java_names_stays_on_the_page(
    open_browser: Open, committed_db: psycopg.Connection, tmp_path: Any, scheme: str, width: int
) -> None:
    model = tmp_path / "model.bpmn"
    name = "com.example.insurance.applications.delegates.SendTheConfirmationToTheApplicantAndToTheBroker"
    model.write_bytes(around(f'<serviceTask id="x" camunda:class="{name}" camunda:made="{name}"/>'))
    olga = open_browser("olga", width=width, color_scheme=scheme)
    olga.goto("/operations/deploy")
    olga.get_by_label("BPMN, DMN and form files").set_input_files(model)
    olga.get_by_role("button", name="Deploy").click()
    expect(olga.get_by_role("heading", name="1 process deployed")).to_be_visible()
    expect(olga.get_by_text(name).first).to_be_visible()
    assert olga.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_a_model_without_a_drawing_is_drawn_and_says_whose_drawing_it_is(
    open_browser: Open, committed_db: psycopg.Connection, scheme: str, width: int
) -> None:
    deployed(committed_db, "compensation", "data_in_lanes")
    started(committed_db, "compensation", guests=["x"])
    olga = open_browser("olga", width=width, color_scheme=scheme)
    olga.goto("/operations/processes/compensation/1")
    expect(olga.locator("[data-element-id=no_seat].djs-shape")).to_be_attached()
    expect(olga.locator(".mark.tokens").first).to_be_attached()
    said = olga.get_by_text("this one was laid out by Baton.")
    expect(said).to_be_visible()
    words, tools = said.bounding_box(), olga.locator(".diagram-tools").bounding_box()
    assert words and tools and words["y"] + words["height"] <= tools["y"], "the buttons do not lie on the words"
    assert not Axe().run(olga).response["violations"]
    assert olga.evaluate("document.documentElement.scrollWidth") <= width
    olga.goto("/operations/processes/data_in_lanes/1")
    expect(olga.get_by_text("Not in it: lanes, data objects.")).to_be_visible()


def test_a_page_says_why_there_is_no_drawing_and_has_the_words(open_browser: Open, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_group_task")
    definition = one(committed_db, "SELECT id FROM process_definition")
    committed_db.execute("INSERT INTO drawing (definition_id, note) VALUES (%s, 'it is too large')", (definition,))
    olga = open_browser("olga")
    olga.goto("/operations/processes/a_group_task/1")
    expect(olga.get_by_text("No drawing: it is too large. The same stands as text below.")).to_be_visible()
    expect(olga.locator("#process-elements").get_by_text("Check", exact=True)).to_be_visible()
