"""How jobs end: completed, failed, thrown, fired."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.jobs import complete_job, fail_job, fire_timer, throw_job_error
from engine.commands.outcome import ItemDone, ItemFailed, Lease, Refusal, Rejected
from engine.commands.retry import retry_item
from engine.commands.tasks import claim
from engine.db.acquire import recover_expired
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task, variables
from tests.conftest import Clock
from tests.core.models import boundary, catch, first_event, model, par, service, timer, user
from tests.rows import columns, everything, history, one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def scoring(conn: psycopg.Connection, **config: object) -> None:
    deployed(conn, model("start -> score -> check -> end", score=service("work", **config), check=user()))


def leased(conn: psycopg.Connection, **config: object) -> tuple:
    scoring(conn, **config)
    case = started(conn)
    (lease,) = acquired(conn)
    return case, lease


def test_R4_completing_under_the_lease_moves_the_case_and_deletes_the_job(conn: psycopg.Connection) -> None:
    case, lease = leased(conn)

    done = complete_job(conn, lease, variables={"score": 7})

    assert done == ItemDone(lease.item_id, lease.number, case.instance_id)
    assert places(conn, case.instance_id) == [("check", "waiting")]
    assert variables(conn, case.instance_id) == {"score": 7}
    assert one(conn, "SELECT count(*) FROM job") == 0
    data = one(conn, "SELECT data FROM history WHERE kind = 'job_completed' AND item_id = %s", lease.item_id)
    assert (data["lease_number"], data["attempt"], data["owner"]) == (lease.number, 1, "worker-1")


def test_R6_a_replayed_completion_is_told_that_it_landed_and_moves_nothing(conn: psycopg.Connection) -> None:
    case, lease = leased(conn)
    complete_job(conn, lease, variables={"score": 7})
    before = everything(conn)

    assert complete_job(conn, lease, variables={"score": 7}) == ItemDone(lease.item_id, lease.number, case.instance_id, repeated=True)
    assert everything(conn) == before
    assert one(conn, "SELECT count(*) FROM refusal") == 0


def test_R4_a_worker_that_lost_its_lease_cannot_finish_the_job(conn: psycopg.Connection, clock: Clock) -> None:
    _, lease = leased(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    clock.advance(seconds=5)
    (fresh,) = acquired(conn, owner="worker-2")
    before = everything(conn)

    for late in (
        complete_job(conn, lease, variables={"score": 1}),
        throw_job_error(conn, lease, code="E", message="", variables={}),
        fail_job(conn, lease, error="late"),
    ):
        assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before
    assert one(conn, "SELECT count(*) FROM refusal WHERE item_id = %s AND reason = 'lease_lost'", lease.item_id) == 3
    assert complete_job(conn, fresh, variables={"score": 7}) == ItemDone(
        fresh.item_id, fresh.number, one(conn, "SELECT id FROM process_instance")
    )


def test_R4_a_completion_after_expiry_and_before_recovery_still_counts(conn: psycopg.Connection, clock: Clock) -> None:
    _, lease = leased(conn)
    clock.advance(seconds=31)
    assert isinstance(complete_job(conn, lease, variables={}), ItemDone)


def test_a_failed_attempt_waits_and_is_tried_again(conn: psycopg.Connection) -> None:
    _, lease = leased(conn, retry="PT1M,PT5M", max_attempts=3)

    failed = fail_job(conn, lease, error="connection refused")

    assert isinstance(failed, ItemFailed)
    assert (failed.status, failed.attempts, failed.incident_id) == ("available", 1, None)
    wait = one(conn, "SELECT available_at - baton_clock() FROM job")
    assert timedelta(seconds=55) < wait <= timedelta(seconds=66), "a minute, and at most a tenth of it more"
    assert columns(conn, "job", lease.item_id, "status", "last_error", "lease_owner") == ("available", "connection refused", None)


def test_a_failure_is_told_so_again_when_it_is_reported_twice(conn: psycopg.Connection) -> None:
    _, lease = leased(conn)
    first = fail_job(conn, lease, error="no")
    before = everything(conn)
    assert fail_job(conn, lease, error="no") == first
    assert everything(conn) == before


def test_S55_the_last_attempt_ends_in_one_incident_and_success_after_a_retry_closes_it(conn: psycopg.Connection) -> None:
    _, lease = leased(conn, max_attempts=1)
    failed = fail_job(conn, lease, error="x" * 300_000)
    assert isinstance(failed, ItemFailed) and failed.status == "failed"
    assert failed.incident_id == one(conn, "SELECT id FROM incident WHERE job_id = %s", lease.item_id)
    assert one(conn, "SELECT length(message) FROM incident") == 2_000, "a too long error is cut, the incident still exists (S34)"
    assert acquired(conn) == [], "a job without attempts is never leased"

    retry_item(conn, "job", lease.item_id, actor=OP, attempts=1, request_id="r")
    (again,) = acquired(conn)
    fail_job(conn, again, error="still broken")
    assert one(conn, "SELECT count(*) FROM incident") == 1
    retry_item(conn, "job", lease.item_id, actor=OP, attempts=1, request_id="r2")
    (last,) = acquired(conn)
    assert isinstance(complete_job(conn, last, variables={}), ItemDone)
    assert one(conn, "SELECT count(*) FROM incident") == 0


def test_what_cannot_be_stored_is_a_failure_of_the_handler(conn: psycopg.Connection) -> None:
    case, lease = leased(conn, max_attempts=1)
    failed = complete_job(conn, lease, variables={"n": float("nan")})
    assert isinstance(failed, ItemFailed) and failed.status == "failed"
    assert "expected a finite number, found nan" in one(conn, "SELECT message FROM incident")
    assert places(conn, case.instance_id) == [("score", "waiting")]


def test_an_error_that_is_caught_goes_on_at_its_boundary_event(conn: psycopg.Connection) -> None:
    deployed(
        conn,
        model(
            "start -> score -> end",
            "declined -> apologise -> end2",
            score=service(),
            declined=boundary("score", error="DECLINED"),
            apologise=user(),
        ),
    )
    case = started(conn)
    (lease,) = acquired(conn)

    done = throw_job_error(conn, lease, code="DECLINED", message="no funds", variables={"why": "funds"})

    assert isinstance(done, ItemDone)
    assert places(conn, case.instance_id) == [("apologise", "waiting")]
    assert variables(conn, case.instance_id) == {"why": "funds"}
    again = throw_job_error(conn, lease, code="DECLINED", message="no funds", variables={"why": "funds"})
    assert isinstance(again, ItemDone) and again.repeated


def test_R6_an_error_that_nothing_catches_fails_the_job_for_good_at_once_and_says_so_when_asked_again(conn: psycopg.Connection) -> None:
    case, lease = leased(conn, max_attempts=5)
    failed = throw_job_error(conn, lease, code="DECLINED", message="no funds", variables={})
    assert isinstance(failed, ItemFailed) and (failed.status, failed.attempts) == ("failed", 1)
    assert one(conn, "SELECT kind FROM incident WHERE job_id = %s", lease.item_id) == "uncaught_error"
    assert places(conn, case.instance_id) == [("score", "waiting")]
    assert throw_job_error(conn, lease, code="DECLINED", message="no funds", variables={}) == failed
    late = complete_job(conn, lease, variables={})
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST


def test_S6_the_loser_of_an_event_based_gateway_is_withdrawn(conn: psycopg.Connection, clock: Clock) -> None:
    deployed(
        conn,
        model(
            "start -> wait -> paid -> p -> end",
            "wait -> late -> t -> end2",
            wait=first_event(),
            paid=catch(on="PAID"),
            late=catch(after="PT30M"),
            p=user(),
            t=user(),
        ),
    )
    case = started(conn, business_key="42")
    assert acquired(conn) == []
    clock.advance(minutes=31)
    (lease,) = acquired(conn)

    assert fire_timer(conn, lease) == ItemDone(lease.item_id, lease.number, case.instance_id)

    assert places(conn, case.instance_id) == [("t", "waiting")]
    assert one(conn, "SELECT count(*) FROM subscription") == 0
    assert ("timer_fired", "engine") in history(conn, lease.item_id)
    again = fire_timer(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated


def test_a_boundary_timer_that_interrupts_takes_the_task_out_of_every_inbox(conn: psycopg.Connection, clock: Clock) -> None:
    waiting = user(candidate_groups=(parse("${'billing'}"),))
    deployed(
        conn,
        model("start -> check -> end", "late -> escalate -> end2", check=waiting, late=boundary("check", after="PT1H"), escalate=user()),
    )
    case = started(conn)
    task = the_task(conn, "check")
    claim(conn, task, actor=ADA, request_id="c")
    clock.advance(hours=1, seconds=1)
    (lease,) = acquired(conn)

    assert isinstance(fire_timer(conn, lease), ItemDone)

    assert columns(conn, "user_task", task, "status", "token_id", "ended_by") == ("cancelled", None, "engine")
    assert one(conn, "SELECT count(*) FROM inbox_entry WHERE task_id = %s", task) == 0
    assert places(conn, case.instance_id) == [("escalate", "waiting")]
    late = complete_task(conn, task, actor=ADA, variables={}, request_id="l")
    assert isinstance(late, Rejected) and late.refusal is Refusal.ALREADY_CANCELLED


def test_a_cycle_that_does_not_interrupt_comes_back_on_its_grid(conn: psycopg.Connection, clock: Clock) -> None:
    deployed(
        conn,
        model(
            "start -> check -> end",
            "remind -> nag -> end2",
            check=user(),
            nag=user(),
            remind=boundary("check", after="R/PT10M", interrupting=False),
        ),
    )
    case = started(conn)
    first = one(conn, "SELECT due_at FROM job")
    clock.advance(minutes=10, seconds=30)
    (lease,) = acquired(conn)
    fire_timer(conn, lease)

    assert places(conn, case.instance_id) == [("check", "waiting"), ("nag", "waiting")]
    assert one(conn, "SELECT due_at FROM job") == first + timedelta(minutes=10), "counted from when it was due, not from when it was served"


def test_jobs_of_parallel_branches_say_that_the_root_is_to_be_locked_first(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> par -> a -> par2 -> end", "par -> b -> par2", a=service(), b=service(), par=par(), par2=par()))
    case = started(conn)
    assert {row[0] for row in conn.execute("SELECT lock_first FROM job")} == {True}
    a, b = acquired(conn)
    hinted = Lease(a.kind, a.item_id, a.number, a.owner, a.expires_at, {"lock_first": True})

    assert isinstance(complete_job(conn, hinted, variables={}), ItemDone)
    assert isinstance(complete_job(conn, b, variables={}), ItemDone)
    assert status(conn, case.instance_id) == "completed"
    assert kinds(conn, case.instance_id).count("join_passed") == 1


def test_an_item_written_while_its_topic_or_its_definition_is_paused_is_held(conn: psycopg.Connection) -> None:
    scoring(conn)
    conn.execute("INSERT INTO pause (kind, topic, paused_by) VALUES ('service', 'work', 'op')")
    started(conn)
    assert one(conn, "SELECT held FROM job") == ["paused"]
    conn.execute("UPDATE pause SET kind = 'definition', topic = 'model'")
    started(conn)
    assert [row[0] for row in conn.execute("SELECT held FROM job")] == [["paused"], ["paused"]]
    conn.execute("DELETE FROM pause")
    started(conn)
    assert one(conn, "SELECT count(*) FROM job WHERE held = '{}'") == 1


def test_a_marked_case_refuses_its_jobs(conn: psycopg.Connection) -> None:
    _, lease = leased(conn)
    conn.execute("UPDATE process_instance SET mark = 'suspended'")
    before = everything(conn)
    refused = complete_job(conn, lease, variables={})
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INSTANCE_SUSPENDED
    assert everything(conn) == before


def test_a_timer_by_date_is_due_then_and_never_available_before_now(conn: psycopg.Connection) -> None:
    waiting = catch(after="${when}")
    assert waiting.config is not None
    deployed(conn, model("start -> wait -> end", wait=waiting))
    assert timer("${when}").type == "date"
    case = started(conn, variables={"when": "2020-01-01T00:00:00+00:00"})
    due, available, created = conn.execute("SELECT due_at, available_at, created_at FROM job").fetchone() or ()
    assert due.year == 2020 and available == created
    (lease,) = acquired(conn)
    assert isinstance(fire_timer(conn, lease), ItemDone) and status(conn, case.instance_id) == "completed"
