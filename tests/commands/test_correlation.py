"""Messages by business key, instance and variables: one receiver, or a refusal that names those who wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, MessagePublished, Refusal, Rejected
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.commands.test_deploy import message, process, put
from tests.core.models import catch, model, par, user
from tests.races.contest import Contender, held_at

Connection = psycopg.Connection[Any]
# Beside what waits there is a task, whose completion changes variables.
WAITS = model(
    "start -> split -> wait -> next -> end", "split -> work -> more -> end2", split=par(), wait=catch(on="ANSWER"),
    work=user(assignee=parse("${'ada'}")), more=user(assignee=parse("${'ada'}")), next=user(),
)  # fmt: skip


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    cases.deployed(committed_db, WAITS)
    return committed_db


def send(conn: Connection, **values: Any) -> Any:
    return publish_message(conn, values.pop("name", "ANSWER"), **{"actor": OP, "variables": {}, **values})


def got(conn: Connection, case: Any) -> bool:
    return ("next", "waiting") in cases.places(conn, case.instance_id)


def test_a_message_by_business_key_reaches_the_one_that_has_it(conn: Connection) -> None:
    one, other = (cases.started(conn, business_key=key) for key in ("A", "B"))
    sent = send(conn, business_key="B", variables={"yes": True})
    assert isinstance(sent, MessagePublished) and sent.instance_id == other.instance_id
    assert (got(conn, one), got(conn, other)) == (False, True)
    assert cases.variables(conn, other.instance_id) == {"yes": True}
    by = rows.one(conn, "SELECT data->>'by' FROM history WHERE kind = 'message_correlated'")
    assert by == "the business key 'B'"


def test_a_message_by_instance_reaches_that_instance(conn: Connection) -> None:
    _, other = (cases.started(conn, business_key="A") for _ in range(2))
    assert send(conn, instance_id=other.instance_id).instance_id == other.instance_id


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"order": 42}, "number"),
        ({"order": 42.0}, "number"),
        ({"order": "42"}, "text"),
        ({"order": None}, None),
        ({"order": 42, "open": True}, "number"),
        ({"order": 42, "open": False}, None),
        ({"missing": 1}, None),
        ({"lines": [1, {"a": 2}]}, "number"),
    ],
)
def test_S25_variables_are_compared_as_json_and_42_is_not_the_text(conn: Connection, wanted: dict[str, Any], found: str | None) -> None:
    waiting = {
        "number": cases.started(conn, variables={"order": 42, "open": True, "lines": [1, {"a": 2}]}),
        "text": cases.started(conn, variables={"order": "42", "open": True}),
    }
    sent = send(conn, correlation_variables=wanted)
    if found is None:
        assert sent.refusal is Refusal.NO_SUBSCRIPTION
    else:
        assert sent.instance_id == waiting[found].instance_id


def test_criteria_and_a_key_must_all_hold(conn: Connection) -> None:
    here = cases.started(conn, business_key="A", variables={"n": 1})
    assert send(conn, business_key="A", correlation_variables={"n": 2}).refusal is Refusal.NO_SUBSCRIPTION
    assert send(conn, business_key="A", correlation_key="other").refusal is Refusal.NO_SUBSCRIPTION
    assert send(conn, business_key="A", correlation_key="A", correlation_variables={"n": 1}).instance_id == here.instance_id


def test_S25_where_several_meet_the_criteria_nobody_has_it_and_the_refusal_names_them(conn: Connection) -> None:
    waiting = [cases.started(conn, business_key="A", variables={"n": n}) for n in range(2)]
    before = rows.everything(conn)
    refused = send(conn, business_key="A")
    assert isinstance(refused, Rejected)
    assert (refused.refusal, refused.status) == (Refusal.AMBIGUOUS, 409)
    assert "2 wait for ANSWER with the business key 'A'; expected one" in refused.detail
    named = [problem.message for problem in refused.problems]  # type: ignore[union-attr]
    assert [str(each.instance_id) in text for each, text in zip(waiting, named, strict=True)] == [True, True]
    assert rows.everything(conn) == before
    assert send(conn, business_key="A", correlation_variables={"n": 1}).instance_id == waiting[1].instance_id


def test_one_that_is_being_cancelled_is_not_among_them(conn: Connection) -> None:
    going, staying = (cases.started(conn, business_key="A").instance_id for _ in range(2))
    conn.execute("UPDATE process_instance SET mark = 'cancelling' WHERE id = %s", (going,))
    assert send(conn, business_key="A").instance_id == staying
    assert send(conn, instance_id=going).refusal is Refusal.NO_SUBSCRIPTION


def test_S25_a_crowd_is_not_named_whole(conn: Connection) -> None:
    for _ in range(12):
        cases.started(conn, business_key="A")
    refused = send(conn, business_key="A")
    assert "more than 10 wait" in refused.detail
    assert len(refused.problems) == 10


def test_a_business_key_alone_starts_a_case_where_nobody_waits(conn: Connection) -> None:
    put(conn, process("n", **message("ANSWER")))
    sent = send(conn, business_key="fresh")
    assert isinstance(sent, MessagePublished) and sent.started
    assert rows.one(conn, "SELECT business_key FROM process_instance") == "fresh"
    waiting = cases.started(conn, business_key="fresh")
    assert send(conn, business_key="fresh").instance_id == waiting.instance_id, "who waits comes first"
    for criteria in ({"correlation_variables": {"a": 1}}, {"instance_id": waiting.instance_id}):
        assert send(conn, business_key="x", **criteria).refusal is Refusal.NO_SUBSCRIPTION


def test_with_criteria_nothing_is_stored_and_a_time_to_live_is_invalid(conn: Connection) -> None:
    refused = send(conn, business_key="A", time_to_live_seconds=60)
    assert refused.refusal is Refusal.INVALID
    assert [problem.field for problem in refused.problems] == ["time_to_live_seconds"]
    assert rows.one(conn, "SELECT count(*) FROM message") == 0


def test_R13_only_those_of_ones_own_tenant_are_found(conn: Connection) -> None:
    case = cases.started(conn, business_key="A")
    stranger = OP.__class__(**{**{name: getattr(OP, name) for name in OP.__slots__}, "tenant_id": "b"})
    for criteria in ({"business_key": "A"}, {"instance_id": case.instance_id}):
        assert send(conn, actor=stranger, **criteria).refusal is Refusal.NO_SUBSCRIPTION


def test_criteria_and_an_id_go_together(conn: Connection) -> None:
    for _ in range(2):
        cases.started(conn, business_key="A", variables={"n": 1})
    conn.execute("UPDATE process_instance SET business_key = 'B' WHERE id = (SELECT max(id::text)::uuid FROM process_instance)")
    sent = send(conn, business_key="A", message_id="m-1")
    assert isinstance(sent, MessagePublished)
    assert send(conn, business_key="B", message_id="m-1") == MessageKnown(sent)


def test_a_variable_that_changes_between_the_look_and_the_lock_is_compared_again(
    conn: Connection, database_url: str, tmp_path: Path
) -> None:
    case = cases.started(conn, variables={"n": 1})
    task = cases.the_task(conn, "work", instance_id=case.instance_id)

    def finish(c: Connection) -> Any:
        return complete_task(c, task, actor=ADA, variables={"n": 2}, request_id=None)

    with held_at(database_url, "command.before_commit", finish, tmp_path) as completes:
        late = Contender(database_url, lambda c: send(c, correlation_variables={"n": 1})).seen_waiting(conn)
    completes.outcome()
    assert late.outcome().refusal is Refusal.NO_SUBSCRIPTION
    assert not got(conn, case)
