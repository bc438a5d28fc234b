"""Work is paused: a topic, a kind, a process, an element; and goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.jobs import complete_job
from engine.commands.leases import release
from engine.commands.outcome import (
    ItemDone,
    ItemReleased,
    ItemsHeld,
    Lease,
    Refusal,
    Rejected,
    WorkPaused,
    WorkUnpaused,
)
from engine.commands.pause import pause_work, unpause_work
from engine.commands.suspend import hold_step, resume_instance, suspend_instance
from engine.db.acquire import acquire_deliveries, acquire_jobs, recover_expired
from engine.db.load import load_batch
from engine.db.outbox import load_requests
from engine.db.session import connect
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, lease_of, started
from tests.conftest import Clock
from tests.core.models import model, par, service
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]
OTHER = replace(OP, tenant_id="acme")


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def pause(conn: Connection, kind: str, topic: str = "", *, actor: Any = OP, **values: Any) -> Any:
    return pause_work(conn, kind, topic, actor=actor, reason=values.pop("reason", "the bank is down"), **values)


def unpause(conn: Connection, kind: str, topic: str = "", *, actor: Any = OP, **values: Any) -> Any:
    return unpause_work(conn, kind, topic, actor=actor, **values)


def holding(conn: Connection, *, most: int = 100) -> int:
    """All steps that are due of the one job that holds or frees; how many."""
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=2, lease_seconds=30, workers=1)
    lease, steps = lease_of(item), 1
    while isinstance(outcome := hold_step(conn, lease, most=most), ItemsHeld):
        steps += 1
        assert steps < 100, "the steps do not come to an end"
    assert isinstance(outcome, ItemDone | ItemReleased)
    return steps


def work_of(conn: Connection, key: str, element: str = "score", *, tenant_id: str = "", **values: Any) -> UUID:
    found = conn.execute("SELECT id FROM process_definition WHERE key = %s", (key,)).fetchone()
    case = rows.instance(conn, found[0] if found else rows.definition(conn, key, tenant_id=tenant_id), tenant_id=tenant_id)
    return rows.job(conn, case, element_id=element, tenant_id=tenant_id, **values)


def due(conn: Connection, *topics: str) -> set[UUID]:
    capabilities = [("service", topic) for topic in topics or ("score",)]
    return {item.item_id for item in acquire_jobs(conn, owner="w", capabilities=capabilities, limit=50, lease_seconds=30, workers=1)}


@pytest.mark.parametrize("topic", ["score", "*"])
def test_F48_a_paused_topic_rests_from_the_commit_on_and_nothing_has_to_be_held(conn: Connection, topic: str) -> None:
    paused, other = work_of(conn, "a"), work_of(conn, "b", topic="other")
    assert pause(conn, "service", topic) == WorkPaused("service", topic)
    assert due(conn, "score", "other") == (set() if topic == "*" else {other})
    assert one(conn, "SELECT count(*) FROM job WHERE held <> '{}' OR kind = 'hold'") == 0
    assert unpause(conn, "service", topic) == WorkUnpaused("service", topic)
    assert paused in due(conn, "score", "other")


@pytest.mark.parametrize("topic", ["score", "*"])
def test_F48_a_paused_topic_of_external_tasks_rests_for_its_tenant_alone(conn: Connection, topic: str) -> None:
    mine = rows.external_task(conn)
    theirs = rows.external_task(conn, tenant_id="acme")
    pause(conn, "external_task", topic, actor=OTHER)
    assert [task.id for task in acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"])] == [mine]  # type: ignore[union-attr]
    assert acquire_external_tasks(conn, actor=OTHER, worker_id="w", topics=["score"]) == []
    unpause(conn, "external_task", topic, actor=OTHER)
    assert [t.id for t in acquire_external_tasks(conn, actor=OTHER, worker_id="w", topics=["score"])] == [theirs]  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "topic", "steps"), [("definition", "a", 7), ("element", "a/score", 6)])
def test_F48_a_paused_process_or_element_is_held_step_by_step_and_goes_on(conn: Connection, kind: str, topic: str, steps: int) -> None:
    mine = {work_of(conn, "a") for _ in range(5)}
    version = one(conn, "SELECT id FROM process_definition")
    for _ in range(5):
        rows.instance(conn, version, status="completed", ended_at="2026-01-01")
    elsewhere = work_of(conn, "a", "ship")
    other = work_of(conn, "b")
    assert pause(conn, kind, topic) == WorkPaused(kind, topic)
    assert holding(conn, most=2) == steps, "two running cases at a time, once more where two items were found; the last finds no case"
    held = {row[0] for row in conn.execute("SELECT id FROM job WHERE held = '{paused}'").fetchall()}
    assert held == (mine | {elsewhere} if kind == "definition" else mine)
    assert due(conn) == {other} | ({elsewhere} if kind == "element" else set())

    assert unpause(conn, kind, topic) == WorkUnpaused(kind, topic)
    holding(conn, most=2)
    assert one(conn, "SELECT count(*) FROM job WHERE held <> '{}'") == 0
    conn.execute("UPDATE job SET available_at = baton_clock() WHERE kind = 'service'")
    assert due(conn) >= mine


def test_external_tasks_deliveries_and_start_timers_of_a_paused_process_rest_too(conn: Connection) -> None:
    case = rows.instance(conn, version := rows.definition(conn, "a"))
    rows.external_task(conn, case)
    rows.delivery(conn, case)
    rows.insert(conn, "job", kind="start_timer", definition_id=version, element_id="tick", due_at="2026-01-01", available_at="2026-01-01")
    pause(conn, "definition", "a")
    holding(conn)
    held = "SELECT held FROM job WHERE kind <> 'hold' UNION ALL SELECT held FROM external_task UNION ALL SELECT held FROM delivery"
    assert [row[0] for row in conn.execute(held).fetchall()] == [["paused"]] * 3
    unpause(conn, "definition", "a")
    holding(conn)
    assert [row[0] for row in conn.execute(held).fetchall()] == [[]] * 3


def test_F48_what_was_leased_just_before_is_handed_back_unspent_and_not_leased_again(conn: Connection) -> None:
    job = work_of(conn, "a")
    [lease] = [lease_of(i) for i in acquire_jobs(conn, owner="w", capabilities=[("service", "score")], limit=1,
                                                 lease_seconds=30, workers=1)]  # fmt: skip
    assert load_batch(conn, [job])[job].held == ()
    pause(conn, "element", "a/score")
    assert load_batch(conn, [job])[job].held == ("paused",), "what the worker hands back for"
    assert release(conn, lease) == ItemReleased(job)
    assert columns(conn, "job", job, "status", "attempts", "held") == ("available", 0, ["paused"])
    assert due(conn) == set()


def test_F48_an_external_task_and_a_delivery_that_were_leased_just_before_are_not_begun(conn: Connection) -> None:
    case = rows.instance(conn, rows.definition(conn, "a"))
    delivery = rows.delivery(conn, case)
    rows.external_task(conn, case)
    acquire_deliveries(conn, owner="w", kinds=["http"], limit=1, lease_seconds=30, workers=1)
    assert set(load_requests(conn, [delivery])) == {delivery}
    pause(conn, "definition", "a")
    assert load_requests(conn, [delivery]) == {}
    # Its pause is of the process, which acquisition does not know: it is leased, read, and goes back in one call.
    assert acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["score"]) == []
    assert conn.execute("SELECT status, attempts, held FROM external_task").fetchone() == ("available", 0, ["paused"])
    release(conn, Lease("delivery", delivery, 1, "w"))
    assert columns(conn, "delivery", delivery, "status", "attempts", "held") == ("available", 0, ["paused"])


def test_work_that_is_running_ends_as_it_would_and_what_it_reaches_is_written_held(conn: Connection) -> None:
    deployed(conn, model("start -> one -> two -> end", one=service("work"), two=service("work")))
    started(conn)
    (lease,) = acquired(conn)
    pause(conn, "element", "model/two")
    assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    assert conn.execute("SELECT element_id, held FROM job WHERE kind = 'service'").fetchall() == [("two", ["paused"])]


def test_all_of_a_kind_is_written_held_too(conn: Connection) -> None:
    deployed(conn, model("start -> fork -> one -> end", "fork -> two -> end", fork=par(), one=service("work"), two=service("other")))
    pause(conn, "service", "*")
    started(conn)
    assert conn.execute("SELECT held FROM job").fetchall() == [(["paused"],)] * 2
    unpause(conn, "service", "*")
    holding(conn)
    assert conn.execute("SELECT held FROM job WHERE kind = 'service'").fetchall() == [([],)] * 2


def test_what_another_pause_or_a_suspension_holds_stays_held(conn: Connection) -> None:
    job, alone = work_of(conn, "a"), work_of(conn, "a", "ship")
    case = columns(conn, "job", job, "instance_id")[0]
    pause(conn, "definition", "a")
    holding(conn)
    pause(conn, "element", "a/score")
    holding(conn)
    suspend_instance(conn, case, actor=OP)
    unpause(conn, "definition", "a")
    holding(conn)
    assert columns(conn, "job", alone, "held") == ([],)
    assert columns(conn, "job", job, "held") == (["paused", "suspended"],)
    resume_instance(conn, case, actor=OP)
    assert columns(conn, "job", job, "held") == (["paused"],)


def test_F48_what_was_written_with_the_pause_still_in_sight_is_found_by_a_later_look(conn: Connection, clock: Clock) -> None:
    work_of(conn, "a")
    pause(conn, "element", "a/score")
    holding(conn)
    unpause(conn, "element", "a/score")
    holding(conn)
    late = work_of(conn, "a", held=["paused"])  # as a command writes it whose snapshot has the pause
    assert due(conn) and late not in due(conn)
    clock.advance(seconds=11)
    holding(conn)
    assert due(conn) == {late}
    later = work_of(conn, "a", held=["paused"])
    clock.advance(minutes=6)
    holding(conn)
    assert later in due(conn)
    assert one(conn, "SELECT count(*) FROM job WHERE kind = 'hold'") == 0, "the third look is the last"


def test_a_pause_of_another_tenant_holds_its_items_and_nobody_elses(conn: Connection) -> None:
    mine = work_of(conn, "a")
    theirs = [work_of(conn, "theirs", tenant_id="acme") for _ in range(5)]
    sent = rows.delivery(conn, tenant_id="acme")
    pause(conn, "service", "score", actor=OTHER)
    assert holding(conn, most=2) == 4
    pause(conn, "http", actor=OTHER)
    holding(conn)
    assert due(conn) == {mine}
    assert [columns(conn, "job", job, "held") for job in theirs] == [(["paused"],)] * 5
    assert columns(conn, "delivery", sent, "held") == (["paused"],)
    unpause(conn, "service", "score", actor=OTHER)
    holding(conn)
    assert [columns(conn, "job", job, "held") for job in theirs] == [([],)] * 5
    assert columns(conn, "delivery", sent, "held") == (["paused"],)


def test_a_pause_that_is_taken_back_before_it_has_held_all_holds_no_more(conn: Connection) -> None:
    for _ in range(5):
        work_of(conn, "a")
    pause(conn, "definition", "a")
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=2, lease_seconds=30, workers=1)
    assert hold_step(conn, lease_of(item), most=2) == ItemsHeld(item.item_id, 2)
    unpause(conn, "definition", "a")
    assert isinstance(hold_step(conn, lease_of(item), most=2), ItemDone)
    holding(conn)
    assert one(conn, "SELECT count(*) FROM job WHERE held <> '{}'") == 0


def test_a_step_holds_so_many_items_however_many_a_case_has(conn: Connection) -> None:
    version = rows.definition(conn, "a")
    many, few = rows.instance(conn, version), rows.instance(conn, version)
    for make in rows.MAKERS.values():
        for _ in range(5):
            make(conn, many)
        make(conn, few)
    rows.insert(conn, "job", kind="start_timer", definition_id=version, element_id="tick", due_at="2026-01-01", available_at="2026-01-01")
    pause(conn, "definition", "a")
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=2, lease_seconds=30, workers=1)
    steps = []
    while isinstance(outcome := hold_step(conn, lease_of(item), most=2), ItemsHeld):
        steps.append(outcome.rows)
    assert (max(steps), sum(steps)) == (2, 19)
    held = "SELECT held FROM job WHERE kind <> 'hold' UNION SELECT held FROM external_task UNION SELECT held FROM delivery"
    assert [row[0] for row in conn.execute(held).fetchall()] == [["paused"]]


@pytest.mark.parametrize("what", ["pause", "unpause"])
def test_R4_a_step_under_a_lost_lease_changes_nothing(conn: Connection, clock: Clock, what: str) -> None:
    work_of(conn, "a", held=[] if what == "pause" else ["paused"])
    pause(conn, "definition", "a")
    if what == "unpause":
        holding(conn)
        unpause(conn, "definition", "a")
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=2, lease_seconds=30, workers=1)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = everything(conn)
    refused = hold_step(conn, lease_of(item))
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before


# ---- who may, how often, and what


def test_R13_only_operators_pause(conn: Connection) -> None:
    before = everything(conn)
    assert pause(conn, "service", "score", actor=ADA) == Rejected(Refusal.NOT_ALLOWED)
    assert unpause(conn, "service", "score", actor=ADA) == Rejected(Refusal.NOT_ALLOWED)
    assert everything(conn) == before


def test_R10_a_repeat_is_harmless_and_another_press_hears_who_did_it_when_and_why(conn: Connection) -> None:
    assert pause(conn, "service", "score", request_id="1") == WorkPaused("service", "score")
    before = everything(conn)
    assert pause(conn, "service", "score", request_id="1") == WorkPaused("service", "score")
    late = pause(conn, "service", "score", request_id="2")
    at = one(conn, "SELECT paused_at FROM pause")
    assert (late.refusal, late.by, late.by_name, late.at, late.detail) == (
        Refusal.ALREADY_PAUSED, "op", "Op Erator", at, "the bank is down",
    )  # fmt: skip
    assert everything(conn) == before
    assert unpause(conn, "service", "score", request_id="3") == unpause(conn, "service", "score", request_id="3")
    before = everything(conn)
    late = unpause(conn, "service", "score", request_id="4")
    assert (late.refusal, late.by, late.at) == (Refusal.NOT_PAUSED, "op", one(conn, "SELECT at FROM audit WHERE action = 'unpause'"))
    assert everything(conn) == before


def test_it_stands_in_the_history_and_in_the_audit(conn: Connection) -> None:
    pause(conn, "service", "score")
    unpause(conn, "service", "score", reason="it is back")
    told = conn.execute("SELECT kind, actor, data->>'kind', data->>'topic', data->>'reason' FROM history ORDER BY id").fetchall()
    assert told == [
        ("work_paused", "op", "service", "score", "the bank is down"),
        ("work_unpaused", "op", "service", "score", "it is back"),
    ]
    noted = conn.execute("SELECT actor, action, object_kind, object_id FROM audit ORDER BY at").fetchall()
    assert noted == [("op", "pause", "work", "service score"), ("op", "unpause", "work", "service score")]


@pytest.mark.parametrize(
    ("kind", "topic"),
    [("cancel", ""), ("hold", ""), ("service", " "), ("timer", "x"), ("element", "a"), ("element", "/b"),
     ("element", "a/b/c"), ("definition", ""), ("definition", "a/b"),
     ("service", "x" * 601)],
)  # fmt: skip
def test_what_cannot_be_paused_is_invalid(conn: Connection, kind: str, topic: str) -> None:
    assert pause(conn, kind, topic).refusal is Refusal.INVALID
    assert unpause(conn, kind, topic).refusal is Refusal.INVALID


def test_a_process_that_is_not_there_is_not_found(conn: Connection) -> None:
    rows.definition(conn, "a", tenant_id="acme")
    rows.definition(conn, "a", status="deleting")
    assert pause(conn, "definition", "a") == Rejected(Refusal.NOT_FOUND)
    assert pause(conn, "element", "a/b") == Rejected(Refusal.NOT_FOUND)
    assert pause(conn, "element", "a/b", actor=OTHER) == WorkPaused("element", "a/b")


@pytest.mark.parametrize("table", ["job", "external_task", "delivery"])
def test_what_somebody_has_locked_is_passed_by_and_found_later(conn: Connection, database_url: str, clock: Clock, table: str) -> None:
    item = rows.MAKERS[table](conn, rows.instance(conn, rows.definition(conn, "a")))
    conn.execute("SET lock_timeout = '3s'")
    pause(conn, "definition", "a")
    with connect(database_url) as other, other.transaction():
        other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", (item,))
        holding(conn)
    assert columns(conn, table, item, "held") == ([],), "the read of whoever leases it hands it back"
    conn.execute(f"UPDATE {table} SET held = '{{paused}}'")
    unpause(conn, "definition", "a")
    with connect(database_url) as other, other.transaction():
        other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", (item,))
        holding(conn)
    assert columns(conn, table, item, "held") == (["paused"],)
    clock.advance(seconds=11)
    holding(conn)
    assert columns(conn, table, item, "held") == ([],)


@pytest.mark.parametrize(("kind", "table"), [("service", "job"), ("http", "delivery")])
def test_so_is_what_another_tenant_pauses(conn: Connection, database_url: str, kind: str, table: str) -> None:
    item = rows.MAKERS[table](conn, rows.instance(conn, tenant_id="acme"), tenant_id="acme")
    conn.execute("SET lock_timeout = '3s'")
    pause(conn, kind, "score" if kind == "service" else "", actor=OTHER)
    with connect(database_url) as other, other.transaction():
        other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", (item,))
        holding(conn)
    assert columns(conn, table, item, "held") == ([],)


LEASE = {"lease_owner": "w", "leased_at": "2026-01-01", "lease_expires_at": "2126-01-01"}


@pytest.mark.parametrize(("kind", "table"), [("service", "job"), ("http", "delivery")])
@pytest.mark.parametrize("status", ["failed", "leased"])
def test_what_is_not_free_is_left_as_it_is_by_another_tenants_pause(conn: Connection, kind: str, table: str, status: str) -> None:
    lease = LEASE if status == "leased" else {}
    item = rows.MAKERS[table](conn, rows.instance(conn, tenant_id="acme"), tenant_id="acme", status=status, **lease)
    pause(conn, kind, "score" if kind == "service" else "", actor=OTHER)
    holding(conn)
    assert columns(conn, table, item, "held") == ([],)


@pytest.mark.parametrize("status", ["failed", "leased"])
def test_what_is_not_free_is_left_as_it_is(conn: Connection, status: str) -> None:
    lease = LEASE if status == "leased" else {}
    case = rows.instance(conn, rows.definition(conn, "a"))
    for make in rows.MAKERS.values():
        make(conn, case, status=status, **lease)
    pause(conn, "definition", "a")
    holding(conn)
    held = "SELECT held FROM job WHERE kind <> 'hold' UNION ALL SELECT held FROM external_task UNION ALL SELECT held FROM delivery"
    assert [row[0] for row in conn.execute(held).fetchall()] == [[]] * 3
