"""What a worker or client reads of the batch that it has leased: what was lost or held meanwhile is not in it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands import external_tasks
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.upkeep import Kept, upkeep
from engine.db.load import load_batch, read_case
from engine.db.outbox import load_requests
from tests import rows
from tests.cast import OP
from tests.commands import cases
from tests.commands.test_leases import leased
from tests.core.models import model, par, user

Connection = psycopg.Connection[Any]
FREED = "SET status = 'available', lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL"


def test_a_job_whose_lease_was_lost_is_not_in_its_batch(committed_db: Connection) -> None:
    kept, lost = leased(committed_db, "job"), leased(committed_db, "job")
    committed_db.execute(f"UPDATE job {FREED} WHERE id = %s".encode(), (lost.item_id,))
    assert set(load_batch(committed_db, [kept.item_id, lost.item_id])) == {kept.item_id}


def test_a_delivery_whose_lease_was_lost_or_that_was_held_is_not_in_its_batch(committed_db: Connection) -> None:
    kept, lost, held = (leased(committed_db, "delivery") for _ in range(3))
    committed_db.execute(f"UPDATE delivery {FREED} WHERE id = %s".encode(), (lost.item_id,))
    committed_db.execute("UPDATE delivery SET held = '{suspended}' WHERE id = %s", (held.item_id,))
    assert set(load_requests(committed_db, [each.item_id for each in (kept, lost, held)])) == {kept.item_id}


@pytest.mark.parametrize("meanwhile", [FREED, "SET held = '{suspended}'"])
def test_an_external_task_that_is_lost_or_held_between_the_lease_and_the_read_is_not_handed_out(
    committed_db: Connection, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = rows.external_task(committed_db)
    acquire = external_tasks.acquire_external

    def then_changed(*given: Any, **named: Any) -> Any:
        found = acquire(*given, **named)
        committed_db.execute(f"UPDATE external_task {meanwhile}".encode())
        return found

    monkeypatch.setattr(external_tasks, "acquire_external", then_changed)
    assert acquire_external_tasks(committed_db, actor=OP, worker_id="w", topics=["score"]) == []
    assert rows.columns(committed_db, "external_task", task, "status") == ("available",)


def test_only_topics_with_free_external_tasks_get_a_watermark(committed_db: Connection) -> None:
    leased(committed_db, "external_task")
    rows.external_task(committed_db, topic="failed", status="failed", attempts=3, max_attempts=3)
    rows.external_task(committed_db, topic="free")
    upkeep(committed_db, Kept(86_400, [("timer", "")]))
    marks = committed_db.execute("SELECT name FROM watermark WHERE name LIKE 'external_task %' AND name NOT LIKE '% leases'").fetchall()
    assert marks == [("external_task  free",)]


def test_the_snapshot_of_a_crowded_scope_has_the_token_itself_and_what_waits_at_joins(committed_db: Connection) -> None:
    branches = [f"start -> par -> {name} -> par2 -> end" for name in ("a", "b", "c", "d")]
    cases.deployed(committed_db, model(*branches, par=par(), par2=par(), **{name: user() for name in ("a", "b", "c", "d")}))
    case = cases.started(committed_db)
    committed_db.execute("UPDATE token SET status = 'joining', element_id = 'par2', flow_id = 'b>par2' WHERE element_id = 'b'")
    loaded = read_case(committed_db, "user_task", cases.the_task(committed_db, "a", instance_id=case.instance_id))
    assert loaded is not None
    assert loaded.snapshot is not None
    assert sorted((token.element_id, token.status) for token in loaded.snapshot.tokens.values()) == [("a", "waiting"), ("par2", "joining")]
    assert len(loaded.snapshot.tokens) == 2
    assert loaded.snapshot.crowded == set(loaded.snapshot.scopes)

    committed_db.execute("UPDATE token SET status = 'joining', element_id = 'par2' WHERE element_id IN ('c', 'd')")
    alone = read_case(committed_db, "user_task", cases.the_task(committed_db, "a", instance_id=case.instance_id))
    assert alone is not None
    assert alone.snapshot is not None
    assert alone.snapshot.crowded == frozenset(), "what waits at a join is seen, and so does not count"
