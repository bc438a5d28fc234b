"""S34: long texts are stored whole and shown short, on every screen that shows them."""

from __future__ import annotations

import psycopg
import pytest

from engine.commands.external_tasks import acquire_external_tasks, fail_external_task
from engine.commands.outcome import ItemFailed
from tests.bpmn.models import around
from tests.rows import definition
from tests.web.operations import OLGA, Client, deployed, one, started

NAME = "Prüfe " + "sehr " * 198 + "Ende"  # 1,000 characters


@pytest.mark.parametrize("length", [4_001, 70_000, 1_000_000])
def test_S34_a_long_variable_is_stored_whole_and_the_page_of_its_case_shows_a_part(
    client_for: Client, committed_db: psycopg.Connection, length: int
) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    text = "ä" * (length - 1) + "Ω"
    here = started(committed_db, "relay", essay=text)
    assert one(committed_db, "SELECT value FROM variable WHERE name = 'essay'") == text
    page = client_for("olga").get(f"/operations/instances/{here}").text
    assert "essay" in page and "Ω" not in page
    assert len(page) < 300_000
    told = client_for("olga").get(f"/api/v1/process-instances/{here}").json["variables"]["essay"]
    assert told == text


def test_S34_a_task_name_of_a_thousand_characters_is_kept_whole_and_its_page_and_lists_stand(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    assert len(NAME) == 1_000
    xml = around(f'<userTask id="x" name="{NAME}" camunda:candidateGroups="clerks"/>')
    definition(committed_db, "p", xml=xml)
    here = started(committed_db, "p")
    task = one(committed_db, "SELECT id FROM user_task")
    assert one(committed_db, "SELECT name FROM user_task") == NAME
    ada, olga = client_for("ada"), client_for("olga")
    assert NAME[:60] in ada.get("/inbox").text
    assert NAME in ada.get(f"/tasks/{task}").text
    assert NAME[:60] in olga.get(f"/operations/instances/{here}").text


def test_S34_a_failure_text_of_300_kb_is_cut_and_its_incident_is_there_and_shown(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    [task] = acquire_external_tasks(committed_db, actor=OLGA, worker_id="w", topics=["ship"], limit=1, lease_seconds=30)
    failed = fail_external_task(
        committed_db, task.id, actor=OLGA, lease_number=task.lease_number, error="Carrier down: " + "no " * 100_000, final=True
    )
    assert isinstance(failed, ItemFailed) and failed.incident_id is not None
    assert one(committed_db, "SELECT length(message) FROM incident") <= 2_000
    olga = client_for("olga")
    for address in ("/operations/failed", f"/operations/failed/external_task/{task.id}", "/operations"):
        page = olga.get(address)
        assert page.status_code == 200
        assert len(page.text) < 200_000
    assert "Carrier down: no no" in olga.get("/operations/failed").text
