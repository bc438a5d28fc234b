"""Two at once on one case: completions, timers, cancels, recoveries, publishers and subscribers."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fire_timer
from engine.commands.messages import publish_message
from engine.commands.outcome import (
    Actor,
    Claimed,
    InstanceCancelled,
    ItemDone,
    ItemRetried,
    MessagePublished,
    Refusal,
    Rejected,
    TaskCompleted,
)
from engine.commands.retry import retry_item
from engine.commands.tasks import claim
from engine.db.acquire import recover_expired
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, BO, OP, ROOT, engage
from tests.commands import cases
from tests.commands.test_deploy import message, process, put
from tests.conftest import Clock
from tests.core.models import boundary, catch, model, par, service, user
from tests.races.contest import Connection, Contender, contest, held_at

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"
KEY = "SELECT pg_advisory_xact_lock(baton_key_number('', %s, %s))"


def given_to(name: str) -> Any:
    return user(assignee=parse("${'" + name + "'}"))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def case_of(conn: Connection, definition: ProcessDefinition, **values: Any) -> UUID:
    cases.deployed(conn, definition)
    return cases.started(conn, **values).instance_id


def complete(task: UUID, actor: Actor = ADA, **variables: Any) -> Any:
    return lambda c: complete_task(c, task, actor=actor, variables=variables, request_id=None)


# ---- completions


def test_S20_twenty_completions_of_one_task_are_one_win_and_nineteen_refusals(conn: Connection, database_url: str) -> None:
    case = case_of(conn, model("start -> a -> b -> end", a=given_to("ada"), b=service()))
    task = cases.the_task(conn, "a")
    outcomes = contest(database_url, ROOT_ROW, (case,), *(complete(task, number=n) for n in range(20)))
    wins = [outcome for outcome in outcomes if isinstance(outcome, TaskCompleted)]
    losses = {(outcome.refusal, outcome.by) for outcome in outcomes if isinstance(outcome, Rejected)}
    assert (len(wins), losses) == (1, {(Refusal.ALREADY_COMPLETED, "ada")})
    assert cases.variables(conn, case) == {"number": outcomes.index(wins[0])}
    assert rows.one(conn, "SELECT count(*) FROM job") == 1
    assert cases.kinds(conn, case).count("task_completed") == 1


def test_R10_two_presses_of_one_completion_move_the_case_once(conn: Connection, database_url: str) -> None:
    case = case_of(conn, model("start -> a -> b -> end", a=given_to("ada"), b=user()))
    task = cases.the_task(conn, "a")
    press = lambda c: complete_task(c, task, actor=ADA, variables={}, request_id="1")  # noqa: E731
    first, second = contest(database_url, ROOT_ROW, (case,), press, press)
    assert isinstance(first, TaskCompleted)
    assert first == second
    assert cases.kinds(conn, case).count("task_completed") == 1


@pytest.mark.parametrize("order", ["task first", "timer first"])
def test_a_completion_and_an_interrupting_timer_let_one_of_them_go_on(
    conn: Connection, database_url: str, clock: Clock, order: str
) -> None:
    definition = model(
        "start -> a -> b -> end", "late -> c -> end2", a=given_to("ada"), b=user(), c=user(), late=boundary("a", after="PT1H")
    )
    case = case_of(conn, definition)
    task = cases.the_task(conn, "a")
    clock.advance(hours=2)
    [lease] = cases.acquired(conn)
    acts = [complete(task), lambda c: fire_timer(c, lease)]
    if order == "task first":
        completed, fired = contest(database_url, ROOT_ROW, (case,), *acts)
        assert isinstance(completed, TaskCompleted)
        assert fired.refusal is Refusal.LEASE_LOST
        assert cases.places(conn, case) == [("b", "waiting")]
    else:
        fired, completed = contest(database_url, ROOT_ROW, (case,), *reversed(acts))
        assert isinstance(fired, ItemDone)
        assert completed.refusal is Refusal.ALREADY_CANCELLED
        assert cases.places(conn, case) == [("c", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


@pytest.mark.parametrize("first", ["a", "b"])
def test_S22_two_different_tasks_of_one_case_both_succeed_and_the_join_fires_once(conn: Connection, database_url: str, first: str) -> None:
    flows = ("start -> split -> a -> join -> work -> end", "split -> b -> join")
    case = case_of(conn, model(*flows, split=par(), join=par(), a=given_to("ada"), b=given_to("bo"), work=service()))
    acts = [complete(cases.the_task(conn, "a"), ADA), complete(cases.the_task(conn, "b"), BO)]
    outcomes = contest(database_url, ROOT_ROW, (case,), *(acts if first == "a" else reversed(acts)))
    assert all(isinstance(outcome, TaskCompleted) for outcome in outcomes)
    assert cases.kinds(conn, case).count("join_passed") == 1
    [lease] = cases.acquired(conn)
    assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    assert cases.status(conn, case) == "completed"


# ---- cancels


@pytest.mark.parametrize("order", ["claim first", "cancel first"])
def test_a_claim_and_a_cancel(conn: Connection, database_url: str, order: str) -> None:
    case = case_of(conn, model("start -> a -> end", a=user(candidate_groups=(parse("${'billing'}"),))))
    task = cases.the_task(conn, "a")
    acts = [
        lambda c: claim(c, task, actor=ADA, request_id="1"),
        lambda c: cancel_instance(c, case, actor=OP, reason="", request_id="1"),
    ]
    lock = "SELECT 1 FROM user_task WHERE id = %s FOR UPDATE"
    if order == "claim first":
        claimed, cancelled = contest(database_url, lock, (task,), *acts)
        assert isinstance(claimed, Claimed)
    else:
        cancelled, claimed = contest(database_url, lock, (task,), *reversed(acts))
        assert (claimed.refusal, claimed.by) == (Refusal.ALREADY_CANCELLED, "op")
    assert isinstance(cancelled, InstanceCancelled)
    assert rows.columns(conn, "user_task", task, "status") == ("cancelled",)
    assert rows.one(conn, "SELECT count(*) FROM inbox_entry") == 0


def test_two_cancels_of_one_case(conn: Connection, database_url: str) -> None:
    case = case_of(conn, model("start -> a -> end", a=user()))
    acts = [lambda c, who=who: cancel_instance(c, case, actor=who, reason="", request_id="1") for who in (OP, ROOT)]
    won, lost = contest(database_url, ROOT_ROW, (case,), *acts)
    assert isinstance(won, InstanceCancelled)
    assert (lost.refusal.value in ("instance_ended", "already_cancelled"), lost.by) == (True, "op")


# ---- recovery


def expired(conn: Connection, clock: Clock, **work: Any) -> tuple[UUID, Any]:
    case = case_of(conn, model("start -> work -> next -> end", work=service(**work), next=user()))
    [lease] = cases.acquired(conn)
    clock.advance(seconds=31)
    return case, lease


def test_F3_a_completion_that_meets_its_recovery_is_told_that_the_lease_is_lost(conn: Connection, database_url: str, clock: Clock) -> None:
    case, lease = expired(conn, clock)
    with connect(database_url) as recoverer:
        recoverer.execute("BEGIN")
        assert len(recover_expired(recoverer, limit=1)) == 1
        late = Contender(database_url, lambda c: complete_job(c, lease, variables={"a": 1})).seen_waiting(conn)
        recoverer.execute("COMMIT")
        assert late.outcome().refusal is Refusal.LEASE_LOST
    assert cases.places(conn, case) == [("work", "waiting")]
    assert cases.variables(conn, case) == {}
    assert rows.one(conn, "SELECT status FROM job") == "available"


def test_F3_a_recovery_that_meets_a_completion_takes_nothing_back_and_does_not_wait(
    conn: Connection, database_url: str, clock: Clock, tmp_path: Path
) -> None:
    case, lease = expired(conn, clock)
    with held_at(database_url, "command.before_commit", lambda c: complete_job(c, lease, variables={}), tmp_path) as held:
        assert recover_expired(conn, limit=10) == []
    assert isinstance(held.outcome(), ItemDone)
    assert cases.places(conn, case) == [("next", "waiting")]


def test_F22_a_cancel_waits_for_a_recovery_and_leaves_nothing_behind(conn: Connection, database_url: str, clock: Clock) -> None:
    case, _ = expired(conn, clock, max_attempts=1)
    with connect(database_url) as recoverer:
        recoverer.execute("BEGIN")
        [lost] = recover_expired(recoverer, limit=1)
        assert lost.status == "failed"
        cancel = Contender(database_url, lambda c: cancel_instance(c, case, actor=OP, reason="", request_id="1")).seen_waiting(conn)
        recoverer.execute("COMMIT")
        assert isinstance(cancel.outcome(), InstanceCancelled)
    assert conn.execute("SELECT (SELECT count(*) FROM job), (SELECT count(*) FROM incident), (SELECT count(*) FROM token)").fetchall() == [
        (0, 0, 0)
    ]


def test_F22_a_recovery_passes_by_a_cancel_and_recovers_the_rest(conn: Connection, database_url: str, clock: Clock, tmp_path: Path) -> None:
    case, lease = expired(conn, clock)
    other = rows.job(conn, topic="work")
    [second] = cases.acquired(conn)
    clock.advance(seconds=31)
    cancel = lambda c: cancel_instance(c, case, actor=OP, reason="", request_id="1")  # noqa: E731
    with held_at(database_url, "command.before_commit", cancel, tmp_path) as held:
        assert [item.item_id for item in recover_expired(conn, limit=10)] == [other] == [second.item_id]
    assert isinstance(held.outcome(), InstanceCancelled)
    assert rows.one(conn, "SELECT count(*) FROM job WHERE id = %s", lease.item_id) == 0


# ---- publisher meets subscriber (R9)


def deliver_all(conn: Connection) -> None:
    for lease in cases.acquired(conn):
        assert isinstance(deliver_message(conn, lease), ItemDone)


@pytest.mark.parametrize("order", ["publisher first", "subscriber first"])
@pytest.mark.parametrize("request_id", [None, "1"])
def test_R9_a_publisher_and_a_subscriber_always_meet(conn: Connection, database_url: str, order: str, request_id: str | None) -> None:
    case = case_of(
        conn, model("start -> a -> wait -> next -> end", a=given_to("ada"), wait=catch(on="PAID"), next=user()), business_key="7"
    )
    subscribe = complete(cases.the_task(conn, "a"))

    def publish(c: Connection) -> Any:
        return publish_message(
            c, "PAID", actor=OP, correlation_key="7", variables={"sum": 3}, time_to_live_seconds=60, request_id=request_id
        )

    acts = [publish, subscribe] if order == "publisher first" else [subscribe, publish]
    outcomes = contest(database_url, KEY, ("PAID", "7"), *acts)
    published = next(outcome for outcome in outcomes if isinstance(outcome, MessagePublished))
    assert published.outcome == ("stored" if order == "publisher first" else "correlated")
    deliver_all(conn)
    assert cases.places(conn, case) == [("next", "waiting")]
    assert cases.variables(conn, case) == {"sum": 3}
    assert conn.execute("SELECT (SELECT count(*) FROM message), (SELECT count(*) FROM subscription)").fetchall() == [(0, 0)]


def test_R9_two_messages_for_one_who_waits_are_one_correlation_and_one_refusal(conn: Connection, database_url: str) -> None:
    case = case_of(conn, model("start -> wait -> next -> end", wait=catch(on="PAID"), next=user()), business_key="7")
    publish = lambda c: publish_message(c, "PAID", actor=OP, correlation_key="7", variables={})  # noqa: E731
    won, lost = contest(database_url, ROOT_ROW, (case,), publish, publish)
    assert (won.outcome, won.instance_id) == ("correlated", case)
    assert lost.refusal is Refusal.NO_SUBSCRIPTION
    assert cases.kinds(conn, case).count("message_correlated") == 1


def test_R10_one_message_pressed_twice_reaches_one_of_two_who_wait(conn: Connection, database_url: str) -> None:
    first = case_of(conn, model("start -> wait -> next -> end", wait=catch(on="PAID"), next=user()), business_key="7")
    second = cases.started(conn, business_key="7").instance_id
    publish = lambda c: publish_message(c, "PAID", actor=OP, correlation_key="7", variables={}, request_id="1")  # noqa: E731
    one, two = contest(database_url, ROOT_ROW, (first,), publish, publish)
    assert one == two
    assert cases.places(conn, second) == [("wait", "waiting")]


def test_a_start_message_that_meets_a_deployment_does_not_start_the_version_that_was_replaced(conn: Connection, database_url: str) -> None:
    put(conn, process(**message("NEW")))
    old = rows.one(conn, "SELECT id FROM process_definition")
    with connect(database_url) as replacing:
        replacing.execute("BEGIN")
        replacing.execute("SELECT baton_lock_definitions(%s)", ([old],))
        replacing.execute("DELETE FROM subscription WHERE definition_id = %s", (old,))
        publish = Contender(database_url, lambda c: publish_message(c, "NEW", actor=OP, variables={})).seen_waiting(conn)
        replacing.execute("COMMIT")
        assert publish.outcome().refusal is Refusal.NO_SUBSCRIPTION
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0


def test_a_message_and_a_deployment_that_takes_its_start_event_over_start_one_version(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    put(conn, process(**message("NEW")))
    newer = process(**message("NEW"), name="newer")
    with held_at(database_url, "command.before_commit", lambda c: deploy(c, [("p", newer)], actor=OP), tmp_path) as held:
        publish = Contender(database_url, lambda c: publish_message(c, "NEW", actor=OP, variables={})).seen_waiting(conn)
    assert held.outcome().definitions[0].version == 2
    assert publish.outcome().started
    versions = "SELECT d.version FROM process_instance i JOIN process_definition d ON d.id = i.definition_id"
    assert conn.execute(versions).fetchall() == [(2,)]


# ---- retries of a token


def test_S55_two_operators_retry_one_stuck_token(conn: Connection, database_url: str) -> None:
    case = case_of(conn, model("start -> a -> end", a=user(assignee=parse("${nobody}"))))
    token = rows.one(conn, "SELECT id FROM token WHERE status = 'failed'")
    acts = [lambda c, who=who: retry_item(c, "token", token, actor=who, attempts=1, request_id="1") for who in (OP, ROOT)]
    conn.execute(
        "INSERT INTO variable (scope_id, name, type, value) SELECT id, 'nobody', 'string', '\"ada\"' FROM scope WHERE instance_id = %s",
        (case,),
    )
    won, lost = contest(database_url, ROOT_ROW, (case,), *acts)
    assert won == ItemRetried(token, 1)
    assert (lost.refusal, lost.by) == (Refusal.NOT_FAILED, "op")
    assert cases.places(conn, case) == [("a", "waiting")]
    assert rows.one(conn, "SELECT count(*) FROM incident") == 0
