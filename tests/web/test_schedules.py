"""What fires by the clock, and what was missed, on the pages of a process and of a case."""

from __future__ import annotations

import re
from io import BytesIO

import psycopg

from engine.commands.jobs import fire_timer
from engine.commands.start_by_timer import start_by_timer
from tests.commands.cases import acquired
from tests.commands.test_deploy import process, timer
from tests.commands.test_schedules import reminded
from tests.conftest import Clock
from tests.web.conftest import Browser
from tests.web.operations import Client, one, started


def put(olga: Browser, content: bytes) -> None:
    fields = {"file": [(BytesIO(content), "p.bpmn")], "request_id": "r"}
    assert olga.post("/operations/deploy", fields, content_type="multipart/form-data").status_code == 303


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_the_page_of_a_process_says_when_it_starts_by_the_clock_and_how_many_starts_were_missed(
    client_for: Client, committed_db: psycopg.Connection, clock: Clock
) -> None:
    olga = client_for("olga")
    put(olga, process(start=timer("timeCycle", "R/PT15M")))
    assert "not yet" in words(olga.get("/operations/processes/p").text)
    clock.advance(minutes=65)
    (lease,) = acquired(committed_db)
    start_by_timer(committed_db, lease)
    page = olga.get("/operations/processes/p").text
    assert "Starts by the clock" in page
    assert '<td class="num late">3</td>' in page
    assert f"/operations/instances/{one(committed_db, 'SELECT id FROM process_instance')}" in page


def test_a_process_that_nothing_starts_by_the_clock_says_nothing_of_it(client_for: Client, committed_db: psycopg.Connection) -> None:
    olga = client_for("olga")
    put(olga, process())
    assert "Starts by the clock" not in olga.get("/operations/processes/p").text


def test_the_page_of_a_case_says_what_its_timer_missed(client_for: Client, committed_db: psycopg.Connection, clock: Clock) -> None:
    olga = client_for("olga")
    put(olga, reminded("R/PT10M"))
    here = started(committed_db, "p")
    clock.advance(minutes=35)
    (lease,) = acquired(committed_db)
    fire_timer(committed_db, lease)
    page = words(olga.get(f"/operations/instances/{here}").text)
    assert "2 occurrences were missed before it" in page
    assert "the timer fired; 2 occurrences were missed" in page
