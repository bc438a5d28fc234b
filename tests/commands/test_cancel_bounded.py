"""Cancelling a case too large for one transaction: a mark at once, then steps of bounded size by a job."""

from __future__ import annotations

import time
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import _MARK, AT_ONCE, STEP_ROWS, cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task
from engine.commands.jobs import complete_job, fire_timer
from engine.commands.leases import release
from engine.commands.messages import publish_message
from engine.commands.outcome import CaseShrunk, InstanceCancelled, ItemDone, ItemReleased, Lease, Refusal, Rejected
from engine.commands.retry import retry_item
from engine.commands.tasks import assign, claim, take_next
from engine.db.acquire import acquire_jobs, recover_expired
from tests import rows
from tests.cast import ADA, CY, OP, engage
from tests.commands.cases import deployed, kinds, lease_of, status
from tests.conftest import Clock
from tests.core.models import model, user
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]
CANCEL = [("cancel", "")]
VERSIONS = count(1)
LEAVES = ("token", "scope", "variable", "job", "external_task", "subscription", "inbox_entry", "incident")


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def runnable(conn: Connection) -> UUID:
    """A definition that the core can read: small cases end as a step of it."""
    return deployed(conn, model("start -> task -> end", task=user()), version=next(VERSIONS))


def large(conn: Connection, *, each: int = 120, **values: Any) -> UUID:
    """A case with `each` of every leaf, half of the jobs failed beside an incident, a completed task, and a nest of scopes."""
    case = rows.instance(conn, runnable(conn), **values)
    root, scope, definition = conn.execute(
        "SELECT i.root_id, s.id, i.definition_id FROM process_instance i JOIN scope s ON s.instance_id = i.id WHERE i.id = %s", (case,)
    ).fetchone() or (None, None, None)
    told = {"case": case, "root": root, "scope": scope, "definition": definition, "n": each}
    for statement in _LEAVES.split(";"):
        conn.execute(statement, told)
    conn.execute("INSERT INTO variable (scope_id, name, type, value) VALUES (%s, 'x', 'integer', '1')", (scope,))
    _nest(conn, case, root, scope, depth=4)
    return case


_LEAVES = """
INSERT INTO token (id, instance_id, root_id, scope_id, element_id)
SELECT gen_random_uuid(), %(case)s, %(root)s, %(scope)s, kind
FROM generate_series(1, %(n)s), unnest(ARRAY['task', 'job', 'ext', 'sub']) kind;
INSERT INTO user_task (id, instance_id, root_id, definition_id, token_id, element_id, name, sort_key, candidate_groups)
SELECT gen_random_uuid(), %(case)s, %(root)s, %(definition)s, t.id, 'task', 'T', 't', '{billing}'
FROM token t WHERE t.instance_id = %(case)s AND t.element_id = 'task';
INSERT INTO inbox_entry (task_id, kind, name, created_at)
SELECT id, 'group', 'billing', created_at FROM user_task WHERE instance_id = %(case)s;
INSERT INTO user_task (id, instance_id, root_id, definition_id, element_id, name, sort_key, status, ended_at, ended_by)
VALUES (gen_random_uuid(), %(case)s, %(root)s, %(definition)s, 'before', 'B', 'b', 'completed', baton_clock(), 'ada');
INSERT INTO job (id, kind, topic, instance_id, root_id, definition_id, token_id, element_id, status, due_at, available_at, attempts)
SELECT gen_random_uuid(), 'service', 'score', %(case)s, %(root)s, %(definition)s, t.id, 'job',
  CASE n %% 2 WHEN 0 THEN 'failed' ELSE 'available' END,
  baton_clock(), baton_clock(), CASE n %% 2 WHEN 0 THEN 3 ELSE 0 END
FROM (SELECT id, row_number() OVER () AS n FROM token WHERE instance_id = %(case)s AND element_id = 'job') t;
INSERT INTO incident (id, kind, message, instance_id, job_id)
SELECT gen_random_uuid(), 'failed', '?', %(case)s, id FROM job WHERE instance_id = %(case)s AND status = 'failed';
INSERT INTO external_task (id, topic, instance_id, root_id, definition_id, token_id, element_id, due_at, available_at)
SELECT gen_random_uuid(), 'print', %(case)s, %(root)s, %(definition)s, t.id, 'ext', baton_clock(), baton_clock()
FROM token t WHERE t.instance_id = %(case)s AND t.element_id = 'ext';
INSERT INTO subscription (id, kind, message_name, correlation_key, instance_id, root_id, definition_id, token_id, element_id)
SELECT gen_random_uuid(), 'catch', 'PAID', '7', %(case)s, %(root)s, %(definition)s, t.id, 'sub'
FROM token t WHERE t.instance_id = %(case)s AND t.element_id = 'sub'
"""


