"""A thrown signal on its way: bounded steps, nobody twice, nobody missed, whoever dies and whatever the lease says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from engine.commands import signals, thrown_messages
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.outcome import (
    Actor,
    InstanceStarted,
    ItemDone,
    ItemReleased,
    Lease,
    Refusal,
    Rejected,
    SignalSpread,
    SignalThrown,
    TaskCompleted,
)
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.commands.thrown_messages import publish_thrown
from engine.core import throws as core_throws
from engine.db.acquire import recover_expired
from engine.db.definitions import DefinitionRefused, keep
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task, variables
from tests.commands.test_delete_version import signal_start
from tests.commands.test_deploy import put
from tests.conftest import Clock
from tests.core.models import boundary, catch, model, script, tells, user
from tests.core.models import signals as throws

Connection = psycopg.Connection[Any]
FORK = ("start -> par", "par -> wait -> after -> end", "par -> work -> go -> end2")


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def listeners(conn: Connection, many: int, **values: Any) -> list[InstanceStarted]:
    deployed(conn, model("start -> wait -> after -> end", wait=catch(signal="GO"), after=user()))
    return [started(conn, **values) for _ in range(many)]


def go(conn: Connection, name: str = "GO", *, actor: Actor = OP, **sent: Any) -> SignalThrown:
    outcome = broadcast_signal(conn, name, actor=actor, variables=sent)
    assert isinstance(outcome, SignalThrown), outcome
    return outcome


def on_its_way(conn: Connection) -> Lease:
    """The one throw that is due, leased."""
    (lease,) = acquired(conn)
    return lease


def spread(conn: Connection, lease: Lease) -> list[int]:
    """All steps of it: how many got their delivery in each; the last is None."""
    steps = []
    while isinstance(step := spread_signal(conn, lease), SignalSpread):
        steps.append(step.rows)
    assert isinstance(step, ItemDone), step
    return steps


def deliveries(conn: Connection) -> int:
    return int(rows.one(conn, "SELECT count(*) FROM job WHERE kind = 'signal'"))


def receive_all(conn: Connection) -> None:
    while leases := acquired(conn, limit=100):
        for lease in leases:
            assert isinstance(receive_signal(conn, lease), ItemDone)


def test_a_signal_is_spread_in_bounded_steps_and_reaches_everybody_once(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "STEP_RECEIVERS", 3)
    cases = listeners(conn, 7)
    go(conn, x=1)
    assert spread(conn, on_its_way(conn)) == [3, 3]
    receive_all(conn)
    for case in cases:
        assert places(conn, case.instance_id) == [("after", "waiting")]
        assert kinds(conn, case.instance_id).count("signal_caught") == 1
        assert variables(conn, case.instance_id) == {"x": 1}
    assert rows.one(conn, "SELECT count(*) FROM job") == rows.one(conn, "SELECT count(*) FROM subscription") == 0
    assert rows.one(conn, "SELECT data->>'reached' FROM history WHERE kind = 'job_completed' AND data->>'signal' = 'GO'") == "7"


def test_a_worker_that_dies_between_two_steps_leaves_the_rest_to_another_and_nobody_has_it_twice(
    conn: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "STEP_RECEIVERS", 2)
    cases = listeners(conn, 5)
    go(conn)
    lost = on_its_way(conn)
    assert spread_signal(conn, lost) == SignalSpread(lost.item_id, 2)
    clock.advance(seconds=31)
    assert len(recover_expired(conn, limit=5)) == 1
    late = started(conn)
    fresh = next(lease for lease in acquired(conn, owner="worker-2") if lease.item_id == lost.item_id)
    assert spread(conn, fresh) == [2]
    refused = spread_signal(conn, lost)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert deliveries(conn) == 5
    assert rows.one(conn, "SELECT count(DISTINCT subscription_id) FROM job WHERE kind = 'signal'") == 5
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    clock.advance(seconds=31)
    receive_all(conn)
    assert [places(conn, case.instance_id)[0][0] for case in cases] == ["after"] * 5
    assert places(conn, late.instance_id) == [("wait", "waiting")]


def test_R6_a_spread_that_committed_and_was_not_heard_of_is_answered_as_done(conn: Connection) -> None:
    listeners(conn, 1)
    go(conn)
    lease = on_its_way(conn)
    assert spread(conn, lease) == []
    again = spread_signal(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated
    assert deliveries(conn) == 1


def test_start_events_and_cases_are_reached_in_the_same_steps(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "STEP_RECEIVERS", 2)
    for key in ("a", "b", "c"):
        put(conn, signal_start("GO").replace(b'id="p"', f'id="{key}"'.encode()))
    listeners(conn, 2)
    go(conn, n=7)
    assert spread(conn, on_its_way(conn)) == [2, 2]
    receive_all(conn)
    started_now = conn.execute(
        "SELECT d.key, i.final_variables->'n'->>'value' FROM process_instance i JOIN process_definition d ON d.id = i.definition_id"
        " WHERE i.started_by = 'engine' ORDER BY 1"
    ).fetchall()
    assert started_now == [("a", "7"), ("b", "7"), ("c", "7")]


def test_a_large_payload_is_spread_in_smaller_steps(conn: Connection) -> None:
    listeners(conn, 3)
    go(conn, text="x" * 2_500_000)
    assert spread(conn, on_its_way(conn)) == [1, 1, 1]


def test_a_signal_reaches_its_own_tenant_only(conn: Connection) -> None:
    listeners(conn, 1)
    go(conn, actor=replace(OP, tenant_id="other"))
    assert spread(conn, on_its_way(conn)) == []
    assert deliveries(conn) == 0


def test_a_message_of_the_same_name_is_none_of_its_business_nor_the_other_way_round(conn: Connection) -> None:
    listeners(conn, 1)
    deployed(conn, replace(model("start -> wait -> end", wait=catch(on="GO")), key="by_message"))
    waits = started(conn, "by_message")
    go(conn)
    spread(conn, on_its_way(conn))
    receive_all(conn)
    assert places(conn, waits.instance_id) == [("wait", "waiting")]
    stored = Jsonb({})
    expires = rows.one(conn, "SELECT baton_clock() + interval '1 hour'")
    rows.insert(conn, "message", name="GO", correlation_key="", variables=stored, published_by="op", expires_at=expires)
    case = started(conn)
    assert places(conn, case.instance_id) == [("wait", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM job") == 0, "a stored message is not for who waits for a signal"


def test_a_subscription_that_was_restored_from_another_server_still_counts_as_open(conn: Connection) -> None:
    """Its transaction number is of that server, and may lie far ahead of ours."""
    (case,) = listeners(conn, 1)
    conn.execute("UPDATE subscription SET xid = '999999999999'")
    go(conn)
    spread(conn, on_its_way(conn))
    receive_all(conn)
    assert places(conn, case.instance_id) == [("after", "waiting")]


def test_one_who_is_interrupted_before_it_arrives_has_it_not(conn: Connection) -> None:
    (case,) = listeners(conn, 1)
    go(conn)
    spread(conn, on_its_way(conn))
    (lease,) = acquired(conn)
    cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id=None)
    assert isinstance(receive_signal(conn, lease), Rejected | ItemDone)
    assert status(conn, case.instance_id) == "cancelled"


def test_a_subscription_that_is_gone_ends_the_delivery_quietly(conn: Connection) -> None:
    (case,) = listeners(conn, 1)
    go(conn)
    go(conn)
    for lease in acquired(conn):
        assert isinstance(spread_signal(conn, lease), ItemDone)
    receive_all(conn)
    assert kinds(conn, case.instance_id).count("signal_caught") == 1
    quiet = rows.one(conn, "SELECT data->>'outcome' FROM history WHERE kind = 'job_completed' AND data ? 'outcome'")
    assert quiet == "nobody waits"


def test_a_boundary_event_that_does_not_interrupt_has_every_signal_of_a_row(conn: Connection) -> None:
    deployed(conn, model("start -> a -> end", "note -> b -> end2", a=user(), b=user(), note=boundary("a", signal="GO", interrupting=False)))
    case = started(conn)
    for _ in range(2):
        go(conn)
        spread(conn, on_its_way(conn))
        receive_all(conn)
    assert sorted(places(conn, case.instance_id)) == [("a", "waiting"), ("b", "waiting"), ("b", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM subscription") == 1


def test_a_case_that_throws_serves_itself_at_once_and_is_left_out_later(conn: Connection) -> None:
    listeners(conn, 1)
    deployed(conn, replace(model(*FORK, **parts()), key="both"))
    case = started(conn, "both")
    assert sorted(places(conn, case.instance_id)) == [("after", "waiting")]
    assert kinds(conn, case.instance_id).count("signal_caught") == 1
    spread(conn, on_its_way(conn))
    assert deliveries(conn) == 1, "the other case alone"


def parts() -> dict[str, Any]:
    return {"wait": catch(signal="GO"), "after": user(), "work": script("${1}", "x"), "go": throws("GO")}


def test_of_very_many_in_the_case_that_throws_each_has_it_once_in_the_step_or_by_a_job(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_throws, "AT_ONCE", 2)
    waits = {f"w{n}": catch(signal="GO") for n in range(5)}
    flows = [f"par -> {name} -> t{name} -> end{name}" for name in waits]
    ada = user(assignee=parse("${'ada'}"))
    deployed(conn, model("start -> par", *flows, "par -> a -> go -> end9", a=ada, go=throws("GO"), **waits))
    case = started(conn)
    assert isinstance(complete_task(conn, the_task(conn, "a"), actor=ADA, variables={}, request_id=None), TaskCompleted)
    assert kinds(conn, case.instance_id).count("signal_caught") == 2
    spread(conn, on_its_way(conn))
    assert deliveries(conn) == 3
    receive_all(conn)
    assert places(conn, case.instance_id) == [(f"tw{n}", "waiting") for n in range(5)]
    assert kinds(conn, case.instance_id).count("signal_caught") == 5


def test_what_was_thrown_outlives_the_cancellation_of_who_threw_it(conn: Connection) -> None:
    (case,) = listeners(conn, 1)
    deployed(conn, replace(model("start -> go -> a -> end", go=throws("GO"), a=user()), key="thrower"))
    thrower = started(conn, "thrower")
    cancel_instance(conn, thrower.instance_id, actor=OP, reason="", request_id=None)
    spread(conn, on_its_way(conn))
    receive_all(conn)
    assert places(conn, case.instance_id) == [("after", "waiting")]


def test_a_suspended_case_has_its_signal_when_it_goes_on(conn: Connection) -> None:
    (case,) = listeners(conn, 1)
    go(conn)
    throw = on_its_way(conn)
    suspend_instance(conn, case.instance_id, actor=OP)
    spread(conn, throw)
    (lease,) = acquired(conn)
    assert receive_signal(conn, lease) == ItemReleased(lease.item_id)
    assert rows.columns(conn, "job", lease.item_id, "status", "attempts", "held") == ("available", 0, ["suspended"])
    assert acquired(conn) == [], "it waits without a loop"
    resume_instance(conn, case.instance_id, actor=OP)
    (lease,) = acquired(conn)
    assert isinstance(receive_signal(conn, lease), ItemDone)
    assert places(conn, case.instance_id) == [("after", "waiting")]


def test_a_case_that_is_being_cancelled_gets_no_job_that_nobody_would_take(conn: Connection) -> None:
    listeners(conn, 2)
    go(conn)
    conn.execute("UPDATE process_instance SET mark = 'cancelling' WHERE id = (SELECT min(id::text)::uuid FROM process_instance)")
    spread(conn, on_its_way(conn))
    assert deliveries(conn) == 1
    assert rows.one(conn, "SELECT held FROM job") == []


def test_R4_a_delivery_under_a_lost_lease_brings_nothing(conn: Connection, clock: Clock) -> None:
    (case,) = listeners(conn, 1)
    go(conn)
    spread(conn, on_its_way(conn))
    (lease,) = acquired(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = rows.everything(conn)
    refused = receive_signal(conn, lease)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert rows.everything(conn) == before
    assert places(conn, case.instance_id) == [("wait", "waiting")]


def test_R6_a_delivery_that_landed_is_answered_as_done(conn: Connection) -> None:
    listeners(conn, 1)
    go(conn)
    spread(conn, on_its_way(conn))
    (lease,) = acquired(conn)
    receive_signal(conn, lease)
    again = receive_signal(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated


def test_a_start_of_a_suspended_version_waits_and_one_that_newer_rules_refuse_is_an_incident(conn: Connection) -> None:
    definition: UUID = put(conn, signal_start("GO")).definitions[0].id
    go(conn)
    spread(conn, on_its_way(conn))
    (lease,) = acquired(conn)
    suspend_definition(conn, definition, actor=OP)
    assert receive_signal(conn, lease) == ItemReleased(lease.item_id)
    assert receive_signal(conn, lease) == ItemReleased(lease.item_id)  # asked again, as after an answer that was lost
    assert rows.columns(conn, "job", lease.item_id, "status", "attempts", "held") == ("available", 0, ["suspended"])
    assert acquired(conn) == []
    resume_definition(conn, definition, actor=OP)
    (lease,) = acquired(conn)
    keep(definition, DefinitionRefused("p version 1", ()))
    receive_signal(conn, lease)
    assert rows.one(conn, "SELECT kind FROM incident") == "unsupported"


def test_R10_the_same_press_twice_throws_once_and_invalid_ones_throw_nothing(conn: Connection) -> None:
    first = broadcast_signal(conn, "GO", actor=OP, variables={"a": 1}, request_id="1")
    assert broadcast_signal(conn, "GO", actor=OP, variables={"a": 1}, request_id="1") == first
    assert rows.one(conn, "SELECT count(*) FROM job") == 1
    for name, sent in (("", {}), ("a\x00", {}), ("x" * 256, {}), ("GO", {"": 1})):
        refused = broadcast_signal(conn, name, actor=OP, variables=sent)
        assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID
    nobody = broadcast_signal(conn, "GO", actor=ADA, variables={})
    assert isinstance(nobody, Rejected) and nobody.refusal is Refusal.NOT_ALLOWED
    assert rows.one(conn, "SELECT count(*) FROM job") == 1


# ---- messages that cases throw


def told(conn: Connection, **values: Any) -> Lease:
    deployed(conn, replace(model("start -> tell -> end", tell=tells("PAID", **values)), key="teller"))
    started(conn, "teller", business_key="42", variables={"n": 5})
    (lease,) = acquired(conn)
    return lease


def waiting(conn: Connection) -> InstanceStarted:
    deployed(conn, model("start -> wait -> after -> end", wait=catch(on="PAID"), after=user()))
    return started(conn, business_key="42")


def test_a_thrown_message_goes_to_the_one_who_waits_and_the_job_ends_with_it(conn: Connection) -> None:
    case = waiting(conn)
    lease = told(conn, amount="${n}")
    assert publish_thrown(conn, lease) == ItemDone(lease.item_id, lease.number, case.instance_id)
    assert places(conn, case.instance_id) == [("after", "waiting")] and variables(conn, case.instance_id) == {"amount": 5}
    assert rows.one(conn, "SELECT count(*) FROM job") == rows.one(conn, "SELECT count(*) FROM message") == 0
    again = publish_thrown(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated


def test_R4_a_thrown_message_under_a_lost_lease_is_not_published(conn: Connection, clock: Clock) -> None:
    waiting(conn)
    lease = told(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = rows.everything(conn)
    refused = publish_thrown(conn, lease)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert rows.everything(conn) == before


@pytest.mark.parametrize("what", ["signal", "message"])
def test_R4_a_throw_that_another_worker_has_leased_again_is_left_to_it(conn: Connection, clock: Clock, what: str) -> None:
    go_on: Any = spread_signal if what == "signal" else publish_thrown
    if what == "signal":
        listeners(conn, 2)
        go(conn)
    stale = on_its_way(conn) if what == "signal" else told(conn, seconds=60)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    clock.advance(seconds=1)
    (holds,) = acquired(conn, owner="worker-2")
    before = rows.everything(conn)
    refused = go_on(conn, stale)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert rows.everything(conn) == before
    assert isinstance(go_on(conn, holds), ItemDone)


def test_R4_a_lease_that_is_lost_between_the_look_and_the_reception_publishes_nothing(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = waiting(conn)
    lease = told(conn)
    look = thrown_messages._look_or_store

    def lose_it(c: Connection, of: Lease) -> Any:
        found = look(c, of)
        conn.execute("UPDATE job SET lease_number = lease_number + 1")
        return found

    monkeypatch.setattr(thrown_messages, "_look_or_store", lose_it)
    refused = publish_thrown(conn, lease)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert places(conn, case.instance_id) == [("wait", "waiting")]


@pytest.mark.parametrize(("seconds", "kept"), [(60, 1), (0, 0)])
def test_a_thrown_message_for_nobody_is_kept_as_long_as_the_model_says(conn: Connection, seconds: float, kept: int) -> None:
    lease = told(conn, seconds=seconds)
    assert publish_thrown(conn, lease) == ItemDone(lease.item_id, lease.number)
    assert rows.one(conn, "SELECT count(*) FROM message") == kept
    again = publish_thrown(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated
    assert rows.one(conn, "SELECT count(*) FROM message") == kept
