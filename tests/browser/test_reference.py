"""The page of the API's description: Swagger UI under our strict policy, in light and dark, on a phone, and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

Open = Callable[..., Page]
SLOW = 60_000  # a megabyte of script is read, on whatever machine


def found_by_axe(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], [(node["html"][:160], node["failureSummary"][:200]) for node in each["nodes"]][:3]) for each in found]


def opened(page: Page) -> Page:
    """With the group of the user tasks and its first operation unfolded."""
    page.goto("/api-reference")
    page.locator('.opblock-tag[data-tag="Tasks"]').click(timeout=SLOW)
    page.locator(".opblock-summary-control").first.click(timeout=SLOW)
    expect(page.locator(".opblock-body").first).to_be_visible(timeout=SLOW)
    return page


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_in_the_reference_in_light_and_dark_and_nothing_is_wider_than_the_screen(open_browser: Open, width: int) -> None:
    page = opened(open_browser("ada", width=width, color_scheme="light"))
    assert found_by_axe(page) == []
    page.emulate_media(color_scheme="dark")
    assert found_by_axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.browser
def test_what_is_tried_out_is_asked_with_the_session_of_whoever_reads(open_browser: Open) -> None:
    page = opened(open_browser("ada"))
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .response-col_status").last).to_contain_text("200", timeout=SLOW)


@pytest.mark.browser
def test_without_javascript_the_operations_stand_in_the_page(open_browser: Open) -> None:
    page = open_browser("ada", java_script_enabled=False)
    page.goto("/api-reference")
    expect(page.get_by_text("POST /api/v1/tasks/{task_id}/claim")).to_be_visible()
