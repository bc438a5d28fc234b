"""A version is suspended and resumed: what starts, what rests, which cases go along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.delete_version import delete_version
from engine.commands.deliver_message import deliver_message
from engine.commands.messages import publish_message
from engine.commands.outcome import (
    DefinitionResumed,
    DefinitionSuspended,
    ItemDone,
    ItemReleased,
    ItemsHeld,
    Lease,
    MessagePublished,
    Refusal,
    Rejected,
)
from engine.commands.start import start_instance
from engine.commands.suspend import AT_ONCE, hold_step, resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import acquire_jobs, recover_expired
from tests import rows
from tests.cast import ADA, CY, OP, engage
from tests.commands.cases import acquired, deployed, kinds, lease_of, started
from tests.commands.test_deploy import put
from tests.commands.test_suspend import held
from tests.conftest import Clock
from tests.core.models import model, service, tells, user
from tests.rows import columns, everything, one

Connection = psycopg.Connection[Any]

BOTH = """<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
  targetNamespace="urn:t">
  <message id="order" name="ORDER" />
  <process id="both" isExecutable="true">
    <startEvent id="tick"><timerEventDefinition><timeCycle>R/PT10M</timeCycle></timerEventDefinition></startEvent>
    <startEvent id="heard"><messageEventDefinition messageRef="order" /></startEvent>
    <userTask id="a" name="{name}" /><endEvent id="e" /><sequenceFlow id="h" sourceRef="a" targetRef="e" />
    <sequenceFlow id="f" sourceRef="tick" targetRef="a" /><sequenceFlow id="g" sourceRef="heard" targetRef="a" />
  </process>
