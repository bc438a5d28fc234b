"""Exclusive work of a case is done one at a time: who has the turn, who keeps it, and who gets it next (decision 0097)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task, fail_external_task
from engine.commands.jobs import complete_job, fail_job, fire_timer, throw_job_error
from engine.commands.leases import release, release_by_operator
from engine.commands.messages import publish_message
from engine.commands.outcome import ItemDone, ItemFailed, ItemReleased, ItemRetried, Lease, Refusal, Rejected
from engine.commands.retry import retry_item
from engine.commands.upkeep import Kept, upkeep
from engine.db.acquire import recover_expired
from engine.db.session import connect
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, started, status, the_task
from tests.conftest import Clock
from tests.core.models import boundary, call, model, par, service, several, sub, user
from tests.rows import everything, one

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def alone(work: str = "handler", **config: Any) -> Any:
    return service("work", work=work, exclusive=True, **config)


def side_by_side(conn: Connection, count: int = 3, **config: Any) -> UUID:
    """A case with as many exclusive items, none of them begun."""
    chains = [f"split -> w{number} -> join" for number in range(count)]
    works = {f"w{number}": alone(**config) for number in range(count)}
    deployed(conn, model("start -> split", *chains, "join -> end", split=par(), join=par(), **works))
    return started(conn).instance_id


def free(conn: Connection) -> list[str]:
    """The elements whose work is free or leased, of both tables."""
    rows = conn.execute(
        "SELECT element_id FROM job WHERE status <> 'failed' AND held = '{}' AND exclusive"
        " UNION ALL SELECT element_id FROM external_task WHERE status <> 'failed' AND held = '{}' AND exclusive"
    ).fetchall()
    return sorted(row[0] for row in rows)


def waiting(conn: Connection) -> list[str]:
    return [row[0] for row in conn.execute("SELECT element_id FROM job WHERE held = '{exclusive}' ORDER BY element_id").fetchall()]


def the_lease(conn: Connection) -> Lease:
    [lease] = acquired(conn)
    return lease


def element(conn: Connection, lease: Lease) -> str:
    return str(one(conn, "SELECT element_id FROM job WHERE id = %s", lease.item_id))


# ---- one at a time


def test_F20_of_the_exclusive_work_of_a_case_one_item_is_free_and_the_others_wait(conn: Connection) -> None:
    side_by_side(conn)
    assert (free(conn), waiting(conn)) == (["w0"], ["w1", "w2"])
    lease = the_lease(conn)
    assert acquired(conn) == []

    assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    assert (free(conn), waiting(conn)) == (["w1"], ["w2"])
    assert isinstance(complete_job(conn, the_lease(conn), variables={}), ItemDone)
    assert (free(conn), waiting(conn)) == (["w2"], [])


def test_F20_twenty_items_of_one_activity_take_turns_to_the_end(conn: Connection) -> None:
    deployed(conn, model("start -> w -> end", w=several(alone(), times="${20}")))
    case = started(conn).instance_id
    for _ in range(20):
        assert len(free(conn)) == 1
        assert isinstance(complete_job(conn, the_lease(conn), variables={}), ItemDone)
    assert status(conn, case) == "completed"


def test_cases_do_not_wait_for_each_other_and_other_work_of_the_case_waits_for_nobody(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> w0 -> join", "split -> w1 -> join", "split -> free -> join -> end",
            split=par(), join=par(), w0=alone(), w1=alone(), free=service("work"),
        ),
    )  # fmt: skip
    for _ in range(2):
        started(conn)
    assert sorted(element(conn, lease) for lease in acquired(conn)) == ["free", "free", "w0", "w0"]


def test_jobs_and_external_tasks_of_a_case_wait_for_each_other(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> out -> join", "split -> within -> join -> end",
            split=par(), join=par(), out=alone("external"), within=alone(),
        ),
    )  # fmt: skip
    started(conn)
    assert free(conn) == ["out"]
    [task] = acquire_external_tasks(conn, actor=OP, worker_id="c", topics=["work"])
    assert acquired(conn) == []
    done = complete_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, variables={})
    assert isinstance(done, ItemDone)
    assert free(conn) == ["within"]


def test_called_processes_take_turns_with_their_callers(conn: Connection) -> None:
    deployed(conn, replace(model("start -> inner -> end", inner=alone()), key="called"))
    deployed(
        conn, model("start -> split -> c -> join", "split -> own -> join -> end", split=par(), join=par(), c=call("called"), own=alone())
    )
    case = started(conn).instance_id
    seen = []
    while leases := acquired(conn):
        [lease] = leases
        seen.append(element(conn, lease))
        complete_job(conn, lease, variables={})
    assert sorted(seen) == ["inner", "own"]
    assert status(conn, case) == "completed"


def test_what_is_written_later_waits_behind_what_was_there(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> w0 -> then -> join", "split -> w1 -> join -> end",
            split=par(), join=par(), w0=alone(), w1=alone(), then=alone(),
        ),
    )  # fmt: skip
    started(conn)
    complete_job(conn, the_lease(conn), variables={})
    assert (free(conn), waiting(conn)) == (["w1"], ["then"])


def test_what_is_free_after_a_wait_is_found_by_acquisition_however_long_it_waited(conn: Connection, clock: Clock) -> None:
    side_by_side(conn, 2)
    lease = acquired(conn, lease_seconds=3600)[0]
    clock.advance(minutes=30)
    complete_job(conn, lease, variables={})
    assert one(conn, "SELECT baton_clock() - available_at < interval '1 minute' FROM job")


# ---- who keeps the turn, and who gives it up


def test_a_failure_that_will_be_retried_keeps_its_turn(conn: Connection, clock: Clock) -> None:
    side_by_side(conn)
    lease = the_lease(conn)
    failed = fail_job(conn, lease, error="not yet")
    assert isinstance(failed, ItemFailed) and failed.status == "available"
    assert acquired(conn) == []
    clock.advance(minutes=1)
    assert the_lease(conn).item_id == lease.item_id


@pytest.mark.parametrize("final", [True, False])
def test_an_incident_gives_the_turn_to_the_next(conn: Connection, final: bool) -> None:
    side_by_side(conn, max_attempts=3 if final else 1)
    failed = fail_job(conn, the_lease(conn), error="broken", final=final)
    assert isinstance(failed, ItemFailed) and failed.status == "failed" and failed.incident_id is not None
    assert (free(conn), waiting(conn)) == (["w1"], ["w2"])


def test_an_external_task_that_fails_for_good_gives_the_turn_to_the_next(conn: Connection) -> None:
    side_by_side(conn, 2, work="external")
    [task] = acquire_external_tasks(conn, actor=OP, worker_id="c", topics=["work"])
    failed = fail_external_task(conn, task.id, actor=OP, lease_number=task.lease_number, error="no", final=True)
    assert isinstance(failed, ItemFailed)
    assert free(conn) == ["w1"]


def test_a_lost_lease_that_fails_late_gives_up_no_turn(conn: Connection, clock: Clock) -> None:
    side_by_side(conn, 2, max_attempts=2)
    lost = the_lease(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    fresh = the_lease(conn)
    before = everything(conn)
    late = fail_job(conn, lost, error="late", final=True)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before
    assert fresh.item_id == lost.item_id


def test_a_retry_by_a_person_waits_for_its_turn_and_is_the_first_to_get_it(conn: Connection) -> None:
    side_by_side(conn)
    broken = the_lease(conn)
    fail_job(conn, broken, error="broken", final=True)
    second = the_lease(conn)
    assert retry_item(conn, "job", broken.item_id, actor=OP) == ItemRetried(broken.item_id, 1)
    assert waiting(conn) == ["w0", "w2"]
    assert acquired(conn) == []
    complete_job(conn, second, variables={})
    assert (free(conn), waiting(conn)) == (["w0"], ["w2"])


def test_a_retry_where_nothing_else_runs_is_free_at_once_and_twice_is_harmless(conn: Connection) -> None:
    side_by_side(conn, 1)
    broken = the_lease(conn)
    fail_job(conn, broken, error="broken", final=True)
    for _ in range(2):
        assert retry_item(conn, "job", broken.item_id, actor=OP, request_id="r") == ItemRetried(broken.item_id, 1)
    assert free(conn) == ["w0"]
    again = retry_item(conn, "job", broken.item_id, actor=OP, request_id="s")
    assert isinstance(again, Rejected) and again.refusal is Refusal.NOT_FAILED


def test_recovery_keeps_the_turn_until_the_last_attempt_and_then_gives_it_up(conn: Connection, clock: Clock) -> None:
    side_by_side(conn, 2, max_attempts=2)
    first = the_lease(conn)
    clock.advance(seconds=31)
    [back] = recover_expired(conn, limit=10)
    assert (back.item_id, back.status) == (first.item_id, "available")
    assert the_lease(conn).item_id == first.item_id
    clock.advance(seconds=31)
    [back] = recover_expired(conn, limit=10)
    assert (back.item_id, back.status) == (first.item_id, "failed")
    assert one(conn, "SELECT kind FROM incident") == "lease_lost"
    assert free(conn) == ["w1"]
    assert recover_expired(conn, limit=10) == []


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_operator_who_takes_the_lease_away_frees_the_next_only_if_no_attempt_is_left(conn: Connection, attempts: int) -> None:
    side_by_side(conn, 2, max_attempts=attempts)
    lease = the_lease(conn)
    for _ in range(2):
        outcome = release_by_operator(conn, "job", lease.item_id, actor=OP, reason="stuck", request_id="r")
        assert outcome == ItemReleased(lease.item_id)
    assert free(conn) == (["w1"] if attempts == 1 else ["w0"])
    assert one(conn, "SELECT count(*) FROM audit WHERE action = 'release'") == 1


def test_R5_handed_back_unstarted_it_keeps_its_turn(conn: Connection) -> None:
    side_by_side(conn, 2)
    lease = the_lease(conn)
    release(conn, lease)
    assert the_lease(conn).item_id == lease.item_id


# ---- ended by others


def test_a_caught_error_passes_the_turn_on(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> w0 -> join", "split -> w1 -> join -> end", "oops -> end2",
            split=par(), join=par(), w0=alone(), w1=alone(), oops=boundary("w0", error="E"),
        ),
    )  # fmt: skip
    started(conn)
    assert isinstance(throw_job_error(conn, the_lease(conn), code="E", message="", variables={}), ItemDone)
    assert free(conn) == ["w1"]


def test_an_error_that_nobody_catches_is_an_incident_and_passes_the_turn_on(conn: Connection) -> None:
    side_by_side(conn, 2)
    assert isinstance(throw_job_error(conn, the_lease(conn), code="E", message="", variables={}), ItemFailed)
    assert free(conn) == ["w1"]


def test_an_item_that_a_timer_interrupts_passes_the_turn_on_and_the_timer_waits_for_nobody(conn: Connection, clock: Clock) -> None:
    deployed(
        conn,
        model(
            "start -> split -> w0 -> join", "split -> w1 -> join -> end", "late -> end2",
            split=par(), join=par(), w0=alone(), w1=alone(), late=boundary("w0", after="PT1M"),
        ),
    )  # fmt: skip
    started(conn)
    running = acquired(conn, lease_seconds=600)[0]
    clock.advance(minutes=2)
    [timer] = acquired(conn)
    assert isinstance(fire_timer(conn, timer), ItemDone)
    assert free(conn) == ["w1"]
    late = complete_job(conn, running, variables={})
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST


def test_a_message_that_ends_a_subprocess_passes_the_turn_of_what_runs_in_it(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> box -> join", "split -> w1 -> join -> end", "start2 -> w0 -> end3", "halt -> end2",
            split=par(), join=par(), box=sub(), w0=alone(), w1=alone(), halt=boundary("box", on="HALT"),
            inside={"box": "start2 w0 end3"},
        ),
    )  # fmt: skip
    started(conn, business_key="k")
    assert [element(conn, lease) for lease in acquired(conn)] == ["w0"]
    publish_message(conn, "HALT", actor=OP, correlation_key="k", variables={}, time_to_live_seconds=None, request_id=None)
    assert free(conn) == ["w1"]


def test_a_task_completed_meanwhile_adds_its_work_to_those_that_wait(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> split -> w0 -> join", "split -> t -> then -> join -> end",
            split=par(), join=par(), w0=alone(), t=user(assignee=parse("${'ada'}")), then=alone(),
        ),
    )  # fmt: skip
    started(conn)
    lease = the_lease(conn)
    task = the_task(conn, "t")
    complete_task(conn, task, actor=ADA, variables={}, request_id=None)
    assert waiting(conn) == ["then"]
    complete_job(conn, lease, variables={})
    assert free(conn) == ["then"]


def test_cancelling_the_case_leaves_nothing_that_waits(conn: Connection) -> None:
    case = side_by_side(conn)
    acquired(conn)
    cancel_instance(conn, case, actor=OP, reason="no", request_id=None)
    assert one(conn, "SELECT count(*) FROM job") == 0


# ---- with other reasons for which work is held


def test_the_turn_goes_to_what_nothing_else_holds(conn: Connection) -> None:
    side_by_side(conn)
    conn.execute("UPDATE job SET held = held || '{paused}' WHERE element_id = 'w1'")
    complete_job(conn, the_lease(conn), variables={})
    assert free(conn) == ["w2"]
    complete_job(conn, the_lease(conn), variables={})
    assert one(conn, "SELECT held FROM job") == ["paused"]


def test_work_of_a_suspended_case_has_its_turn_and_is_held_all_the_same(conn: Connection) -> None:
    side_by_side(conn, 2)
    conn.execute("UPDATE job SET held = held || '{suspended}'")
    assert conn.execute("SELECT element_id, held FROM job ORDER BY 1").fetchall() == [
        ("w0", ["suspended"]),
        ("w1", ["exclusive", "suspended"]),
    ]
    assert acquired(conn) == []


# ---- beside a release that knows nothing of it


def test_what_an_older_release_ended_without_passing_the_turn_is_seen_to_by_upkeep(conn: Connection) -> None:
    """Its completion deletes the row, and no more."""
    side_by_side(conn)
    conn.execute("DELETE FROM job WHERE element_id = 'w0'")
    assert free(conn) == []
    assert upkeep(conn, Kept(request_seconds=86_400, job_branches=()))["turns"] == 1
    assert (free(conn), waiting(conn)) == (["w1"], ["w2"])


@pytest.mark.parametrize("work", ["handler", "external"])
def test_what_an_older_release_let_fail_for_good_is_seen_to_as_well_in_every_case(conn: Connection, work: str) -> None:
    table = "job" if work == "handler" else "external_task"
    side_by_side(conn, 2, work=work)
    started(conn)
    conn.execute(f"UPDATE {table} SET status = 'failed', attempts = max_attempts WHERE held = '{{}}'")
    assert free(conn) == []
    assert upkeep(conn, Kept(request_seconds=86_400, job_branches=()))["turns"] == 2
    assert free(conn) == ["w1", "w1"]


def test_upkeep_waits_for_no_case_that_somebody_else_has_in_hand(conn: Connection, database_url: str, clock: Clock) -> None:
    case = side_by_side(conn, 2)
    conn.execute("DELETE FROM job WHERE element_id = 'w0'")
    kept = Kept(request_seconds=86_400, job_branches=())
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE", (case,))
        assert upkeep(conn, kept)["turns"] == 0
        other.execute("COMMIT")
    clock.advance(minutes=2)
    assert upkeep(conn, kept)["turns"] == 1
    assert free(conn) == ["w1"]