def _nest(conn: Connection, case: UUID, root: UUID, scope: UUID, *, depth: int) -> None:
    """Scopes within scopes, each owned by a token of the one around it and with variables of its own."""
    path = [scope]
    for level in range(depth):
        owner = rows.insert(conn, "token", instance_id=case, root_id=root, scope_id=path[-1], element_id=f"sub{level}")
        path.append(rows.insert(conn, "scope", instance_id=case, parent_id=path[-1], token_id=owner, element_id=f"sub{level}", path=path))
        conn.execute("INSERT INTO variable (scope_id, name, type, value) VALUES (%s, 'item', 'integer', '1')", (path[-1],))
    rows.insert(conn, "token", instance_id=case, root_id=root, scope_id=path[-1], element_id="innermost")


def cancelling(conn: Connection, case: UUID, request_id: str = "x") -> Lease:
    """The mark is set; the lease of the job that does the rest."""
    outcome = cancel_instance(conn, case, actor=OP, reason="duplicate", request_id=request_id)
    assert outcome == InstanceCancelled(case, finishing=True)
    return the_job(conn)


def the_job(conn: Connection, owner: str = "worker-1") -> Lease:
    [item] = acquire_jobs(conn, owner=owner, capabilities=CANCEL, limit=5, lease_seconds=30, workers=1)
    return lease_of(item)


def finish(conn: Connection, lease: Lease) -> list[int]:
    """All steps to the end: the rows of each but the last."""
    sizes = []
    while isinstance(outcome := cancel_some(conn, lease), CaseShrunk):
        sizes.append(outcome.rows)
        assert len(sizes) < 100, "the steps do not come to an end"
    assert outcome == ItemDone(lease.item_id, lease.number)
    return sizes


def left_behind(conn: Connection) -> dict[str, int]:
    return {table: n for table in LEAVES if (n := one(conn, f"SELECT count(*) FROM {table}"))}


def test_a_large_case_is_marked_in_one_short_transaction_and_a_job_takes_it_apart_in_bounded_steps(conn: Connection) -> None:
    case = large(conn)
    before = everything(conn)

    lease = cancelling(conn, case)

    assert columns(conn, "process_instance", case, "status", "mark", "revision") == ("running", "cancelling", 1)
    after = everything(conn)
    assert {name for name in after if after[name] != before[name]} == {"process_instance", "job", "audit"}
    assert len(after["job"]) == len(before["job"]) + 1

    sizes = finish(conn, lease)

    assert max(sizes) <= STEP_ROWS and min(sizes) > 0
    assert left_behind(conn) == {}
    assert columns(conn, "process_instance", case, "status", "mark", "ended_by", "final_variables") == (
        "cancelled", None, "op", {"x": {"type": "integer", "value": 1}},
    )  # fmt: skip
    assert dict(conn.execute("SELECT status, count(*) FROM user_task GROUP BY status").fetchall()) == {"cancelled": 120, "completed": 1}
    assert conn.execute("SELECT DISTINCT ended_by, token_id FROM user_task WHERE status = 'cancelled'").fetchall() == [("op", None)]


def test_what_is_told_is_what_the_one_transaction_tells(conn: Connection) -> None:
    """The same case, small and large: the same events, with the same actors and data."""

    def told(case: UUID) -> list[Any]:
        told = conn.execute(
            "SELECT kind, element_id, actor, data, item_id IS NULL FROM history"
            " WHERE instance_id = %s AND kind <> 'job_completed' ORDER BY id",
            (case,),
        ).fetchall()
        return sorted(set(map(repr, told)))

    small = large(conn, each=2)
    assert cancel_instance(conn, small, actor=OP, reason="duplicate", request_id="s") == InstanceCancelled(small)
    big = large(conn)
    finish(conn, cancelling(conn, big))

    assert told(big) == told(small)
    counted = kinds(conn, big)
    assert (counted.count("task_cancelled"), counted.count("instance_cancelled"), len(counted)) == (120, 1, 122)


