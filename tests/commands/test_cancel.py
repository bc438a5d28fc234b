"""Cancelling an instance."""

from __future__ import annotations

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.jobs import complete_job
from engine.commands.outcome import InstanceCancelled, Refusal, Rejected
from engine.commands.tasks import claim
from engine.expressions import parse
from tests.cast import ADA, CY, OP, engage
from tests.commands.cases import acquired, deployed, kinds, started, status, the_task
from tests.core.models import boundary, catch, model, par, service, sub, user
from tests.rows import columns, everything, one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def busy(conn: psycopg.Connection) -> tuple:
    """A case with a claimed task, an open task inside a subprocess, a leased job, a subscription and a boundary timer."""
    group = user(candidate_groups=(parse("${'billing'}"),))
    deployed(
        conn,
        model(
            "start -> par -> a -> end",
            "par -> sub -> end",
            "in -> b -> out",
            "par -> c -> end",
            "par -> d -> end",
            "late -> end3",
            inside={"sub": "in b out"},
            a=group,
            b=group,
            c=service(),
            d=catch(on="PAID"),
            late=boundary("a", after="PT1H"),
            par=par(),
            sub=sub(),
            **{"in": model("start").nodes["start"], "out": model("end").nodes["end"]},
        ),
    )
    case = started(conn, business_key="42", variables={"x": 1})
    a = the_task(conn, "a")
    claim(conn, a, actor=ADA, request_id="c")
    (lease,) = acquired(conn)
    return case, a, the_task(conn, "b"), lease


def test_cancelling_ends_everything_in_one_transaction(conn: psycopg.Connection) -> None:
    case, a, b, lease = busy(conn)

    assert cancel_instance(conn, case.instance_id, actor=OP, reason="duplicate", request_id="x") == InstanceCancelled(case.instance_id)

    assert status(conn, case.instance_id) == "cancelled"
    assert columns(conn, "process_instance", case.instance_id, "ended_by", "mark") == ("op", None)
    for task in (a, b):
        assert columns(conn, "user_task", task, "status", "ended_by", "token_id") == ("cancelled", "op", None)
    for table in ("token", "scope", "variable", "job", "subscription", "inbox_entry", "incident"):
        assert one(conn, f"SELECT count(*) FROM {table}") == 0, table
    assert kinds(conn, case.instance_id)[-3:] == ["task_cancelled", "task_cancelled", "instance_cancelled"]
    assert one(conn, "SELECT data->>'reason' FROM history WHERE kind = 'instance_cancelled' AND actor = 'op'") == "duplicate"

    late = complete_job(conn, lease, variables={})
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    refused = complete_task(conn, a, actor=ADA, variables={}, request_id="l")
    assert isinstance(refused, Rejected)
    assert (refused.refusal, refused.by, refused.by_name) == (Refusal.ALREADY_CANCELLED, "op", "Op Erator")


def test_R10_a_repeated_cancel_is_a_harmless_success_and_another_one_hears_who_did_it(conn: psycopg.Connection) -> None:
    case, *_ = busy(conn)
    first = cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id="x")
    before = everything(conn)
    assert cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id="x") == first
    other = cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id="y")
    assert isinstance(other, Rejected) and (other.refusal, other.by) == (Refusal.ALREADY_CANCELLED, "op")
    assert everything(conn) == before


def test_R13_only_operators_cancel_and_a_stranger_hears_nothing(conn: psycopg.Connection) -> None:
    case, *_ = busy(conn)
    before = everything(conn)
    assert cancel_instance(conn, case.instance_id, actor=ADA, reason="", request_id="1") == Rejected(Refusal.NOT_ALLOWED)
    assert cancel_instance(conn, case.instance_id, actor=CY, reason="", request_id="2") == Rejected(Refusal.NOT_FOUND)
    assert everything(conn) == before


def test_a_suspended_case_can_be_cancelled_and_an_ended_one_not(conn: psycopg.Connection) -> None:
    case, *_ = busy(conn)
    conn.execute("UPDATE process_instance SET mark = 'suspended'")
    assert isinstance(cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id="1"), InstanceCancelled)
    deployed(conn, model("start -> end"), version=2)
    ended = started(conn)
    refused = cancel_instance(conn, ended.instance_id, actor=OP, reason="", request_id="2")
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INSTANCE_ENDED


def test_too_long_a_reason_is_invalid(conn: psycopg.Connection) -> None:
    case, *_ = busy(conn)
    refused = cancel_instance(conn, case.instance_id, actor=OP, reason="x" * 501, request_id="1")
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID
