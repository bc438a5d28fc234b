"""A person gives new attempts: the incident, the count and the status change together, once (S55)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.failure import fail_item
from engine.commands.outcome import ItemFailed, ItemRetried, Refusal, Rejected
from engine.commands.retry import retry_item
from engine.db.acquire import WORK
from engine.expressions import parse
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, OP, ROOT, engage
from tests.commands import cases
from tests.commands.test_acquire import take
from tests.commands.test_leases import leased
from tests.core.models import ad_hoc, model, user

Connection = psycopg.Connection[Any]
ALL = pytest.mark.parametrize("table", list(WORK))


def exhausted(conn: Connection, table: str, **values: Any) -> UUID:
    lease = leased(conn, table, max_attempts=1, **values)
    outcome = fail_item(conn, lease, error="out of paper")
    assert isinstance(outcome, ItemFailed)
    assert outcome.status == "failed"
    return lease.item_id


@ALL
def test_S55_a_retry_grants_attempts_and_closes_the_incident(committed_db: Connection, table: str) -> None:
    item = exhausted(committed_db, table)
    assert take(committed_db, table) == []
    assert retry_item(committed_db, table, item, actor=OP, attempts=2, request_id="1") == ItemRetried(item, 2)
    assert rows.columns(committed_db, table, item, "status", "attempts", "max_attempts") == ("available", 1, 3)
    assert rows.one(committed_db, "SELECT count(*) FROM incident") == 0
    assert rows.history(committed_db, item)[-2:] == [(f"{table}_retried", "op"), ("incident_resolved", "op")]
    assert rows.one(committed_db, "SELECT action || ' ' || object_kind FROM audit") == f"retry {table}"
    [lease] = take(committed_db, table)
    assert (lease.item_id, lease.attempt, lease.number) == (item, 2, 2)


@ALL
def test_S55_failing_again_after_a_retry_opens_exactly_one_incident(committed_db: Connection, table: str) -> None:
    item = exhausted(committed_db, table)
    for number in (2, 3):
        retry_item(committed_db, table, item, actor=OP, attempts=1, request_id=str(number))
        [lease] = take(committed_db, table)
        again = fail_item(committed_db, cases.lease_of(lease), error="still out of paper")
        assert again is not None
        assert (again.status, again.attempts) == ("failed", number)
        assert rows.one(committed_db, f"SELECT id FROM incident WHERE {table}_id = %s", item) == again.incident_id


@ALL
def test_S55_the_second_operator_is_told_who_was_first(committed_db: Connection, table: str) -> None:
    engage(committed_db)
    item = exhausted(committed_db, table)
    retry_item(committed_db, table, item, actor=OP, attempts=1, request_id="1")
    late = retry_item(committed_db, table, item, actor=ROOT, attempts=1, request_id="1")
    assert (late.refusal, late.by, late.by_name) == (Refusal.NOT_FAILED, "op", "Op Erator")
    assert late.at == rows.one(committed_db, f"SELECT at FROM history WHERE kind = '{table}_retried'")
    assert rows.columns(committed_db, table, item, "max_attempts") == (2,)


def test_S55_no_attempts_is_refused(committed_db: Connection) -> None:
    item = exhausted(committed_db, "job")
    before = rows.everything(committed_db)
    for attempts in (0, -1, 101):
        refused = retry_item(committed_db, "job", item, actor=OP, attempts=attempts, request_id="1")
        assert refused.refusal is Refusal.INVALID
        assert [p.field for p in refused.problems] == ["attempts"]
    assert retry_item(committed_db, "job", item, actor=ADA, attempts=1, request_id="1") == Rejected(Refusal.NOT_ALLOWED)
    assert retry_item(committed_db, "job", new_id(), actor=OP, attempts=1, request_id="1") == Rejected(Refusal.NOT_FOUND)
    assert rows.everything(committed_db) == before


@ALL
def test_R10_a_repeated_retry_grants_nothing_more(committed_db: Connection, table: str) -> None:
    item = exhausted(committed_db, table)
    first = retry_item(committed_db, table, item, actor=OP, attempts=1, request_id="1")
    assert retry_item(committed_db, table, item, actor=OP, attempts=1, request_id="1") == first
    assert rows.columns(committed_db, table, item, "max_attempts") == (2,)


# ---- how an attempt fails (engine.commands.failure)


def waited(conn: Connection, table: str, item: UUID) -> float:
    wait: timedelta = rows.one(conn, f"SELECT available_at - baton_now() FROM {table} WHERE id = %s", item)
    return wait.total_seconds()


@pytest.mark.parametrize(
    ("retry", "attempt", "seconds"),
    [
        (None, 1, 10),
        (None, 2, 30),
        (None, 3, 90),
        (None, 20, 3600),
        ("R3/PT5M", 1, 300),
        ("R3/PT5M", 2, 300),
        ("PT1M,PT5M,PT30M", 1, 60),
        ("PT1M,PT5M,PT30M", 3, 1800),
        ("PT1M,PT5M,PT30M", 9, 1800),
    ],
)
def test_F15_the_retry_policy_says_how_long_to_wait_and_jitter_comes_on_top(
    committed_db: Connection, retry: str | None, attempt: int, seconds: float
) -> None:
    lease = leased(committed_db, "job", retry=retry, attempts=attempt - 1, max_attempts=30)
    fail_item(committed_db, lease, error="x")
    assert seconds - 1 < waited(committed_db, "job", lease.item_id) <= seconds * 1.1


@ALL
def test_what_the_other_side_asked_for_is_honoured_within_a_day(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table, retry="R3/PT5M")
    fail_item(committed_db, lease, error="x", retry_in=7200)
    assert 7199 < waited(committed_db, table, lease.item_id) <= 7200 * 1.1
    greedy = leased(committed_db, table)
    fail_item(committed_db, greedy, error="x", retry_in=1e9)
    assert waited(committed_db, table, greedy.item_id) <= 86400 * 1.1
    hasty = leased(committed_db, table)
    fail_item(committed_db, hasty, error="x", retry_in=-5)
    assert waited(committed_db, table, hasty.item_id) <= 0


@ALL
def test_S34_a_long_error_text_is_cut_and_the_incident_still_exists(committed_db: Connection, table: str) -> None:
    lease = leased(committed_db, table, max_attempts=1)
    fail_item(committed_db, lease, error="x\x00" * 150_000)
    message, detail = committed_db.execute(f"SELECT message, detail FROM incident WHERE {table}_id = %s", (lease.item_id,)).fetchall()[0]
    assert len(message) == 2_000
    assert len(detail) == 20_000


# ---- a token that could not go on


def test_a_stuck_token_tries_again_and_its_incident_is_gone(committed_db: Connection) -> None:
    cases.deployed(committed_db, model("start -> a -> end", a=user(assignee=parse("${nobody}"))))
    case = cases.started(committed_db).instance_id
    token = rows.one(committed_db, "SELECT token_id FROM incident")
    assert cases.places(committed_db, case) == [("a", "failed")]

    assert retry_item(committed_db, "token", token, actor=OP, request_id="1") == ItemRetried(token, 1)
    assert rows.one(committed_db, "SELECT count(*) FROM incident WHERE token_id = %s", token) == 1  # failed again: one incident
    committed_db.execute("INSERT INTO variable (scope_id, name, type, value) SELECT id, 'nobody', 'string', '\"ada\"' FROM scope")
    assert retry_item(committed_db, "token", token, actor=OP, request_id="2") == ItemRetried(token, 1)
    assert cases.places(committed_db, case) == [("a", "waiting")]
    assert rows.one(committed_db, "SELECT count(*) FROM incident") == 0
    assert ("incident_resolved", "op") in rows.history(committed_db, token)

    assert retry_item(committed_db, "token", token, actor=OP, request_id="2") == ItemRetried(token, 1)
    late = retry_item(committed_db, "token", token, actor=ROOT, request_id="2")
    assert (late.refusal, late.by) == (Refusal.NOT_FAILED, "op")
    audit = "SELECT actor, action, object_kind, object_id, detail->>'attempts' FROM audit"
    assert committed_db.execute(audit).fetchall() == [("op", "retry", "token", str(token), "1")] * 2  # not for repeats and refusals


def test_a_retry_of_what_no_flow_leads_to_enters_it(committed_db: Connection) -> None:
    box = model("start -> box -> end", inside={"box": "a"}, box=ad_hoc(), a=user(assignee=parse("${nobody}")))
    cases.deployed(committed_db, box)
    case = cases.started(committed_db).instance_id
    token = rows.one(committed_db, "SELECT token_id FROM incident")
    assert retry_item(committed_db, "token", token, actor=OP, request_id="1") == ItemRetried(token, 1)
    assert cases.places(committed_db, case) == [("a", "failed"), ("box", "waiting")]
    again = rows.one(committed_db, "SELECT token_id FROM incident")
    committed_db.execute("INSERT INTO variable (scope_id, name, type, value) SELECT id, 'nobody', 'string', '\"ada\"' FROM scope")
    assert retry_item(committed_db, "token", again, actor=OP, request_id="2") == ItemRetried(again, 1)
    assert cases.places(committed_db, case) == [("a", "waiting"), ("box", "waiting")]
    late = retry_item(committed_db, "token", again, actor=ROOT, request_id="3")
    assert isinstance(late, Rejected)
    assert (late.refusal, late.by) == (Refusal.NOT_FAILED, "op")
    assert rows.one(committed_db, "SELECT count(*) FROM user_task WHERE status = 'claimed'") == 1


def test_R13_a_token_is_retried_by_operators_of_its_tenant_only(committed_db: Connection) -> None:
    cases.deployed(committed_db, model("start -> a -> end", a=user(assignee=parse("${nobody}"))))
    cases.started(committed_db)
    token = rows.one(committed_db, "SELECT token_id FROM incident")
    stranger = type(OP)("op", role="operator", tenant_id="other")
    assert retry_item(committed_db, "token", token, actor=ADA, request_id="1").refusal is Refusal.NOT_ALLOWED
    assert retry_item(committed_db, "token", token, actor=stranger, request_id="1").refusal is Refusal.NOT_FOUND
    assert retry_item(committed_db, "token", new_id(), actor=OP, request_id="1").refusal is Refusal.NOT_FOUND