def test_R4_a_step_under_a_stale_lease_does_nothing(conn: Connection, clock: Clock) -> None:
    lease = cancelling(conn, large(conn))
    before = everything(conn)
    stale = cancel_some(conn, Lease("job", lease.item_id, lease.number - 1, lease.owner))
    assert isinstance(stale, Rejected) and stale.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before

    clock.advance(seconds=31)
    assert len(recover_expired(conn, limit=10)) == 1
    before = everything(conn)
    late = cancel_some(conn, lease)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before


def test_R6_a_worker_that_dies_between_two_steps_leaves_the_rest_to_another(conn: Connection, clock: Clock) -> None:
    case = large(conn)
    first = cancelling(conn, case)
    assert isinstance(cancel_some(conn, first), CaseShrunk)

    clock.advance(seconds=31)
    assert [item.status for item in recover_expired(conn, limit=10)] == ["available"]
    clock.advance(seconds=1)
    finish(conn, the_job(conn, "worker-2"))

    assert status(conn, case) == "cancelled"
    assert left_behind(conn) == {}
    assert kinds(conn, case).count("task_cancelled") == 120


def test_R6_the_last_step_repeated_is_told_that_it_landed(conn: Connection) -> None:
    lease = cancelling(conn, large(conn))
    finish(conn, lease)
    before = everything(conn)
    again = cancel_some(conn, lease)
    assert isinstance(again, ItemDone) and again.repeated
    assert everything(conn) == before


def test_leaf_commands_of_a_marked_case_are_refused_at_once(conn: Connection) -> None:
    case = large(conn)
    task, other = (row[0] for row in conn.execute("SELECT id FROM user_task WHERE status = 'open' LIMIT 2").fetchall())
    claim(conn, task, actor=ADA, request_id=None)
    [job] = [lease_of(i) for i in acquire_jobs(conn, owner="w", capabilities=[("service", "score")], limit=1, lease_seconds=30, workers=1)]
    [external] = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["print"], limit=1)  # type: ignore[misc]
    conn.execute("UPDATE job SET kind = 'timer', topic = '' WHERE id = (SELECT id FROM job WHERE status = 'available' LIMIT 1)")
    [timer] = [lease_of(i) for i in acquire_jobs(conn, owner="w", capabilities=[("timer", "")], limit=1, lease_seconds=30, workers=1)]
    token = one(conn, "UPDATE token SET status = 'failed' WHERE element_id = 'innermost' RETURNING id")
    cancelling(conn, case)
    before = everything(conn)

    refused = [
        claim(conn, other, actor=ADA, request_id=None),
        assign(conn, task, actor=ADA, assignee="bo", request_id=None),
        complete_task(conn, task, actor=ADA, variables={}, request_id=None),
        complete_job(conn, job, variables={}),
        fire_timer(conn, timer),
        complete_external_task(conn, external.id, actor=OP, lease_number=external.lease_number, variables={}),
        retry_item(conn, "token", token, actor=OP, attempts=1, request_id=None),
        cancel_instance(conn, case, actor=OP, reason="again", request_id="other"),
    ]

    assert [r.refusal for r in refused if isinstance(r, Rejected)] == [Refusal.INSTANCE_CANCELLING] * len(refused)
    nothing = take_next(conn, actor=ADA, request_id=None)
    assert isinstance(nothing, Rejected) and nothing.refusal is Refusal.NOTHING_FREE
    unheard = publish_message(conn, "PAID", actor=OP, correlation_key="7", variables={})
    assert isinstance(unheard, Rejected) and unheard.refusal is Refusal.NO_SUBSCRIPTION
    assert everything(conn) == before


def test_R5_work_of_a_marked_case_that_was_acquired_goes_back_unspent_and_is_not_handed_out_again(conn: Connection, clock: Clock) -> None:
    case = large(conn)
    conn.execute("INSERT INTO delivery (id, kind, destination, instance_id, root_id, due_at, available_at, request)"
                 " SELECT gen_random_uuid(), 'http', 'x', %s, %s, baton_clock(), baton_clock(), '{}'", (case, case))  # fmt: skip
    mine = cancelling(conn, case)
    [job] = [lease_of(i) for i in acquire_jobs(conn, owner="w", capabilities=[("service", "score")], limit=1, lease_seconds=30, workers=1)]
    assert release(conn, job, because=Refusal.INSTANCE_CANCELLING) == ItemReleased(job.item_id)
    assert columns(conn, "job", job.item_id, "status", "attempts", "held") == ("available", 0, ["cancelling"])

    assert acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["print"], limit=100) == []
    assert conn.execute("SELECT held, attempts, count(*) FROM external_task GROUP BY 1, 2 ORDER BY 3").fetchall() == [
        ([], 0, 20),
        (["cancelling"], 0, 100),
    ]
    assert release(conn, mine) == ItemReleased(mine.item_id)
    assert columns(conn, "job", mine.item_id, "status", "attempts", "held") == ("available", 0, [])
    assert one(conn, "SELECT held FROM delivery") == []


