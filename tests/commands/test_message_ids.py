"""Message ids: the same message twice has one effect, whoever sends it, and the second answer says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, MessagePublished, Refusal, Rejected
from engine.commands.upkeep import Kept, upkeep
from tests import rows
from tests.bpmn.models import HEADER
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.commands.test_deploy import message, process, put
from tests.commands.test_messages import WAITS, publish
from tests.conftest import Clock
from tests.core.models import catch, model
from tests.races.contest import Contender, contest, held_at

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    cases.deployed(committed_db, WAITS)
    return committed_db


def freeze(conn: Connection, at: str) -> Callable[[], None]:
    """Both clocks of this database stand still at an SQL expression; call what it returns to let them go."""
    names = ("baton_now()", "baton_clock()")
    kept = [conn.execute("SELECT pg_get_functiondef(%s::regprocedure)", (name,)).fetchone() for name in names]
    row = conn.execute(f"SELECT ({at})::text").fetchone()
    assert row is not None
    for name in names:
        conn.execute(f"CREATE OR REPLACE FUNCTION {name} RETURNS timestamptz LANGUAGE sql STABLE AS $$SELECT '{row[0]}'::timestamptz$$")

    def go_on() -> None:
        for definition in kept:
            assert definition is not None
            conn.execute(definition[0])

    return go_on


def test_a_message_that_is_sent_again_reaches_nobody_and_the_answer_says_what_it_did(conn: Connection) -> None:
    first, second = (cases.started(conn, business_key="42") for _ in range(2))
    sent = publish(conn, message_id="m-1")
    assert isinstance(sent, MessagePublished) and sent.instance_id == first.instance_id
    before = rows.everything(conn)
    again = publish(conn, message_id="m-1", variables={"other": 1})
    assert again == MessageKnown(sent)
    assert rows.everything(conn) == before
    assert cases.places(conn, second.instance_id) == [("wait", "waiting")], "the one that still waits has not had it"
    assert publish(conn, message_id="m-2").instance_id == second.instance_id


def test_a_stored_message_is_stored_once(conn: Connection) -> None:
    stored = publish(conn, message_id="m-1", ttl=60)
    assert publish(conn, message_id="m-1", ttl=60) == MessageKnown(stored)
    assert rows.one(conn, "SELECT count(*) FROM message") == 1


def test_an_id_is_one_of_its_name_and_tenant_and_of_any_sender_and_key(conn: Connection) -> None:
    stored = publish(conn, message_id="m-1", ttl=60)
    assert isinstance(publish(conn, message_id="m-1", ttl=60, name="OTHER"), MessagePublished)
    assert publish(conn, "another key", message_id="m-1", ttl=60) == MessageKnown(stored)
    elsewhere = publish(conn, message_id="m-1", ttl=60, actor=OP.__class__(**{**_fields(OP), "tenant_id": "b"}))
    assert isinstance(elsewhere, MessagePublished)


def _fields(actor: Any) -> dict[str, Any]:
    return {name: getattr(actor, name) for name in actor.__slots__}


def test_what_was_refused_may_be_sent_again(conn: Connection) -> None:
    assert publish(conn, message_id="m-1").refusal is Refusal.NO_SUBSCRIPTION
    case = cases.started(conn, business_key="42")
    assert publish(conn, message_id="m-1").instance_id == case.instance_id


def test_a_message_that_starts_a_case_starts_one(conn: Connection) -> None:
    put(conn, process("n", **message("NEW")))
    sent = publish_message(conn, "NEW", actor=OP, variables={}, message_id="m-1")
    assert isinstance(sent, MessagePublished) and sent.started
    assert publish_message(conn, "NEW", actor=OP, variables={}, message_id="m-1") == MessageKnown(sent)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 1


@pytest.mark.parametrize(("ttl", "life"), [(None, timedelta(days=1)), (60, timedelta(days=1)), (7 * 86_400, timedelta(days=7))])
def test_an_id_counts_for_a_day_or_as_long_as_its_message_lives_to_the_moment(conn: Connection, ttl: float | None, life: timedelta) -> None:
    if ttl is None:
        cases.started(conn, business_key="42")
    publish(conn, message_id="m-1", ttl=ttl)
    ends = rows.one(conn, "SELECT kept_until - published_at FROM message_receipt")
    assert ends == life
    let_go = freeze(conn, "(SELECT kept_until - interval '1 microsecond' FROM message_receipt)")
    try:
        assert isinstance(publish(conn, message_id="m-1", ttl=ttl), MessageKnown)
        let_go()
        let_go = freeze(conn, "(SELECT kept_until FROM message_receipt)")
        cases.started(conn, business_key="42")
        assert isinstance(publish(conn, message_id="m-1", ttl=ttl), MessagePublished), "though no upkeep has run"
        assert rows.one(conn, "SELECT kept_until > baton_now() FROM message_receipt") is True
    finally:
        let_go()


def test_upkeep_removes_the_ids_that_count_no_more(conn: Connection, clock: Clock) -> None:
    publish(conn, message_id="m-1", ttl=60)
    publish(conn, message_id="m-2", ttl=2 * 86_400)
    clock.advance(days=1, seconds=1)
    upkeep(conn, Kept(86_400, []))
    assert conn.execute("SELECT message_id FROM message_receipt").fetchall() == [("m-2",)]


def test_R10_a_repeated_request_gets_its_own_answer_and_a_new_request_learns_of_the_first(conn: Connection) -> None:
    cases.started(conn, business_key="42")
    sent = publish(conn, message_id="m-1", request_id="r1")
    assert publish(conn, message_id="m-1", request_id="r1") == sent
    assert publish(conn, message_id="m-1", request_id="r2") == MessageKnown(sent)
    assert publish(conn, message_id="m-1", request_id="r2") == MessageKnown(sent)


def test_R13_who_may_not_publish_learns_nothing_of_an_id(conn: Connection) -> None:
    publish(conn, message_id="m-1", ttl=60)
    assert publish(conn, message_id="m-1", ttl=60, actor=ADA).refusal is Refusal.NOT_ALLOWED


@pytest.mark.parametrize("sent_id", ["", "x" * 256, "a\nb"])
def test_an_id_that_is_none_is_invalid(conn: Connection, sent_id: str) -> None:
    refused = publish(conn, message_id=sent_id, ttl=60)
    assert isinstance(refused, Rejected)
    assert [problem.field for problem in refused.problems] == ["message_id"]  # type: ignore[union-attr]


# ---- races


def test_of_two_publishers_of_one_message_at_once_one_reaches_and_the_other_is_told(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    first, second = (cases.started(conn, business_key="42") for _ in range(2))
    with held_at(database_url, "command.before_commit", lambda c: publish(c, message_id="m-1"), tmp_path) as one:
        other = Contender(database_url, lambda c: publish(c, message_id="m-1")).seen_waiting(conn)
    sent = one.outcome()
    assert sent.instance_id == first.instance_id
    assert other.outcome() == MessageKnown(sent)
    assert cases.places(conn, second.instance_id) == [("wait", "waiting")]


def test_of_two_publishers_of_one_message_to_two_receivers_one_reaches_and_the_other_is_rolled_back(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    """By different keys they meet nowhere but at the id."""
    left, right = (cases.started(conn, business_key=key) for key in ("left", "right"))
    with held_at(database_url, "command.before_commit", lambda c: publish(c, "left", message_id="m-1"), tmp_path) as one:
        other = Contender(database_url, lambda c: publish(c, "right", message_id="m-1")).seen_waiting(conn)
    sent = one.outcome()
    assert sent.instance_id == left.instance_id
    assert other.outcome() == MessageKnown(sent)
    assert cases.places(conn, right.instance_id) == [("wait", "waiting")]


def test_two_publishers_of_one_message_that_wait_for_each_other_are_one_effect(conn: Connection, database_url: str) -> None:
    """One has the id and waits for the key that the other one has, who waits for the id: a victim, which is run again."""
    twice = model("start -> wait -> again -> end", wait=catch(on="ANSWER"), again=catch(on="ANSWER", key="${'other'}"))
    cases.deployed(conn, replace(twice, key="twice"))
    case = cases.started(conn, "twice", business_key="42")
    key = "SELECT pg_advisory_xact_lock(baton_key_number('', 'ANSWER', 'other'))"
    stored, correlated = contest(
        database_url, key, (), lambda c: publish(c, "other", ttl=60, message_id="m-1"), lambda c: publish(c, message_id="m-1")
    )  # fmt: skip
    (sent,) = [each for each in (stored, correlated) if isinstance(each, MessagePublished)]
    assert [each for each in (stored, correlated) if each is not sent] == [MessageKnown(sent)]
    assert rows.one(conn, "SELECT count(*) FROM message") == (sent.outcome == "stored")
    assert cases.places(conn, case.instance_id) == [("again" if sent.outcome == "correlated" else "wait", "waiting")]


def test_of_two_publishers_that_start_by_one_message_one_starts(conn: Connection, database_url: str) -> None:
    put(conn, process("n", **message("NEW")))

    def send(c: Connection) -> Any:
        return publish_message(c, "NEW", actor=OP, variables={}, message_id="m-1")

    answers = contest(database_url, "SELECT 1 FROM process_definition WHERE key = 'n' FOR UPDATE", (), send, send)
    (sent,) = [answer for answer in answers if isinstance(answer, MessagePublished)]
    assert [answer for answer in answers if answer is not sent] == [MessageKnown(sent)]
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 1


def test_a_publisher_that_dies_has_sent_nothing_and_the_next_one_sends(conn: Connection) -> None:
    from engine import failpoints

    case = cases.started(conn, business_key="42")
    failpoints.install("command.before_commit=raise:once")
    with pytest.raises(failpoints.FailPointRaised):
        publish(conn, message_id="m-1")
    assert rows.one(conn, "SELECT count(*) FROM message_receipt") == 0
    assert publish(conn, message_id="m-1").instance_id == case.instance_id


# ---- the time to live


def test_S25_a_message_expires_at_its_moment_and_not_a_microsecond_later(conn: Connection) -> None:
    model = (
        f'{HEADER}<message id="m" name="ANSWER"/><process id="q" isExecutable="true"><startEvent id="s"/>'
        '<receiveTask id="r" messageRef="m"/>'
        '<endEvent id="e"/><sequenceFlow id="a" sourceRef="s" targetRef="r"/><sequenceFlow id="b" sourceRef="r" targetRef="e"/>'
        "</process></definitions>"
    )
    put(conn, model.encode())
    publish(conn, "in time", ttl=10)
    publish(conn, "too late", ttl=10)
    conn.execute("UPDATE message SET expires_at = (SELECT max(expires_at) FROM message)")
    let_go = freeze(conn, "(SELECT max(expires_at) - interval '1 microsecond' FROM message)")
    try:
        cases.started(conn, "q", business_key="in time")
        assert rows.one(conn, "SELECT count(*) FROM job WHERE kind = 'message'") == 1
        let_go()
        let_go = freeze(conn, "(SELECT max(expires_at) FROM message)")
        cases.started(conn, "q", business_key="too late")
        assert rows.one(conn, "SELECT count(*) FROM job WHERE kind = 'message'") == 1, "nobody cleaned up, and yet it is not used"
    finally:
        let_go()
