"""Retry policies of elements: read from the model, written with the work, followed to the incident after the last attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from engine.commands.failure import fail_item
from engine.commands.jobs import fail_job
from engine.commands.outcome import ItemFailed, Lease
from engine.db.acquire import acquire_deliveries
from tests.bpmn.models import around, definition, only_problem
from tests.cast import engage
from tests.commands.cases import acquired, deployed, started
from tests.conftest import Clock
from tests.rows import one

Connection = psycopg.Connection[Any]
CYCLE = "<extensionElements><camunda:failedJobRetryTimeCycle>{}</camunda:failedJobRetryTimeCycle>{}</extensionElements>"
URL = '<camunda:inputOutput><camunda:inputParameter name="url">http://a</camunda:inputParameter></camunda:inputOutput>'
EVERYWHERE = {
    "a job": ('<serviceTask id="x" baton:handler="work">{}</serviceTask>', "job"),
    "an external task": ('<serviceTask id="x" camunda:type="external" camunda:topic="work">{}</serviceTask>', "external_task"),
    "a delivery": ('<serviceTask id="x" baton:handler="http.deliver">{}</serviceTask>', "delivery"),
    "a message": ('<sendTask id="x" messageRef="m" baton:destination="http://a">{}</sendTask>', "delivery"),
    "a timer": (
        '<intermediateCatchEvent id="x">{}<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition>'
        "</intermediateCatchEvent>",
        "job",
    ),
    "a continuation": ('<userTask id="x" camunda:asyncBefore="true">{}</userTask>', "job"),
}  # fmt: skip


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def with_policy(what: str, policy: str) -> bytes:
    text, _ = EVERYWHERE[what]
    told = CYCLE.format(policy, URL if what == "a delivery" else "")
    return around(text.format(told), root='<message id="m" name="M"/>')


def put(conn: Connection, data: bytes, **variables: Any) -> None:
    found = definition(data)
    deployed(conn, found)
    started(conn, found.key, variables=variables)


# ---- what is read, and where it is written


@pytest.mark.parametrize("what", EVERYWHERE)
def test_every_kind_of_work_follows_the_policy_of_its_element(conn: Connection, what: str) -> None:
    put(conn, with_policy(what, "PT1M,PT10M"))
    table = EVERYWHERE[what][1]
    assert conn.execute(f"SELECT retry, max_attempts, attempts FROM {table}").fetchall() == [("PT1M,PT10M", 3, 0)]


@pytest.mark.parametrize("what", EVERYWHERE)
def test_a_policy_may_be_an_expression_that_is_evaluated_when_the_work_begins(conn: Connection, what: str) -> None:
    put(conn, with_policy(what, "${policy}"), policy="R5/PT10S*2/PT30S")
    table = EVERYWHERE[what][1]
    assert conn.execute(f"SELECT retry, max_attempts FROM {table}").fetchall() == [("PT10S,PT20S,PT30S,PT30S", 5)]


@pytest.mark.parametrize("what", EVERYWHERE)
def test_an_expression_that_gives_no_policy_is_an_incident_that_says_what_was_found(conn: Connection, what: str) -> None:
    put(conn, with_policy(what, "${policy}"), policy="often")
    message = one(conn, "SELECT message FROM incident")
    assert "the retries from ${policy}: " in message and "often" in message
    assert one(conn, f"SELECT count(*) FROM {EVERYWHERE[what][1]}") == 0


@pytest.mark.parametrize(("what", "attempts"), [("a job", 3), ("an external task", 3), ("a delivery", 8), ("a message", 8), ("a timer", 3)])
def test_an_expression_that_gives_nothing_leaves_the_engine_its_own_back_off(conn: Connection, what: str, attempts: int) -> None:
    put(conn, with_policy(what, "${policy}"), policy="")
    assert conn.execute(f"SELECT retry, max_attempts FROM {EVERYWHERE[what][1]}").fetchall() == [(None, attempts)]


@pytest.mark.parametrize("what", EVERYWHERE)
def test_a_policy_that_cannot_be_read_is_refused_at_deployment_by_the_name_of_its_element(what: str) -> None:
    problem = only_problem(with_policy(what, "R3/soon"))
    assert problem.element_id == "x"
    assert problem.what.startswith("the retries of ") and "'x' cannot be read: " in problem.what
    assert problem.why == "R3/PT5M, a list such as PT1M,PT5M,PT30M, waits that grow such as R8/PT10S*2/PT1H, or a number of attempts"


# ---- how it is followed


def fail(conn: Connection, clock: Clock, lease: Lease) -> float | None:
    """Fail it; the wait that follows, and the clock is moved past it. None: that was the last."""
    failed = fail_item(conn, lease, error="no")
    assert isinstance(failed, ItemFailed)
    if failed.status == "failed":
        return None
    wait: timedelta = one(conn, f"SELECT available_at - baton_now() FROM {lease.kind} WHERE id = %s", lease.item_id)
    clock.advance(seconds=wait.total_seconds() + 1)
    return wait.total_seconds()


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        ("R3/PT5M", [300, 300]),
        ("PT1M,PT10M,PT1H", [60, 600, 3600]),
        ("R5/PT10S*2/PT30S", [10, 20, 30, 30]),
        ("4", [10, 30, 90]),
        ("1", []),
    ],
)
def test_F15_a_job_waits_as_its_policy_says_jitter_on_top_and_is_one_incident_after_the_last(
    conn: Connection, clock: Clock, policy: str, waits: list[float]
) -> None:
    put(conn, with_policy("a job", policy))
    for expected in waits:
        [lease] = acquired(conn)
        waited = fail(conn, clock, lease)
        assert waited is not None and expected - 1 < waited <= expected * 1.1
    [lease] = acquired(conn)
    assert fail(conn, clock, lease) is None
    assert acquired(conn) == []
    assert conn.execute("SELECT status, attempts, max_attempts FROM job").fetchall() == [("failed", len(waits) + 1, len(waits) + 1)]
    assert one(conn, "SELECT count(*) FROM incident") == 1


def test_a_delivery_waits_as_its_policy_says(conn: Connection, clock: Clock) -> None:
    put(conn, with_policy("a message", "R2/PT3M"))
    for expected in (180.0, None):
        [row] = acquire_deliveries(conn, kinds=["http"], owner="w", limit=1, lease_seconds=30, workers=1)
        waited = fail(conn, clock, Lease(row.kind, row.item_id, row.number, row.owner))
        assert (waited is None) if expected is None else (waited is not None and expected - 1 < waited <= expected * 1.1)


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [(float("nan"), 299, 330), (float("inf"), 86_399, 86_400 * 1.1), (-1.0, -1, 0.1), (0.0, -1, 0.1), (42, 41, 46.2)],
)
def test_a_wait_that_is_asked_for_is_kept_within_a_day_and_one_that_is_no_number_is_the_policys(
    conn: Connection, asked: float, low: float, high: float
) -> None:
    put(conn, with_policy("a job", "R3/PT5M"))
    [lease] = acquired(conn)
    fail_job(conn, lease, error="later", retry_in=asked)
    assert low <= one(conn, "SELECT extract(epoch FROM available_at - baton_now())::float8 FROM job") <= high