def test_deliveries_that_the_case_has_committed_to_are_still_sent(conn: Connection) -> None:
    case = large(conn)
    conn.execute("INSERT INTO delivery (id, kind, destination, instance_id, root_id, due_at, available_at, request)"
                 " SELECT gen_random_uuid(), 'http', 'x', %s, %s, baton_clock(), baton_clock(), '{}'", (case, case))  # fmt: skip
    finish(conn, cancelling(conn, case))
    assert conn.execute("SELECT status, held FROM delivery").fetchall() == [("available", [])]


def test_the_instances_that_the_case_called_end_before_it_and_those_that_are_over_stay_as_they_are(conn: Connection) -> None:
    case = large(conn)
    called = large(conn, each=3, root_id=case)
    over = rows.instance(conn, root_id=case, status="completed", ended_at="2026-01-01", ended_by="ada")
    other = large(conn, each=1)
    untouched = columns(conn, "process_instance", over, "xmin", "ended_by", "ended_at")
    finish(conn, cancelling(conn, case))

    assert (status(conn, case), status(conn, called), status(conn, other)) == ("cancelled", "cancelled", "running")
    assert columns(conn, "process_instance", over, "xmin", "ended_by", "ended_at") == untouched
    assert one(conn, "SELECT count(*) FROM token WHERE instance_id <> %s", other) == 0
    assert one(conn, "SELECT count(*) FROM token WHERE instance_id = %s", other) == 4 + 4 + 1
    order = [row[0] for row in conn.execute("SELECT instance_id FROM history WHERE kind = 'instance_cancelled' ORDER BY id").fetchall()]
    assert set(order) == {case, called} and len(order) == 2


def test_R10_one_press_has_one_answer_before_and_after_the_steps(conn: Connection) -> None:
    case = large(conn)
    lease = cancelling(conn, case, "x")
    same = InstanceCancelled(case, finishing=True)
    assert cancel_instance(conn, case, actor=OP, reason="duplicate", request_id="x") == same
    finish(conn, lease)
    before = everything(conn)
    assert cancel_instance(conn, case, actor=OP, reason="duplicate", request_id="x") == same
    other = cancel_instance(conn, case, actor=OP, reason="duplicate", request_id="y")
    assert isinstance(other, Rejected) and (other.refusal, other.by) == (Refusal.ALREADY_CANCELLED, "op")
    assert everything(conn) == before


def test_R13_only_operators_mark_a_large_case(conn: Connection) -> None:
    case = large(conn)
    before = everything(conn)
    assert cancel_instance(conn, case, actor=ADA, reason="", request_id="1") == Rejected(Refusal.NOT_ALLOWED)
    assert cancel_instance(conn, case, actor=CY, reason="", request_id="2") == Rejected(Refusal.NOT_FOUND)
    assert everything(conn) == before


def test_a_suspension_gives_way(conn: Connection) -> None:
    case = large(conn)
    conn.execute("UPDATE process_instance SET mark = 'suspended'")
    conn.execute("UPDATE job SET held = '{suspended}'")
    finish(conn, cancelling(conn, case))
    assert columns(conn, "process_instance", case, "status", "mark") == ("cancelled", None)


@pytest.mark.parametrize("each", [2, 120])
def test_who_cancelled_and_why_stands_in_the_audit_of_a_small_case_and_of_a_large_one(conn: Connection, each: int) -> None:
    case = large(conn, each=each)
    cancel_instance(conn, case, actor=OP, reason="duplicate", request_id="x")
    assert conn.execute("SELECT actor, action, object_kind, object_id, reason FROM audit").fetchall() == [
        ("op", "cancel", "instance", str(case), "duplicate")
    ]


