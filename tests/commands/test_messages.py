"""Publishing: who waits receives, in one documented order; else stored with an exact time to live; else refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from engine.commands.deliver_message import deliver_message
from engine.commands.messages import publish_message
from engine.commands.outcome import ItemDone, MessagePublished, Refusal, Rejected
from tests import rows
from tests.cast import ADA, OP
from tests.commands import cases
from tests.conftest import Clock
from tests.core.models import catch, model, start, user

Connection = psycopg.Connection[Any]
WAITS = model("start -> wait -> next -> end", wait=catch(on="ANSWER"), next=user())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    cases.deployed(committed_db, WAITS)
    return committed_db


def publish(conn: Connection, key: Any = "42", *, name: str = "ANSWER", ttl: float | None = None, **more: Any) -> Any:
    values: dict[str, Any] = {"actor": OP, "variables": {}, **more}
    return publish_message(conn, name, correlation_key=key, time_to_live_seconds=ttl, **values)


def test_a_waiting_instance_receives_the_message_with_its_variables(conn: Connection) -> None:
    case = cases.started(conn, business_key="42")
    outcome = publish(conn, variables={"yes": True})
    assert (outcome.outcome, outcome.instance_id, outcome.started) == ("correlated", case.instance_id, False)
    assert cases.places(conn, case.instance_id) == [("next", "waiting")]
    assert cases.variables(conn, case.instance_id) == {"yes": True}
    assert rows.one(conn, "SELECT count(*) FROM subscription") == 0
    actor, data = conn.execute("SELECT actor, data FROM history WHERE kind = 'message_correlated'").fetchall()[0]
    assert (actor, data["message"], data["key"], data["message_id"]) == ("op", "ANSWER", "42", str(outcome.message_id))


@pytest.mark.parametrize("key", [42, "42", 42.0])
def test_S25_keys_are_compared_as_text(conn: Connection, key: Any) -> None:
    cases.started(conn, business_key="42")
    assert publish(conn, key).outcome == "correlated"


def test_S6_nobody_waits_and_no_time_to_live_is_refused_and_changes_nothing(conn: Connection) -> None:
    cases.started(conn, business_key="42")
    before = rows.everything(conn)
    for refused in (publish(conn, "43"), publish(conn, name="OTHER"), publish(conn, "43", ttl=0)):
        assert refused.refusal is Refusal.NO_SUBSCRIPTION
    assert rows.everything(conn) == before


def test_S25_of_two_that_wait_the_older_subscription_receives(conn: Connection) -> None:
    first, second = (cases.started(conn, business_key="42").instance_id for _ in range(2))
    assert publish(conn).instance_id == first
    assert publish(conn).instance_id == second
    assert publish(conn).refusal is Refusal.NO_SUBSCRIPTION


def test_a_stored_message_is_delivered_to_who_subscribes_within_its_time(conn: Connection, clock: Clock) -> None:
    stored = publish(conn, variables={"yes": True}, ttl=10)
    assert stored.outcome == "stored"
    assert rows.history(conn, stored.message_id) == [("message_stored", "op")]
    clock.advance(seconds=8)
    case = cases.started(conn, business_key="42")
    [lease] = cases.acquired(conn)
    assert isinstance(deliver_message(conn, lease), ItemDone)
    assert cases.places(conn, case.instance_id) == [("next", "waiting")]
    assert cases.variables(conn, case.instance_id) == {"yes": True}
    assert rows.one(conn, "SELECT count(*) FROM message") == 0


def test_S25_an_expired_message_is_not_used_though_nobody_has_deleted_it(conn: Connection, clock: Clock) -> None:
    publish(conn, ttl=10)
    clock.advance(seconds=12)
    case = cases.started(conn, business_key="42")
    assert rows.one(conn, "SELECT count(*) FROM message") == 1
    assert cases.acquired(conn) == []
    assert cases.places(conn, case.instance_id) == [("wait", "waiting")]


def test_S25_a_message_that_expires_between_the_look_and_its_delivery_is_not_used(conn: Connection, clock: Clock) -> None:
    publish(conn, ttl=10)
    case = cases.started(conn, business_key="42")
    [lease] = cases.acquired(conn)
    clock.advance(seconds=12)
    deliver_message(conn, lease)
    assert cases.places(conn, case.instance_id) == [("wait", "waiting")]


def test_a_waiting_instance_wins_over_a_start_event_and_the_key_becomes_the_business_key(committed_db: Connection) -> None:
    cases.deployed(committed_db, WAITS)
    waiting = cases.started(committed_db, business_key="42")
    by_message = replace(model("go -> end", go=start(message=catch(on="ANSWER").config.message)), key="by_message")
    definition = cases.deployed(committed_db, by_message, has_none_start=False)
    rows.insert(
        committed_db, "subscription", kind="start", message_name="ANSWER", definition_id=definition, element_id="go", created_at="-infinity"
    )
    assert publish(committed_db).instance_id == waiting.instance_id

    begun = publish(committed_db, "43")
    assert begun.started
    assert rows.columns(committed_db, "process_instance", begun.instance_id, "business_key", "started_by") == ("43", "op")

    committed_db.execute("UPDATE process_definition SET status = 'suspended' WHERE key = 'by_message'")
    refused = publish(committed_db, "44", ttl=60)
    assert (refused.refusal, refused.item_id) == (Refusal.DEFINITION_SUSPENDED, definition)


def test_R10_the_same_request_again_correlates_nothing_more(conn: Connection) -> None:
    first, second = (cases.started(conn, business_key="42") for _ in range(2))
    done = publish(conn, request_id="1")
    assert publish(conn, request_id="1") == done
    assert cases.places(conn, second.instance_id) == [("wait", "waiting")]
    assert publish(conn, request_id="2").instance_id == second.instance_id
    assert publish(conn, request_id="1") == done
    assert first.instance_id == done.instance_id


def test_R10_the_same_request_again_stores_nothing_more_and_a_refusal_stays_one(conn: Connection) -> None:
    done = publish(conn, ttl=60, request_id="1")
    assert publish(conn, ttl=60, request_id="1") == done
    assert rows.one(conn, "SELECT count(*) FROM message") == 1
    refused = publish(conn, "43", request_id="2")
    cases.started(conn, business_key="43")
    assert publish(conn, "43", request_id="2") == refused
    assert publish(conn, "43", request_id="3").outcome == "correlated"


def test_a_case_that_is_being_cancelled_receives_nothing_and_a_suspended_one_refuses_what_came(conn: Connection) -> None:
    case = cases.started(conn, business_key="42")
    conn.execute("UPDATE process_instance SET mark = 'cancelling'")
    assert publish(conn).refusal is Refusal.NO_SUBSCRIPTION
    for mark in ("suspending", "suspended"):
        conn.execute("UPDATE process_instance SET mark = %s", (mark,))
        assert publish(conn, ttl=60).refusal is Refusal.INSTANCE_SUSPENDED
    conn.execute("UPDATE process_instance SET mark = NULL")
    assert publish(conn).instance_id == case.instance_id


def test_what_cannot_be_published_is_invalid_and_clerks_may_not(conn: Connection) -> None:
    assert publish(conn, actor=ADA) == Rejected(Refusal.NOT_ALLOWED)
    for wrong, field in [
        ({"name": " "}, "name"),
        ({"name": "a\x1db"}, "name"),
        ({"key": "x" * 256}, "correlation_key"),
        ({"ttl": -1}, "time_to_live_seconds"),
        ({"variables": {"": 1}}, "variables."),
    ]:
        values: dict[str, Any] = dict(wrong)
        refused = publish(conn, values.pop("key", "42"), request_id="1", **values)
        assert refused.refusal is Refusal.INVALID
        assert [p.field for p in refused.problems] == [field]
    assert rows.one(conn, "SELECT count(*) FROM request") == 0


def test_another_tenant_neither_hears_nor_answers(conn: Connection) -> None:
    cases.started(conn, business_key="42")
    stranger = type(OP)("op", role="operator", tenant_id="other")
    assert publish(conn, actor=stranger).refusal is Refusal.NO_SUBSCRIPTION
    assert isinstance(publish(conn, actor=stranger, ttl=60), MessagePublished)
    cases.started(conn, business_key="42")
    assert cases.acquired(conn) == []
