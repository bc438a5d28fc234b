"""What operators see of signals and of messages between processes: who waits, what is on its way, and what happened."""

from __future__ import annotations

import re

import psycopg

from engine.commands.complete_task import complete_task
from engine.commands.jobs import fail_job
from engine.commands.outcome import ItemFailed, TaskCompleted
from tests.commands.cases import acquired, the_task
from tests.web.operations import ADA, Client, deployed, started
from tests.web.test_operations_why import sentence


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


def test_who_waits_for_a_signal_is_told_so_on_its_page_and_among_the_subscriptions(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_alarm_for_everybody")
    here = started(committed_db, "party", building="A")
    olga = client_for("olga")
    assert "Besides, Stop: Waits for the next signal ALARM" in sentence(olga, here)
    page = words(olga.get("/operations/messages").text)
    assert "ALARM signal" in page and "ALL CLEAR A signal" in page and "starts Evacuation, 1" in page
    assert "starts Evacuation, 1 On alarm" in page and "Party, 1 Stop" in page and "on_alarm" not in page
    assert "Waits for signal ALL CLEAR A , signal ALARM" in words(olga.get(f"/operations/instances/{here}").text)


def test_what_is_thrown_is_a_job_of_the_case_that_threw_it_until_it_is_spread(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_alarm_for_everybody")
    here = started(committed_db, "an_alarm_for_everybody", building="A", floor=3, business_key="FIRE-1")
    done = complete_task(committed_db, the_task(committed_db, "detect"), actor=ADA, variables={}, request_id=None)
    assert isinstance(done, TaskCompleted)
    olga = client_for("olga")
    jobs = words(olga.get("/operations/jobs").text)
    assert "alarm Thrown signal" in jobs and "to all processes FIRE-1" in jobs
    assert "Alarm threw the signal ALARM" in words(olga.get(f"/operations/instances/{here}").text)
    (lease,) = acquired(committed_db)
    assert isinstance(fail_job(committed_db, lease, error="broken", final=True), ItemFailed)
    failed = words(olga.get("/operations/failed").text)
    assert "broken" in failed and "FIRE-1" in failed
    assert olga.get(f"/operations/failed/job/{lease.item_id}").status_code == 200