def test_no_step_of_a_case_of_ten_thousand_rows_comes_near_half_a_second(conn: Connection) -> None:
    case = large(conn, each=1250)
    conn.execute("ANALYZE")
    began = time.monotonic()
    lease = cancelling(conn, case)
    slowest = time.monotonic() - began
    steps = 0
    while True:
        began = time.monotonic()
        outcome = cancel_some(conn, lease)
        slowest = max(slowest, time.monotonic() - began)
        steps += 1
        if not isinstance(outcome, CaseShrunk):
            break
    assert isinstance(outcome, ItemDone)
    assert steps > 10_000 / STEP_ROWS
    assert slowest < 0.5, f"the slowest of {steps} steps took {slowest:.3f} s"
    assert left_behind(conn) == {}


def test_as_many_rows_as_the_limit_end_at_once_and_one_more_does_not(conn: Connection) -> None:
    case = rows.instance(conn, runnable(conn))
    scope = one(conn, "SELECT id FROM scope WHERE instance_id = %s", case)
    conn.execute(
        "INSERT INTO token (id, instance_id, root_id, scope_id, element_id) SELECT gen_random_uuid(), %s, %s, %s, 'task'"
        " FROM generate_series(1, %s)",
        (case, case, scope, AT_ONCE),
    )  # with the scope: one too many
    assert cancel_instance(conn, case, actor=OP, reason="", request_id="1") == InstanceCancelled(case, finishing=True)
    smaller = rows.instance(conn, one(conn, "SELECT definition_id FROM process_instance"))
    scope = one(conn, "SELECT id FROM scope WHERE instance_id = %s", smaller)
    conn.execute(
        "INSERT INTO token (id, instance_id, root_id, scope_id, element_id) SELECT gen_random_uuid(), %s, %s, %s, 'task'"
        " FROM generate_series(1, %s)",
        (smaller, smaller, scope, AT_ONCE - 2),
    )  # with the scope and the token that comes with the task
    rows.task(conn, smaller, status="completed", ended_at="2026-01-01", ended_by="ada", token_id=None)  # is over: does not count
    called = {"root_id": smaller, "parent_id": smaller, "status": "completed", "ended_at": "2026-01-01"}
    rows.instance(conn, **called)  # nor does a called instance that is
    assert cancel_instance(conn, smaller, actor=OP, reason="", request_id="2") == InstanceCancelled(smaller)


@pytest.mark.parametrize("stale", [{"revision": 7}, {"mark": "suspended"}, {"root_id": UUID(int=0)}], ids=lambda stale: next(iter(stale)))
@pytest.mark.parametrize("requested", [False, True])
def test_the_mark_with_a_stale_guard_writes_nothing(conn: Connection, stale: dict[str, Any], requested: bool) -> None:
    case = large(conn)
    definition = one(conn, "SELECT definition_id FROM process_instance")
    row = {"root_id": case, "instance_id": case, "definition_id": definition, "tenant_id": "", "revision": 0, "mark": None}
    job = {"job_id": UUID(int=1), "attempts": 10, "payload": "{}", "suspended": True, "freer_id": UUID(int=2)}
    request = {"request_tenant": "", "request_actor": "op", "request_id": "1", "request_hash": "", "outcome": "{}"}
    conn.execute("INSERT INTO suspension (object_id, id, kind, suspended_by) VALUES (%s, %s, 'instance', 'op')", (case, UUID(int=3)))
    before = everything(conn), one(conn, "SELECT count(*) FROM request")
    assert conn.execute(_MARK[requested], {**row, **job, **request, **stale}).fetchone() is None
    assert (everything(conn), one(conn, "SELECT count(*) FROM request")) == before
    assert conn.execute(_MARK[requested], {**row, **job, **request}).fetchone() is not None
    assert one(conn, "SELECT count(*) FROM suspension") == 0


def test_completed_executions_within_others_go_from_the_inside_out_and_leave_nothing(conn: Connection) -> None:
    case = large(conn, each=20)
    scope = one(conn, "SELECT id FROM scope WHERE instance_id = %s AND parent_id IS NULL", case)
    for number in range(AT_ONCE // 2):
        outer = rows.insert(conn, "completed_execution", instance_id=case, scope_id=scope, element_id="sub", number=number)
        rows.insert(conn, "completed_execution", instance_id=case, within_id=outer, element_id="a", number=number)
    lease = cancelling(conn, case)  # they count
    sizes = finish(conn, lease)
    assert max(sizes) <= STEP_ROWS
    assert (left_behind(conn), one(conn, "SELECT count(*) FROM completed_execution")) == ({}, 0)
