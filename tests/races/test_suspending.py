"""A suspension, of a case or of a version, meets what people and workers do at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.commands import suspend as suspending
from engine.commands.complete_task import complete_task
from engine.commands.messages import publish_message
from engine.commands.outcome import (
    DefinitionResumed,
    DefinitionSuspended,
    InstanceResumed,
    InstanceStarted,
    InstanceSuspended,
    ItemDone,
    ItemReleased,
    ItemsHeld,
    Lease,
    MessagePublished,
    Refusal,
    Rejected,
    TaskCompleted,
)
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.suspend import hold_step, resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import acquire_jobs
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, ROOT, engage
from tests.commands import cases
from tests.commands.test_suspend import thrown_to_a_suspended_one
from tests.core.models import catch, model, service, user
from tests.races.contest import Connection, Contender, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR NO KEY UPDATE"
MINE = user(assignee=parse("${'ada'}"))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def suspending_case(case: UUID, request_id: str | None = None, actor: Any = OP) -> Any:
    return lambda c: suspend_instance(c, case, actor=actor, reason="audit", request_id=request_id)


def resuming_case(case: UUID) -> Any:
    return lambda c: resume_instance(c, case, actor=OP)


def suspending_version(version: UUID, *, with_cases: bool = True) -> Any:
    return lambda c: suspend_definition(c, version, actor=OP, reason="audit", with_cases=with_cases)


def mark(conn: Connection, case: UUID) -> str | None:
    return rows.columns(conn, "process_instance", case, "mark")[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("first", ["completion", "suspension"])
def test_S58_of_a_completion_and_a_suspension_the_first_is_done_and_what_it_wrote_is_held(
    conn: Connection, database_url: str, first: str
) -> None:
    cases.deployed(conn, model("start -> a -> work -> end", a=MINE, work=service("work")))
    case = cases.started(conn).instance_id
    task = cases.the_task(conn, "a")
    acts = [lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None), suspending_case(case)]
    if first == "completion":
        completed, suspended = contest(database_url, ROOT_ROW, (case,), *acts)
        assert isinstance(completed, TaskCompleted)
        assert rows.one(conn, "SELECT held FROM job") == ["suspended"], "the suspension looked after it had waited"
    else:
        suspended, completed = contest(database_url, ROOT_ROW, (case,), *reversed(acts))
        assert (completed.refusal, completed.by, completed.detail) == (Refusal.INSTANCE_SUSPENDED, "op", "audit")
    assert suspended == InstanceSuspended(case)
    assert cases.acquired(conn) == []


def test_S58_what_is_being_leased_while_its_case_is_suspended_is_held_all_the_same(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    case = rows.instance(conn)
    job = rows.job(conn, case)
    acquire = lambda c: acquire_jobs(c, owner="w", capabilities=[("service", "score")], limit=1, lease_seconds=30, workers=1)  # noqa: E731
    with held_at(database_url, "acquire.before_commit", acquire, tmp_path) as leasing:
        suspension = Contender(database_url, suspending_case(case)).seen_waiting(conn)
    assert len(leasing.outcome()) == 1
    assert suspension.outcome() == InstanceSuspended(case)
    assert rows.columns(conn, "job", job, "status", "held") == ("leased", ["suspended"])


def test_S58_two_suspensions_of_one_case_the_second_hears_of_the_first(conn: Connection, database_url: str) -> None:
    case = rows.instance(conn)
    won, lost = contest(database_url, ROOT_ROW, (case,), suspending_case(case), suspending_case(case, actor=ROOT))
    assert (won, lost.refusal, lost.by) == (InstanceSuspended(case), Refusal.ALREADY_SUSPENDED, "op")
    assert rows.one(conn, "SELECT count(*) FROM history") == 1


def test_S58_the_same_press_of_a_suspension_twice_at_once_has_one_answer(conn: Connection, database_url: str) -> None:
    case = rows.instance(conn)
    assert contest(database_url, ROOT_ROW, (case,), *[suspending_case(case, "1")] * 2) == [InstanceSuspended(case)] * 2
    assert rows.one(conn, "SELECT count(*) FROM audit") == 1


def test_S58_two_resumptions_beside_a_suspension_free_once_and_leave_the_last_word_to_the_last(conn: Connection, database_url: str) -> None:
    case = rows.instance(conn)
    job = rows.job(conn, case)
    suspending_case(case)(conn)
    freed, second, again = contest(
        database_url, ROOT_ROW, (case,), resuming_case(case), resuming_case(case), suspending_case(case)
    )  # fmt: skip
    assert (freed, again) == (InstanceResumed(case), InstanceSuspended(case))
    if second == InstanceResumed(case):  # the suspension passed it
        last_word: Any = (None, ([],))
    else:
        assert (second.refusal, second.by) == (Refusal.NOT_SUSPENDED, "op")
        last_word = ("suspended", (["suspended"],))
    assert (mark(conn, case), rows.columns(conn, "job", job, "held")) == last_word


def test_S58_a_resumption_waits_for_a_step_that_holds_and_frees_what_it_held(
    conn: Connection, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspending, "AT_ONCE", 2)
    case = rows.instance(conn)
    for _ in range(6):
        rows.job(conn, case)
    assert suspending_case(case)(conn) == InstanceSuspended(case, finishing=True)
    lease = the_holder(conn)
    with held_at(database_url, "command.before_commit", lambda c: hold_step(c, lease, most=2), tmp_path) as step:
        resumption = Contender(database_url, resuming_case(case)).seen_waiting(conn)
    assert isinstance(step.outcome(), ItemsHeld)
    assert resumption.outcome() == InstanceResumed(case, finishing=True)
    assert isinstance(hold_step(conn, lease), ItemDone)
    freeing = the_holder(conn)
    while isinstance(hold_step(conn, freeing, most=2), ItemsHeld):
        pass
    assert conn.execute("SELECT DISTINCT held FROM job").fetchall() == [([],)]


def test_S58_a_message_that_waits_for_a_suspension_is_refused(conn: Connection, database_url: str) -> None:
    cases.deployed(conn, model("start -> wait -> end", wait=catch(on="PAID")))
    case = cases.started(conn, business_key="7").instance_id
    publish = lambda c: publish_message(c, "PAID", actor=OP, correlation_key="7", variables={})  # noqa: E731
    _, refused = contest(database_url, ROOT_ROW, (case,), suspending_case(case), publish)
    assert (refused.refusal, refused.by) == (Refusal.INSTANCE_SUSPENDED, "op")


def test_S58_a_thrown_message_that_waits_along_while_its_receiver_is_resumed_is_freed(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    receiver, lease = thrown_to_a_suspended_one(conn)
    # Its first commit: the look before it found who waits, and rolled back.
    with held_at(database_url, "command.before_commit", lambda c: publish_thrown(c, lease), tmp_path) as waiting:
        resumption = Contender(database_url, resuming_case(receiver)).seen_waiting(conn)
    assert waiting.outcome() == ItemReleased(lease.item_id)
    assert resumption.outcome() == InstanceResumed(receiver)
    [again] = cases.acquired(conn)
    assert isinstance(publish_thrown(conn, again), ItemDone)


def test_S58_a_signal_that_is_spread_while_its_receiver_is_resumed_is_received(conn: Connection, database_url: str, tmp_path: Path) -> None:
    cases.deployed(conn, model("start -> wait -> after -> end", wait=catch(signal="GO"), after=MINE))
    case = cases.started(conn).instance_id
    broadcast_signal(conn, "GO", actor=OP, variables={})
    [throw] = cases.acquired(conn)
    suspending_case(case)(conn)
    with held_at(database_url, "command.before_commit", lambda c: spread_signal(c, throw), tmp_path) as spreading:
        assert resuming_case(case)(conn) == InstanceResumed(case)
    assert isinstance(spreading.outcome(), ItemDone)
    [delivery] = cases.acquired(conn)
    assert isinstance(receive_signal(conn, delivery), ItemDone)
    assert cases.places(conn, case) == [("after", "waiting")]


# ---- of a version


def the_holder(conn: Connection) -> Lease:
    [item] = acquire_jobs(conn, owner="w", capabilities=[("hold", "")], limit=1, lease_seconds=30, workers=1)
    return cases.lease_of(item)


def test_S58_no_start_slips_past_the_suspension_of_its_definition_with_all_cases(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    version = cases.deployed(conn, model("start -> a -> end", a=MINE))
    start = lambda c: start_instance(c, "model", actor=ADA, variables={})  # noqa: E731
    with held_at(database_url, "command.before_commit", start, tmp_path) as under_way:
        suspension = Contender(database_url, suspending_version(version)).seen_waiting(conn)
        beside = start(conn)  # it does not wait behind the suspension, which waits for both
    begun = under_way.outcome()
    assert isinstance(begun, InstanceStarted) and isinstance(beside, InstanceStarted)
    assert suspension.outcome() == DefinitionSuspended(version, "model", 1, with_cases=True)
    refused = start(conn)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.DEFINITION_SUSPENDED
    lease = the_holder(conn)
    while isinstance(hold_step(conn, lease), ItemsHeld):
        pass
    assert [mark(conn, case.instance_id) for case in (begun, beside)] == ["suspended"] * 2, "both had begun before, so both were listed"
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 2


def test_S58_a_resumption_waits_for_the_step_that_takes_a_case_along_and_lets_it_go_on(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    version = cases.deployed(conn, model("start -> a -> end", a=MINE))
    first, second = (cases.started(conn).instance_id for _ in range(2))
    suspending_version(version)(conn)
    holding = the_holder(conn)
    with held_at(database_url, "command.before_commit", lambda c: hold_step(c, holding), tmp_path) as step:
        resumption = Contender(database_url, lambda c: resume_definition(c, version, actor=OP)).seen_waiting(conn)
    assert isinstance(step.outcome(), ItemsHeld)
    assert resumption.outcome() == DefinitionResumed(version, "model", 1, with_cases=True)
    assert isinstance(hold_step(conn, holding), ItemDone), "it is over"
    freeing = the_holder(conn)
    while isinstance(hold_step(conn, freeing), ItemsHeld):
        pass
    assert [mark(conn, case) for case in (first, second)] == [None, None]


def test_S58_a_step_that_waits_for_a_resumption_takes_no_case_along(conn: Connection, database_url: str, tmp_path: Path) -> None:
    version = cases.deployed(conn, model("start -> a -> end", a=MINE))
    case = cases.started(conn).instance_id
    suspending_version(version)(conn)
    holding = the_holder(conn)
    resume = lambda c: resume_definition(c, version, actor=OP)  # noqa: E731
    with held_at(database_url, "command.before_commit", resume, tmp_path) as resumption:
        step = Contender(database_url, lambda c: hold_step(c, holding)).seen_waiting(conn)
    assert resumption.outcome() == DefinitionResumed(version, "model", 1)
    assert isinstance(step.outcome(), ItemDone)
    assert mark(conn, case) is None


def test_S58_a_case_that_is_suspended_for_itself_while_the_resumption_of_its_version_waits_for_it_stays_so(
    conn: Connection, database_url: str
) -> None:
    version = cases.deployed(conn, model("start -> a -> end", a=MINE))
    case = cases.started(conn).instance_id
    suspending_version(version)(conn)
    holding = the_holder(conn)
    while isinstance(hold_step(conn, holding), ItemsHeld):
        pass
    resume_definition(conn, version, actor=OP)
    freeing = the_holder(conn)
    *_, step = contest(database_url, ROOT_ROW, (case,), resuming_case(case), suspending_case(case), lambda c: hold_step(c, freeing))
    assert step == ItemsHeld(freeing.item_id, 0)
    assert mark(conn, case) == "suspended"
    assert isinstance(hold_step(conn, freeing), ItemDone)
    assert rows.one(conn, "SELECT cause_id FROM suspension") is None


def test_S58_a_step_that_waits_for_the_end_of_a_case_passes_it_by(conn: Connection, database_url: str) -> None:
    version = cases.deployed(conn, model("start -> a -> end", a=MINE))
    case = cases.started(conn).instance_id
    task = cases.the_task(conn, "a")
    suspending_version(version)(conn)
    holding = the_holder(conn)
    complete = lambda c: complete_task(c, task, actor=ADA, variables={}, request_id=None)  # noqa: E731
    _, step = contest(database_url, ROOT_ROW, (case,), complete, lambda c: hold_step(c, holding))
    assert step == ItemsHeld(holding.item_id, 0)
    assert rows.columns(conn, "process_instance", case, "status", "mark") == ("completed", None)
    assert rows.one(conn, "SELECT count(*) FROM suspension") == 1, "that of the version"


def test_S58_a_suspension_that_waits_for_the_message_that_ends_its_case_hears_so(conn: Connection, database_url: str) -> None:
    cases.deployed(conn, model("start -> wait -> end", wait=catch(on="PAID")))
    case = cases.started(conn, business_key="7").instance_id
    publish = lambda c: publish_message(c, "PAID", actor=OP, correlation_key="7", variables={})  # noqa: E731
    sent, suspended = contest(database_url, ROOT_ROW, (case,), publish, suspending_case(case))
    assert isinstance(sent, MessagePublished)
    assert suspended.refusal is Refusal.INSTANCE_ENDED