</definitions>"""


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def both(conn: Connection, name: str = "A") -> UUID:
    return put(conn, BOTH.format(name=name).encode()).definitions[0].id


def suspend(conn: Connection, version: UUID, reason: str = "audit", **values: Any) -> Any:
    return suspend_definition(conn, version, actor=values.pop("actor", OP), reason=reason, **values)


def resume(conn: Connection, version: UUID, **values: Any) -> Any:
    return resume_definition(conn, version, actor=values.pop("actor", OP), **values)


def the_holder(conn: Connection) -> Lease:
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=1, lease_seconds=30, workers=1)
    return lease_of(item)


def finish(conn: Connection) -> int:
    """All steps of the one job; how many."""
    lease, steps = the_holder(conn), 0
    while isinstance(outcome := hold_step(conn, lease), ItemsHeld):
        steps += 1
        assert steps < 100, "the steps do not come to an end"
    assert outcome == ItemDone(lease.item_id, lease.number)
    return steps


def marks(conn: Connection, *cases: UUID) -> list[str | None]:
    return [columns(conn, "process_instance", case, "mark")[0] for case in cases]


def working(conn: Connection, many: int = 3) -> tuple[UUID, list[UUID]]:
    """A version with so many running cases, one that has ended, one of another version, and one that it was called by."""
    version = deployed(conn, model("start -> score -> end", score=service("work")))
    cases = [started(conn).instance_id for _ in range(many)]
    rows.instance(conn, version, status="completed", ended_at="2026-01-01")
    rows.instance(conn, version, root_id=rows.instance(conn))
    rows.instance(conn, deployed(conn, model("start -> score -> end", score=service("work")), version=2))
    return version, cases


def test_nothing_starts_by_a_suspended_version_and_who_tries_hears_who_when_and_why(conn: Connection) -> None:
    version, cases = working(conn)
    assert suspend(conn, version) == DefinitionSuspended(version, "model", 1)
    at = one(conn, "SELECT suspended_at FROM suspension")
    before = everything(conn)
    refused = start_instance(conn, "model", actor=ADA, variables={}, version=1, request_id="1")
    assert isinstance(refused, Rejected)
    assert (refused.refusal, refused.by, refused.by_name, refused.at, refused.detail) == (
        Refusal.DEFINITION_SUSPENDED, "op", "Op Erator", at, "audit",
    )  # fmt: skip
    assert everything(conn) == before
    assert marks(conn, *cases) == [None] * 3, "its cases go on"
    assert len(acquired(conn)) == 3
    assert resume(conn, version) == DefinitionResumed(version, "model", 1)
    assert not isinstance(start_instance(conn, "model", actor=ADA, variables={}, version=1), Rejected)


def test_its_cases_go_along_one_by_one_and_go_on_again_with_it(conn: Connection) -> None:
    version, cases = working(conn)
    suspend_instance(conn, cases[1], actor=OP, reason="for itself")
    assert suspend(conn, version, with_cases=True) == DefinitionSuspended(version, "model", 1, with_cases=True)
    assert marks(conn, *cases) == [None, "suspended", None], "the version was marked and committed first"
    assert finish(conn) == 3
    assert marks(conn, *cases) == ["suspended"] * 3
    assert one(conn, "SELECT count(*) FROM process_instance WHERE mark IS NOT NULL") == 3
    assert [each for each in held(conn) if each[1]] == [("job available", ["suspended"])] * 3
    told = conn.execute("SELECT suspended_by, reason FROM suspension WHERE object_id = %s", (cases[0],)).fetchone()
    assert told == ("op", "audit")
    assert kinds(conn, cases[0])[-1] == "instance_suspended"

    assert resume(conn, version, reason="done") == DefinitionResumed(version, "model", 1, with_cases=True)
    assert finish(conn) == 2
    assert marks(conn, *cases) == [None, "suspended", None]
    assert [kinds(conn, case)[-1] for case in cases] == ["instance_resumed", "instance_suspended", "instance_resumed"]
    assert one(conn, "SELECT count(*) FROM suspension") == 1
    assert sorted(held(conn)) == [("job available", [])] * 2 + [("job available", ["suspended"])]


def test_a_case_that_was_let_go_on_by_itself_stays_so(conn: Connection) -> None:
    version, cases = working(conn)
    suspend(conn, version, with_cases=True)
    finish(conn)
    resume_instance(conn, cases[0], actor=OP)
    suspend_instance(conn, cases[0], actor=OP, reason="again, for itself")
    resume_instance(conn, cases[1], actor=OP)
    resume(conn, version)
    assert finish(conn) == 1
    assert marks(conn, *cases) == ["suspended", None, None]


def test_a_suspension_that_is_taken_back_half_way_takes_no_further_case_along(conn: Connection) -> None:
    version, cases = working(conn)
    suspend(conn, version, with_cases=True)
    holding = the_holder(conn)
    assert isinstance(hold_step(conn, holding), ItemsHeld)
    resume(conn, version)
    assert hold_step(conn, holding) == ItemDone(holding.item_id, holding.number)
    assert finish(conn) == 1
    assert marks(conn, *cases) == [None] * 3


def test_one_that_comes_again_half_way_through_the_resumption_has_all_of_them(conn: Connection) -> None:
    version, cases = working(conn)
    suspend(conn, version, with_cases=True)
    finish(conn)
    resume(conn, version)
    freeing = the_holder(conn)
    assert isinstance(hold_step(conn, freeing), ItemsHeld)
    suspend(conn, version, with_cases=True)
    holding = the_holder(conn)
    while isinstance(hold_step(conn, freeing), ItemsHeld):
        pass
    while isinstance(hold_step(conn, holding), ItemsHeld):
        pass
    assert marks(conn, *cases) == ["suspended"] * 3
    resume(conn, version)
    assert finish(conn) == 3
    assert marks(conn, *cases) == [None] * 3


def test_one_that_comes_again_and_is_faster_than_the_resumption_keeps_all_of_them(conn: Connection) -> None:
    version, cases = working(conn)
    suspend(conn, version, "the first", with_cases=True)
    finish(conn)
    resume(conn, version)
    freeing = the_holder(conn)
    assert isinstance(hold_step(conn, freeing), ItemsHeld)
    suspend(conn, version, "the second", with_cases=True)
    finish(conn)
    while isinstance(hold_step(conn, freeing), ItemsHeld):
        pass
    assert marks(conn, *cases) == ["suspended"] * 3, "what the first resumption had not come to belongs to the second suspension"
    assert conn.execute("SELECT DISTINCT reason FROM suspension").fetchall() == [("the second",)]
    resume(conn, version)
    assert finish(conn) == 3
    assert marks(conn, *cases) == [None] * 3
    assert {tuple(each[1]) for each in held(conn)} == {()}


def test_a_case_with_more_work_than_one_step_holds_gets_a_job_of_its_own(conn: Connection) -> None:
    version, (case, *_) = working(conn)
    token = rows.token(conn, case)
    for _ in range(AT_ONCE):
        rows.external_task(conn, case, token_id=token)
    suspend(conn, version, with_cases=True)
    lease = the_holder(conn)
    while isinstance(hold_step(conn, lease), ItemsHeld):
        pass
    assert marks(conn, case) == ["suspending"]
    assert finish(conn) == 0
    assert (marks(conn, case), {each[1][0] for each in held(conn) if each[0] == "external available"}) == (["suspended"], {"suspended"})
    resume(conn, version)
    lease = the_holder(conn)
    while isinstance(hold_step(conn, lease), ItemsHeld):
        pass
    finish(conn)
    assert {tuple(each[1]) for each in held(conn)} == {()}


def test_a_case_that_is_being_cancelled_stays_so_and_what_it_left_is_cleared(conn: Connection) -> None:
    version, (case,) = working(conn, 1)
    suspend(conn, version, with_cases=True)
    finish(conn)
    resume(conn, version)
    conn.execute("UPDATE process_instance SET mark = 'cancelling' WHERE id = %s", (case,))  # by who left its suspension where it was
    assert finish(conn) == 1
    assert (marks(conn, case), one(conn, "SELECT count(*) FROM suspension")) == (["cancelling"], 0)


def test_R4_a_step_under_a_lost_lease_takes_no_case_along(conn: Connection, clock: Clock) -> None:
    version, cases = working(conn)
    suspend(conn, version, with_cases=True)
    lost = the_holder(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=5)
    before = everything(conn)
    refused = hold_step(conn, lost)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.LEASE_LOST
    assert everything(conn) == before
    finish(conn)
    assert marks(conn, *cases) == ["suspended"] * 3


# ---- start events


def test_its_start_timers_rest_and_messages_to_it_are_refused(conn: Connection, clock: Clock) -> None:
    version = both(conn)
    clock.advance(minutes=11)
    (leased,) = acquired(conn)
    suspend(conn, version)
    assert one(conn, "SELECT held FROM job") == ["suspended"], "one that was leased just before, too"
    refused = publish_message(conn, "ORDER", actor=OP, variables={}, time_to_live_seconds=60)
    assert isinstance(refused, Rejected) and (refused.refusal, refused.by) == (Refusal.DEFINITION_SUSPENDED, "op")
    clock.advance(minutes=60)
    recover_expired(conn, limit=5)
    assert acquired(conn) == []
    resume(conn, version)
    assert [lease.item_id for lease in acquired(conn)] == [leased.item_id]
    assert isinstance(publish_message(conn, "ORDER", actor=OP, variables={}), MessagePublished)


def test_a_stored_message_on_its_way_to_a_start_event_waits_with_it_without_a_loop(conn: Connection, clock: Clock) -> None:
    publish_message(conn, "ORDER", actor=OP, variables={}, time_to_live_seconds=3600)
    version = both(conn)
    (lease,) = acquired(conn)
    conn.execute("UPDATE process_definition SET status = 'suspended'")
    assert deliver_message(conn, lease) == ItemReleased(lease.item_id)
    assert columns(conn, "job", lease.item_id, "attempts", "held") == (0, ["suspended"])
    clock.advance(minutes=5)
    assert acquired(conn) == []
    resume(conn, version)
    (lease,) = acquired(conn)
    assert isinstance(deliver_message(conn, lease), ItemDone)
    assert one(conn, "SELECT count(*) FROM process_instance") == 1


@pytest.mark.parametrize("by", ["resuming it", "deploying a new version"])
def test_a_message_that_a_case_threw_to_it_waits_until_somebody_starts_by_it(conn: Connection, clock: Clock, by: str) -> None:
    version = both(conn)
    deployed(conn, replace(model("start -> tell -> end", tell=tells("ORDER")), key="thrower"))
    started(conn, "thrower", business_key="7")
    suspend(conn, version)
    (lease,) = acquired(conn)
    assert publish_thrown(conn, lease) == ItemReleased(lease.item_id)
    clock.advance(minutes=5)
    assert acquired(conn) == []
    if by == "resuming it":
        resume(conn, version)
    else:
        both(conn, "another")
    (lease,) = acquired(conn)
    assert isinstance(publish_thrown(conn, lease), ItemDone)
    assert columns(conn, "process_instance", one(conn, "SELECT id FROM process_instance WHERE status = 'running'"), "business_key") == (
        "7",
    )


def test_a_new_version_is_active_and_its_deletion_gives_the_suspended_one_back_with_its_timers_at_rest(
    conn: Connection, clock: Clock
) -> None:
    version = both(conn)
    suspend(conn, version)
    second = both(conn, "another")
    assert one(conn, "SELECT held FROM job") == []
    delete_version(conn, second, actor=OP, reason="a mistake")
    assert conn.execute("SELECT definition_id, held FROM job").fetchall() == [(version, ["suspended"])]
    clock.advance(minutes=20)
    assert acquired(conn) == []
    resume(conn, version)
    assert len(acquired(conn)) == 1


def test_the_suspension_of_a_version_that_is_deleted_is_gone(conn: Connection) -> None:
    version = both(conn)
    suspend(conn, version)
    delete_version(conn, version, actor=OP, reason="a mistake")
    assert one(conn, "SELECT count(*) FROM suspension") == 0
    for what in (suspend, resume):
        assert what(conn, version).refusal is Refusal.DEFINITION_DELETING


# ---- who may, and how often


def test_R13_only_operators_suspend_a_version_and_only_of_their_tenant(conn: Connection) -> None:
    version = deployed(conn, model("start -> a -> end", a=user()))
    before = everything(conn)
    for what in (suspend, resume):
        assert what(conn, version, actor=ADA, request_id="1") == Rejected(Refusal.NOT_ALLOWED)
        assert what(conn, version, actor=CY) == Rejected(Refusal.NOT_ALLOWED)
        assert what(conn, UUID(int=7)) == Rejected(Refusal.NOT_FOUND)
        assert what(conn, version, actor=replace(OP, tenant_id="other")) == Rejected(Refusal.NOT_FOUND)
        assert what(conn, version, reason="x" * 501).refusal is Refusal.INVALID
    assert everything(conn) == before


def test_R10_a_repeat_is_harmless_and_another_press_hears_who_did_it_and_when(conn: Connection) -> None:
    version = deployed(conn, model("start -> a -> end", a=user()))
    done = suspend(conn, version, request_id="1")
    before = everything(conn)
    assert suspend(conn, version, request_id="1") == done
    late = suspend(conn, version, "another", request_id="2")
    assert (late.refusal, late.by, late.at) == (Refusal.ALREADY_SUSPENDED, "op", one(conn, "SELECT suspended_at FROM suspension"))
    assert everything(conn) == before
    assert resume(conn, version, request_id="3") == resume(conn, version, request_id="3")
    before = everything(conn)
    late = resume(conn, version, request_id="4")
    at = one(conn, "SELECT at FROM history WHERE kind = 'definition_resumed'")
    assert (late.refusal, late.by, late.at) == (Refusal.NOT_SUSPENDED, "op", at)
    assert everything(conn) == before


def test_it_stands_in_the_history_and_in_the_audit(conn: Connection) -> None:
    version = deployed(conn, model("start -> a -> end", a=user()))
    suspend(conn, version, "audit", with_cases=True)
    resume(conn, version, reason="done")
    told = {"key": "model", "version": 1}
    assert conn.execute("SELECT kind, actor, item_id, data FROM history ORDER BY id").fetchall() == [
        ("definition_suspended", "op", version, {**told, "reason": "audit", "with_cases": True}),
        ("definition_resumed", "op", version, {**told, "reason": "done", "with_cases": False}),
    ]
    noted = conn.execute("SELECT actor, action, object_kind, object_id, reason FROM audit ORDER BY at").fetchall()
    assert noted == [("op", "suspend", "definition", str(version), "audit"), ("op", "resume", "definition", str(version), "done")]
