"""A case is suspended and goes on: what is held, what is refused and how, and what happens when it is large."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task
from engine.commands.jobs import complete_job
from engine.commands.leases import release
from engine.commands.outcome import (
    CaseShrunk,
    InstanceCancelled,
    InstanceResumed,
    InstanceSuspended,
    ItemDone,
    ItemReleased,
    ItemsHeld,
    Lease,
    Refusal,
    Rejected,
)
from engine.commands.retry import retry_item
from engine.commands.suspend import AT_ONCE, hold_step, resume_instance, suspend_instance
from engine.commands.tasks import claim, take_next, unclaim
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import JOB, acquire_deliveries, acquire_jobs, recover_expired
from engine.db.marks import move_watermarks
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, CY, OP, engage
from tests.commands.cases import acquired, deployed, kinds, lease_of, places, started, status, the_task
from tests.commands.test_cancel_bounded import large
from tests.conftest import Clock
from tests.core.models import call, catch, model, par, service, tells, user
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def suspend(conn: Connection, case: UUID, reason: str = "audit", **values: Any) -> Any:
    return suspend_instance(conn, case, actor=values.pop("actor", OP), reason=reason, **values)


def resume(conn: Connection, case: UUID, **values: Any) -> Any:
    return resume_instance(conn, case, actor=values.pop("actor", OP), **values)


def with_every_kind_of_work(conn: Connection) -> UUID:
    """A free job, a leased one, a failed one, an external task, a delivery; and a job of a process that it called."""
    case = rows.instance(conn)
    rows.job(conn, case)
    rows.job(conn, case, topic="slow", status="leased", lease_owner="w", lease_number=1, attempts=1,
             leased_at="2026-01-01", lease_expires_at="2126-01-01")  # fmt: skip
    rows.job(conn, case, topic="bad", status="failed", attempts=3)
    rows.external_task(conn, case)
    rows.delivery(conn, case)
    called = rows.instance(conn, root_id=case, parent_id=case)
    rows.job(conn, called)
    return case


def held(conn: Connection) -> list[tuple[str, list[str]]]:
    return conn.execute(
        "SELECT 'job ' || status, held FROM job UNION ALL SELECT 'external ' || status, held FROM external_task"
        " UNION ALL SELECT 'delivery ' || status, held FROM delivery ORDER BY 1"
    ).fetchall()


def due(conn: Connection) -> list[UUID]:
    found = acquire_jobs(conn, owner="w", capabilities=[("service", "score")], limit=50, lease_seconds=30, workers=1)
    return [item.item_id for item in found]


EACH = ["delivery available", "external available", "job available", "job available", "job failed", "job leased"]


def test_everything_that_a_case_has_to_do_is_held_and_freed_again_that_of_called_instances_too(conn: Connection) -> None:
    case, other = with_every_kind_of_work(conn), rows.job(conn)
    assert suspend(conn, case) == InstanceSuspended(case)
    assert columns(conn, "process_instance", case, "mark", "revision") == ("suspended", 1)
    conn.execute("DELETE FROM job WHERE id <> ALL (SELECT id FROM job WHERE root_id = %s) AND id <> %s", (case, other))
    assert due(conn) == [other]
    conn.execute("DELETE FROM job WHERE id = %s", (other,))
    assert held(conn) == [(each, ["suspended"]) for each in EACH]
    assert acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"]) == []
    assert acquire_deliveries(conn, owner="w", kinds=["http"], limit=5, lease_seconds=30, workers=1) == []

    assert resume(conn, case) == InstanceResumed(case)
    assert columns(conn, "process_instance", case, "mark", "revision") == (None, 2)
    assert held(conn) == [(each, []) for each in EACH]
    assert len(due(conn)) == 2
    assert len(acquire_deliveries(conn, owner="w", kinds=["http"], limit=5, lease_seconds=30, workers=1)) == 1


def test_another_reason_for_which_an_item_is_held_stays(conn: Connection) -> None:
    case = rows.instance(conn)
    job = rows.job(conn, case, held=["exclusive"])
    suspend(conn, case)
    assert columns(conn, "job", job, "held") == (["exclusive", "suspended"],)
    resume(conn, case)
    assert columns(conn, "job", job, "held") == (["exclusive"],)


def test_who_comes_meanwhile_hears_who_suspended_it_when_and_why(conn: Connection) -> None:
    deployed(
        conn,
        model("start -> fork -> a -> end", "fork -> b -> end", fork=par(), a=user(candidate_groups=(parse("billing"),)), b=service("work")),
    )
    case = started(conn).instance_id
    task, (lease,) = the_task(conn, "a"), acquired(conn)
    suspend(conn, case)
    at = one(conn, "SELECT suspended_at FROM suspension")
    before = everything(conn)
    refused = [
        claim(conn, task, actor=ADA, request_id=None),
        complete_job(conn, lease, variables={}),
        complete_task(conn, task, actor=ADA, variables={}, request_id="1"),
    ]
    for outcome in refused:
        assert isinstance(outcome, Rejected)
        assert (outcome.refusal, outcome.by, outcome.by_name, outcome.at) == (Refusal.INSTANCE_SUSPENDED, "op", "Op Erator", at)
        assert outcome.detail == "audit"
    nothing = take_next(conn, actor=ADA, request_id=None)
    assert isinstance(nothing, Rejected) and nothing.refusal is Refusal.NOTHING_FREE
    assert everything(conn) == before
    resume(conn, case)
    assert not isinstance(claim(conn, task, actor=ADA, request_id=None), Rejected)
    assert isinstance(complete_job(conn, lease, variables={}), ItemDone), "the lease was not lost"


def test_a_task_of_a_suspended_case_may_be_given_back(conn: Connection) -> None:
    deployed(conn, model("start -> a -> end", a=user(candidate_groups=(parse("billing"),))))
    case = started(conn).instance_id
    claim(conn, task := the_task(conn, "a"), actor=ADA, request_id=None)
    suspend(conn, case)
    assert not isinstance(unclaim(conn, task, actor=ADA, request_id=None), Rejected)


def test_an_external_worker_that_ends_its_task_meanwhile_hears_it_and_gives_the_task_back_unspent(conn: Connection) -> None:
    case = rows.instance(conn)
    rows.external_task(conn, case)
    [task] = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"])  # type: ignore[misc]
    suspend(conn, case)
    refused = complete_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, variables={})
    assert isinstance(refused, Rejected) and (refused.refusal, refused.by) == (Refusal.INSTANCE_SUSPENDED, "op")
    assert release(conn, Lease("external_task", task.id, task.lease_number, "w")) == ItemReleased(task.id)
    assert columns(conn, "external_task", task.id, "status", "attempts", "held") == ("available", 0, ["suspended"])


def test_R5_what_was_leased_just_before_comes_back_held_however_it_comes_back(conn: Connection, clock: Clock) -> None:
    case = rows.instance(conn)
    for _ in range(2):
        rows.job(conn, case)
    released, lost = [lease_of(i) for i in acquire_jobs(conn, owner="w", capabilities=[("service", "score")], limit=2,
                                                        lease_seconds=30, workers=1)]  # fmt: skip
    failed = rows.job(conn, case, status="failed", attempts=3)
    suspend(conn, case)
    release(conn, released, because=Refusal.INSTANCE_SUSPENDED, started=True)
    clock.advance(seconds=40)
    recover_expired(conn, limit=5)
    retry_item(conn, "job", failed, actor=OP)
    assert [columns(conn, "job", lease.item_id, "status", "attempts") for lease in (released, lost)] == [("available", 0), ("available", 1)]
    clock.advance(minutes=10)
    assert due(conn) == []
    resume(conn, case)
    assert len(due(conn)) == 3


def test_what_was_due_long_ago_is_found_at_once_though_the_watermark_has_passed_it(conn: Connection, clock: Clock) -> None:
    case = rows.instance(conn)
    job = rows.job(conn, case, overdue=7200)
    later = rows.job(conn, case, overdue=-7200)
    at = columns(conn, "job", later, "available_at")
    suspend(conn, case)
    move_watermarks(conn, JOB, [("service", "score")], sweep=True)
    clock.advance(minutes=30)
    move_watermarks(conn, JOB, [("service", "score")], sweep=False)
    assert one(conn, "SELECT at FROM watermark") > columns(conn, "job", job, "available_at")[0]
    resume(conn, case)
    assert due(conn) == [job]
    assert columns(conn, "job", later, "available_at") == at, "what lies ahead stays there"


def test_many_come_back_spread_over_seconds(conn: Connection) -> None:
    case = rows.instance(conn)
    token = rows.token(conn, case)
    for _ in range(110):
        rows.job(conn, case, token_id=token)
    suspend(conn, case)
    resume(conn, case)
    soon, late = conn.execute(
        "SELECT count(*) FILTER (WHERE available_at < baton_clock() + interval '1 second'), max(available_at) - baton_clock() FROM job"
    ).fetchone() or (0, None)
    assert soon < 60 and 2 < late.total_seconds() < 6


# ---- who may, and how often


def test_R13_only_operators_suspend_and_a_stranger_hears_nothing(conn: Connection) -> None:
    case = rows.instance(conn)
    before = everything(conn)
    for what in (suspend, resume):
        assert what(conn, case, actor=ADA, request_id="1") == Rejected(Refusal.NOT_ALLOWED)
        assert what(conn, case, actor=CY, request_id="2") == Rejected(Refusal.NOT_FOUND)
        assert what(conn, UUID(int=7)) == Rejected(Refusal.NOT_FOUND)
        assert what(conn, case, actor=replace(OP, tenant_id="other")) == Rejected(Refusal.NOT_FOUND)
        long = what(conn, case, reason="x" * 501) if what is suspend else None
        assert long is None or long.refusal is Refusal.INVALID
    assert everything(conn) == before


def test_R10_a_repeat_is_a_harmless_success_and_another_press_hears_who_did_it_and_when(conn: Connection) -> None:
    case = rows.instance(conn)
    assert suspend(conn, case, request_id="1") == InstanceSuspended(case)
    before = everything(conn)
    assert suspend(conn, case, request_id="1") == InstanceSuspended(case)
    late = suspend(conn, case, "another", request_id="2")
    assert (late.refusal, late.by, late.at) == (Refusal.ALREADY_SUSPENDED, "op", one(conn, "SELECT suspended_at FROM suspension"))
    assert everything(conn) == before
    assert resume(conn, case, request_id="3") == resume(conn, case, request_id="3") == InstanceResumed(case)
    before = everything(conn)
    late = resume(conn, case, request_id="4")
    at = one(conn, "SELECT at FROM history WHERE kind = 'instance_resumed'")
    assert (late.refusal, late.by, late.at) == (Refusal.NOT_SUSPENDED, "op", at)
    assert suspend(conn, case, request_id="1") == InstanceSuspended(case), "the answer to that press"
    assert everything(conn) == before


def test_it_stands_in_the_history_and_in_the_audit_with_the_reason(conn: Connection) -> None:
    case = rows.instance(conn)
    suspend(conn, case, "audit")
    resume(conn, case, reason="done")
    assert kinds(conn, case) == ["instance_suspended", "instance_resumed"]
    told = conn.execute("SELECT actor, data->>'reason', data->>'suspended_by' FROM history ORDER BY id").fetchall()
    assert told == [("op", "audit", None), ("op", "done", "op")]
    noted = conn.execute("SELECT actor, action, object_kind, object_id, reason FROM audit ORDER BY at").fetchall()
    assert noted == [("op", "suspend", "instance", str(case), "audit"), ("op", "resume", "instance", str(case), "done")]


def test_what_has_ended_is_being_cancelled_or_was_called_is_not_suspended(conn: Connection) -> None:
    deployed(conn, replace(model("start -> a -> end", a=user()), key="check"))
    deployed(conn, model("start -> c -> end", c=call("check")))
    case = started(conn).instance_id
    called = one(conn, "SELECT id FROM process_instance WHERE parent_id IS NOT NULL")
    refused = suspend(conn, called)
    assert (refused.refusal, refused.item_id) == (Refusal.CALLED_INSTANCE, case)
    cancel_instance(conn, case, actor=OP, reason="", request_id=None)
    assert suspend(conn, case).refusal is Refusal.INSTANCE_ENDED
    conn.execute("UPDATE process_instance SET mark = 'cancelling' WHERE id = %s", (other := rows.instance(conn),))
    assert [what(conn, other).refusal for what in (suspend, resume)] == [Refusal.INSTANCE_CANCELLING] * 2


# ---- a large case


def the_holder(conn: Connection, owner: str = "worker-1") -> Lease:
    [item] = acquire_jobs(conn, owner=owner, capabilities=[("hold", "")], limit=5, lease_seconds=30, workers=1)
    return lease_of(item)


def finish(conn: Connection, lease: Lease) -> list[int]:
    sizes = []
    while isinstance(outcome := hold_step(conn, lease), ItemsHeld):
        sizes.append(outcome.rows)
        assert len(sizes) < 100, "the steps do not come to an end"
    assert outcome == ItemDone(lease.item_id, lease.number)
    return sizes


def counts(conn: Connection) -> tuple[int, int]:
    """Items that are held for this reason, and those that are not."""
    row = conn.execute(
        "SELECT count(*) FILTER (WHERE held = '{suspended}'), count(*) FILTER (WHERE held = '{}')"
        " FROM (SELECT held FROM job WHERE kind <> 'hold' UNION ALL SELECT held FROM external_task) w"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_large_case_is_refused_at_once_and_held_in_bounded_steps_by_a_job(conn: Connection) -> None:
    case = large(conn, each=400)
    assert suspend(conn, case) == InstanceSuspended(case, finishing=True)
    assert columns(conn, "process_instance", case, "mark") == ("suspending",)
    assert counts(conn) == (AT_ONCE, 800 - AT_ONCE)
    assert claim(conn, one(conn, "SELECT id FROM user_task WHERE status = 'open' LIMIT 1"), actor=ADA, request_id=None).refusal is (  # type: ignore[union-attr]
        Refusal.INSTANCE_SUSPENDED
    )
    assert finish(conn, the_holder(conn)) == [AT_ONCE]
    assert columns(conn, "process_instance", case, "mark") == ("suspended",)
    assert counts(conn) == (800, 0)

    assert resume(conn, case) == InstanceResumed(case, finishing=True)
    assert counts(conn) == (800 - AT_ONCE, AT_ONCE)
    assert finish(conn, the_holder(conn)) == [AT_ONCE]
    assert counts(conn) == (0, 800)
    assert one(conn, "SELECT count(*) FROM job WHERE kind = 'hold'") == 0


def test_a_suspension_that_is_taken_back_before_it_is_complete_frees_what_it_held_and_its_job_ends(conn: Connection) -> None:
    case = large(conn, each=400)
    suspend(conn, case)
    holding = the_holder(conn)
    assert isinstance(hold_step(conn, holding, most=50), ItemsHeld)
    resume(conn, case)
    assert hold_step(conn, holding) == ItemDone(holding.item_id, holding.number)
    finish(conn, the_holder(conn))
    assert counts(conn) == (0, 800)
    assert columns(conn, "process_instance", case, "mark") == (None,)


def test_a_suspension_that_comes_again_while_items_are_being_freed_holds_them_all(conn: Connection) -> None:
    case = large(conn, each=400)
    suspend(conn, case)
    finish(conn, the_holder(conn))
    resume(conn, case)
    freeing = the_holder(conn)
    assert isinstance(hold_step(conn, freeing, most=50), ItemsHeld)
    assert suspend(conn, case) == InstanceSuspended(case, finishing=True)
    assert hold_step(conn, freeing) == ItemDone(freeing.item_id, freeing.number)
    finish(conn, the_holder(conn))
    assert counts(conn) == (800, 0)


def test_one_that_comes_again_and_is_faster_than_the_resumption_keeps_what_would_be_sent_too(conn: Connection) -> None:
    case = large(conn, each=400)
    delivery = rows.delivery(conn, case)
    suspend(conn, case)
    finish(conn, the_holder(conn))
    resume(conn, case)
    freeing = the_holder(conn)
    suspend(conn, case)
    finish(conn, the_holder(conn))
    assert hold_step(conn, freeing) == ItemDone(freeing.item_id, freeing.number)
    assert (counts(conn), columns(conn, "delivery", delivery, "held")) == ((800, 0), (["suspended"],))


def test_R4_a_step_under_a_lost_lease_holds_nothing(conn: Connection, clock: Clock) -> None:
    case = large(conn, each=400)
    suspend(conn, case)
    lost = the_holder(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = everything(conn)
    refused = hold_step(conn, lost)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before
    again = the_holder(conn, "worker-2")
    finish(conn, again)
    repeated = hold_step(conn, again)
    assert isinstance(repeated, ItemDone) and repeated.repeated


# ---- what outlives it


def cancelled(conn: Connection, case: UUID) -> None:
    assert cancel_instance(conn, case, actor=OP, reason="", request_id=None) == InstanceCancelled(case, finishing=True)
    [item] = acquire_jobs(conn, owner="w", capabilities=[("cancel", "")], limit=5, lease_seconds=30, workers=1)
    while isinstance(cancel_some(conn, lease_of(item)), CaseShrunk):
        pass
    assert status(conn, case) == "cancelled"


@pytest.mark.parametrize("freed_first", [True, False], ids=["freed before it ends", "freed after"])
def test_a_suspended_case_that_is_cancelled_still_sends_what_it_has_committed_to(conn: Connection, freed_first: bool) -> None:
    case = large(conn, each=2)
    rows.delivery(conn, case)
    suspend(conn, case)
    if freed_first:
        assert cancel_instance(conn, case, actor=OP, reason="", request_id="1") == InstanceCancelled(case, finishing=True)
        finish(conn, the_holder(conn))
        assert counts(conn) == (4, 1), "what is taken apart stays held; the job that does it is free"
    else:
        cancelled(conn, case)
        finish(conn, the_holder(conn))
    assert conn.execute("SELECT status, held FROM delivery").fetchall() == [("available", [])]
    assert one(conn, "SELECT count(*) FROM suspension") == 0


def test_a_message_thrown_to_who_is_suspended_waits_with_it_without_a_loop_and_is_had_when_it_goes_on(
    conn: Connection, clock: Clock
) -> None:
    receiver, lease = thrown_to_a_suspended_one(conn)
    assert publish_thrown(conn, lease) == ItemReleased(lease.item_id)
    assert publish_thrown(conn, lease) == ItemReleased(lease.item_id)  # asked again, as after an answer that was lost
    for _ in range(10):
        clock.advance(minutes=5)
        assert acquired(conn) == []
    assert columns(conn, "job", lease.item_id, "attempts", "held", "instance_id") == (0, ["suspended"], receiver)
    resume(conn, receiver)
    [again] = acquired(conn)
    assert isinstance(publish_thrown(conn, again), ItemDone)
    assert places(conn, receiver) == [("after", "waiting")]
    assert one(conn, "SELECT count(*) FROM job") == 0


def test_a_message_thrown_to_who_is_suspended_and_then_cancelled_looks_for_another(conn: Connection) -> None:
    receiver, lease = thrown_to_a_suspended_one(conn)
    publish_thrown(conn, lease)
    another = started(conn, "receiver", business_key="7").instance_id
    cancelled(conn, receiver)
    finish(conn, the_holder(conn))
    [again] = acquired(conn)
    assert isinstance(publish_thrown(conn, again), ItemDone)
    assert places(conn, another) == [("after", "waiting")]


def test_R4_a_message_thrown_under_a_lost_lease_does_not_wait(conn: Connection, clock: Clock) -> None:
    _, lease = thrown_to_a_suspended_one(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = everything(conn)
    refused = publish_thrown(conn, lease)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before


def thrown_to_a_suspended_one(conn: Connection) -> tuple[UUID, Lease]:
    """The receiver, and the leased job of the message."""
    deployed(conn, replace(model("start -> wait -> after -> end", wait=catch(on="DONE"), after=user()), key="receiver"))
    deployed(conn, replace(model("start -> tell -> end", tell=tells("DONE")), key="thrower"))
    receiver = started(conn, "receiver", business_key="7").instance_id
    started(conn, "thrower", business_key="7")
    suspend(conn, receiver)
    [lease] = acquired(conn)
    return receiver, lease
