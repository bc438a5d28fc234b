"""How an outbox delivery ends: taken, failed, skipped; sent again as a new one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from engine.commands.deliveries import delivered, delivery_failed, replay_delivery, skip_delivery
from engine.commands.outcome import ItemDone, ItemFailed, ItemRetried, Lease, Refusal, Rejected
from engine.db.acquire import recover_expired
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, OP
from tests.commands.test_leases import leased
from tests.conftest import Clock

Connection = psycopg.Connection[Any]


def test_a_delivery_that_was_taken_is_completed_and_keeps_the_answer(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    done = delivered(committed_db, lease, response={"status": 201, "body": "thanks"})
    assert isinstance(done, ItemDone)
    found = rows.columns(committed_db, "delivery", lease.item_id, "status", "response", "lease_owner", "ended_at IS NOT NULL")
    assert found == ("completed", {"status": 201, "body": "thanks"}, None, True)
    data = rows.one(committed_db, "SELECT data FROM history WHERE kind = 'delivery_completed'")
    assert (data["lease_number"], data["attempt"], data["owner"], data["response"]) == (1, 1, "w1", {"status": 201})


def test_R6_the_same_completion_again_is_told_that_it_landed(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    delivered(committed_db, lease, response={})
    before = rows.everything(committed_db)
    again = delivered(committed_db, lease, response={})
    assert isinstance(again, ItemDone)
    assert again.repeated
    assert rows.everything(committed_db) == before


def test_R4_S28_whoever_lost_the_lease_neither_completes_nor_fails_nor_renews(committed_db: Connection, clock: Clock) -> None:
    late = leased(committed_db, "delivery")
    clock.advance(seconds=31)
    recover_expired(committed_db, limit=9)
    before = rows.everything(committed_db)
    assert delivered(committed_db, late, response={}).refusal is Refusal.LEASE_LOST
    assert delivery_failed(committed_db, late, error="x").refusal is Refusal.LEASE_LOST
    assert delivered(committed_db, Lease("delivery", new_id(), 1, "w1"), response={}).refusal is Refusal.LEASE_LOST
    assert rows.everything(committed_db) == before
    assert rows.one(committed_db, "SELECT count(*) FROM refusal WHERE reason = 'lease_lost'") == 3


def test_R4_a_completion_after_expiry_counts_while_nobody_recovered_it(committed_db: Connection, clock: Clock) -> None:
    lease = leased(committed_db, "delivery")
    clock.advance(seconds=3600)
    assert isinstance(delivered(committed_db, lease, response={}), ItemDone)


def test_a_failed_delivery_waits_as_long_as_the_other_side_asked_for(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    failed = delivery_failed(committed_db, lease, error="answered 503", retry_in=600)
    assert isinstance(failed, ItemFailed)
    assert (failed.status, failed.attempts, failed.incident_id) == ("available", 1, None)
    wait = rows.one(committed_db, "SELECT available_at - baton_now() FROM delivery")
    assert timedelta(seconds=599) < wait < timedelta(seconds=661)
    assert delivery_failed(committed_db, lease, error="answered 503", retry_in=600) == failed


def test_a_final_failure_is_an_incident_at_once_and_a_repeat_opens_no_second(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    failed = delivery_failed(committed_db, lease, error="answered 400", final=True)
    assert (failed.status, failed.available_at) == ("failed", None)
    assert rows.one(committed_db, "SELECT id FROM incident WHERE delivery_id = %s", lease.item_id) == failed.incident_id
    assert delivery_failed(committed_db, lease, error="answered 400", final=True) == failed
    assert rows.one(committed_db, "SELECT count(*) FROM incident") == 1


def test_skipping_gives_up_what_is_free_or_failed_and_closes_the_incident(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    leased_now = skip_delivery(committed_db, lease.item_id, actor=OP, reason="sent by hand", request_id="1")
    assert (leased_now.refusal, leased_now.detail) == (Refusal.NOT_FAILED, "the delivery is leased")
    delivery_failed(committed_db, lease, error="answered 400", final=True)
    assert isinstance(skip_delivery(committed_db, lease.item_id, actor=OP, reason="sent by hand", request_id="2"), ItemDone)
    assert rows.columns(committed_db, "delivery", lease.item_id, "status", "ended_at IS NOT NULL") == ("skipped", True)
    assert rows.one(committed_db, "SELECT count(*) FROM incident") == 0
    kinds = [kind for kind, _ in rows.history(committed_db, lease.item_id)]
    assert kinds == ["delivery_failed", "incident_opened", "delivery_skipped", "incident_resolved"]
    assert rows.one(committed_db, "SELECT actor || ' ' || action || ' ' || reason FROM audit") == "op skip sent by hand"

    assert isinstance(skip_delivery(committed_db, lease.item_id, actor=OP, reason="sent by hand", request_id="2"), ItemDone)
    second = skip_delivery(committed_db, lease.item_id, actor=OP, reason="sent by hand", request_id="3")
    assert (second.refusal, second.by) == (Refusal.NOT_FAILED, "op")


def test_sending_again_makes_a_new_delivery_of_what_ended(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery", request='{"url": "http://stock/"}')
    assert replay_delivery(committed_db, lease.item_id, actor=OP, reason="", request_id="1").refusal is Refusal.NOT_FAILED
    delivered(committed_db, lease, response={})
    again = replay_delivery(committed_db, lease.item_id, actor=OP, reason="lost over there", request_id="2")
    assert isinstance(again, ItemRetried)
    assert again.item_id != lease.item_id
    found = rows.columns(committed_db, "delivery", again.item_id, "status", "request", "attempts", "lease_number", "response")
    assert found == ("available", {"url": "http://stock/"}, 0, 0, None)
    assert replay_delivery(committed_db, lease.item_id, actor=OP, reason="lost over there", request_id="2").item_id == again.item_id
    assert rows.one(committed_db, "SELECT count(*) FROM delivery") == 2


def test_R13_only_operators_skip_and_send_again(committed_db: Connection) -> None:
    lease = leased(committed_db, "delivery")
    for press in (skip_delivery, replay_delivery):
        assert press(committed_db, lease.item_id, actor=ADA, reason="", request_id="1") == Rejected(Refusal.NOT_ALLOWED)
        assert press(committed_db, new_id(), actor=OP, reason="", request_id="1") == Rejected(Refusal.NOT_FOUND)
