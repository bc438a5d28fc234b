"""Many instances of one activity: a storm of completions (S27), and a large collection (S37)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.jobs import complete_job, continue_loop
from engine.commands.outcome import CaseShrunk, InstanceCancelled, ItemDone, Lease, Rejected, TaskCompleted
from engine.commands.start import start_instance
from engine.db.acquire import acquire_jobs
from engine.db.load import load_batch
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import deployed, kinds, lease_of, started, status, the_task
from tests.core.models import model, service, several, sub, user
from tests.races.contest import contest
from tests.rows import one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def leased(conn: Connection, kind: str, topic: str, *, owner: str = "w", limit: int = 10) -> list[Lease]:
    found = acquire_jobs(conn, owner=owner, capabilities=[(kind, topic)], limit=limit, lease_seconds=300, workers=6)
    return [lease_of(item) for item in found]


def test_S27_thirty_completions_at_once_send_thirty_deliveries_and_complete_the_body_once(conn: Connection, database_url: str) -> None:
    """Six workers have five items each; every completion waits for the case at the same moment."""
    send = service("http.deliver", work="deliver", inputs={"url": "http://there/${loopCounter}"})
    chains = "start -> box -> after -> end", "start2 -> work -> tell -> end2"
    box = several(sub(), times="${30}")
    deployed(conn, model(*chains, box=box, work=service("work"), tell=send, after=user(), inside={"box": "start2 work tell end2"}))
    case = started(conn).instance_id
    leases = [lease for number in range(6) for lease in leased(conn, "service", "work", owner=f"worker-{number}", limit=5)]
    assert len({lease.item_id for lease in leases}) == 30
    before = one(conn, "SELECT revision FROM process_instance")

    acts = [lambda c, lease=lease: complete_job(c, lease, variables={}) for lease in leases]
    outcomes = contest(database_url, "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE", (case,), *acts)

    assert [type(outcome) for outcome in outcomes] == [ItemDone] * 30
    assert one(conn, "SELECT revision FROM process_instance") == before + 30, "each moved the case once: none was made again"
    sent = [row[0] for row in conn.execute("SELECT destination FROM delivery").fetchall()]
    assert sorted(sent) == sorted(f"http://there/{number}" for number in range(30))
    assert one(conn, "SELECT max((data->>'attempt')::int) FROM history WHERE kind = 'job_completed'") == 1
    assert (one(conn, "SELECT count(*) FROM incident"), one(conn, "SELECT count(*) FROM refusal")) == (0, 0)
    happened = Counter(kinds(conn, case))
    assert (happened["job_completed"], happened["delivery_created"], happened["task_created"]) == (30, 30, 1)
    again = [complete_job(conn, lease, variables={}) for lease in leases]
    assert all(isinstance(outcome, ItemDone) and outcome.repeated for outcome in again)
    assert one(conn, "SELECT count(*) FROM delivery") == 30


def test_S37_of_five_thousand_items_in_two_megabytes_a_thousand_begin_and_a_cancel_leaves_nothing(conn: Connection) -> None:
    items = [{"number": number, "text": "x" * 380} for number in range(5_000)]
    deployed(conn, model("start -> x -> end", x=several(service(), of="${items}")))
    case = started(conn, variables={"items": items}).instance_id
    assert one(conn, "SELECT length(value::text) FROM variable WHERE name = 'items'") > 2_000_000
    other = model("start -> t -> end", t=user(assignee=parse("${'ada'}")))
    deployed(conn, replace(other, key="other"))

    while one(conn, "SELECT count(*) FROM job WHERE kind = 'service'") < 1_000:
        [step] = leased(conn, "continue", "")
        assert isinstance(continue_loop(conn, step), ItemDone)
        neighbour = started(conn, "other").instance_id  # other cases move on between the steps
        assert isinstance(
            complete_task(conn, the_task(conn, "t", instance_id=neighbour), actor=ADA, variables={}, request_id=None), TaskCompleted
        )
        assert status(conn, neighbour) == "completed"
    assert one(conn, "SELECT max(pg_column_size(payload)) FROM job") < 1_000, "no job carries the collection"
    [work] = load_batch(conn, [leased(conn, "service", "work", limit=1)[0].item_id]).values()
    assert (work.variables["item"]["number"] >= 0, "items" in work.variables) == (True, False)

    assert isinstance(cancel_instance(conn, case, actor=OP, reason="enough", request_id=None), InstanceCancelled)
    late = [lease for lease in leased(conn, "continue", "") for _ in [continue_loop(conn, lease)]]
    assert all(isinstance(continue_loop(conn, lease), Rejected) for lease in late)
    [finisher] = leased(conn, "cancel", "")
    while isinstance(cancel_some(conn, finisher), CaseShrunk):
        pass
    assert status(conn, case) == "cancelled"
    assert one(conn, "SELECT count(*) FROM job") + one(conn, "SELECT count(*) FROM token") == 0


def test_S37_a_payload_over_the_limit_is_refused_by_its_name_and_nothing_becomes_active(conn: Connection) -> None:
    deployed(conn, model("start -> x -> end", x=several(service(), of="${items}")))
    refused = start_instance(conn, "model", actor=ADA, variables={"items": ["x" * 1_000] * 5_000}, request_id=None)
    assert isinstance(refused, Rejected)
    assert refused.refusal.value == "invalid"
    assert "4,000,000 bytes" in refused.problems[0].message
    assert one(conn, "SELECT count(*) FROM process_instance") == 0
