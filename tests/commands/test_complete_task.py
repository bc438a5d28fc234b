"""Completing a user task."""

from __future__ import annotations

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.outcome import Claimed, Refusal, Rejected, TaskCompleted
from engine.commands.tasks import assign, claim, unclaim
from engine.expressions import parse
from engine.ids import new_id
from tests.cast import ADA, BO, CY, OP, engage
from tests.commands.cases import deployed, kinds, places, started, status, the_task, variables
from tests.core.models import model, par, user, xor
from tests.rows import columns, everything, one

BILLING = {"candidate_groups": (parse("${'billing'}"),)}


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def approval(conn: psycopg.Connection) -> None:
    deployed(
        conn,
        model(
            "start -> approve -> xor -> pay -> end",
            "xor -> end2",
            conditions={"xor>pay": "${approved}"},
            defaults=("xor>end2",),
            approve=user("Approve", **BILLING),
            pay=user("Pay", assignee=parse("${'ada'}")),
            xor=xor(),
        ),
    )


def claimed_approval(conn: psycopg.Connection) -> tuple:
    approval(conn)
    case = started(conn, variables={"amount": 33, "price": 10.1})
    task = the_task(conn, "approve")
    assert isinstance(claim(conn, task, actor=ADA, request_id="claim"), Claimed)
    return case, task


def test_its_assignee_completes_a_task_and_the_case_goes_on(conn: psycopg.Connection) -> None:
    case, task = claimed_approval(conn)

    done = complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id="r1")

    assert isinstance(done, TaskCompleted)
    assert columns(conn, "user_task", task, "status", "ended_by", "ended_at", "token_id") == ("completed", "ada", done.at, None)
    assert one(conn, "SELECT count(*) FROM inbox_entry WHERE task_id = %s", task) == 0
    assert places(conn, case.instance_id) == [("pay", "waiting")]
    assert variables(conn, case.instance_id) == {"amount": 33, "price": 10.1, "approved": True}
    assert done.next_task_id == the_task(conn, "pay")
    assert columns(conn, "user_task", done.next_task_id, "status", "assignee", "assigned_by") == ("claimed", "ada", "engine")


def test_the_last_task_ends_the_instance_and_leaves_its_variables_on_its_row(conn: psycopg.Connection) -> None:
    case, task = claimed_approval(conn)
    complete_task(conn, task, actor=ADA, variables={"approved": False}, request_id="r1")

    assert status(conn, case.instance_id) == "completed"
    assert one(conn, "SELECT final_variables FROM process_instance") == {
        "amount": {"type": "integer", "value": 33},
        "price": {"type": "double", "value": 10.1},
        "approved": {"type": "boolean", "value": False},
    }
    for table in ("token", "scope", "variable", "inbox_entry"):
        assert one(conn, f"SELECT count(*) FROM {table}") == 0, table
    assert kinds(conn, case.instance_id)[-1] == "instance_completed"
    assert one(conn, "SELECT actor FROM history WHERE kind = 'task_completed'") == "ada"


def test_S20_a_second_completion_is_told_who_completed_it_and_when_and_changes_nothing(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    won = complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id="r1")
    before = everything(conn)

    late = complete_task(conn, task, actor=ADA, variables={"approved": False}, request_id="r2")

    assert isinstance(won, TaskCompleted) and isinstance(late, Rejected)
    assert (late.refusal, late.by, late.by_name, late.at) == (Refusal.ALREADY_COMPLETED, "ada", "Ada Lovelace", won.at)
    assert everything(conn) == before


def test_R10_a_repeated_request_gets_the_same_answer_and_moves_nothing(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    won = complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id="r1")
    before = everything(conn)

    assert complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id="r1") == won
    assert everything(conn) == before


def test_R10_the_same_id_with_other_values_is_judged_afresh(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    complete_task(conn, task, actor=ADA, variables={"approved": True}, request_id="r1")

    other = complete_task(conn, task, actor=ADA, variables={"approved": False}, request_id="r1")

    assert isinstance(other, Rejected) and other.refusal is Refusal.ALREADY_COMPLETED


def test_R10_a_recorded_refusal_is_the_answer_to_its_repeat_even_when_the_world_has_changed(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    lost = complete_task(conn, task, actor=BO, variables={"approved": True}, request_id="b1")
    assert isinstance(lost, Rejected) and (lost.refusal, lost.by, lost.by_name) == (Refusal.NOT_YOURS, "ada", "Ada Lovelace")
    unclaim(conn, task, actor=ADA, request_id="u")
    claim(conn, task, actor=BO, request_id="c")

    assert complete_task(conn, task, actor=BO, variables={"approved": True}, request_id="b1") == lost
    assert isinstance(complete_task(conn, task, actor=BO, variables={"approved": True}, request_id="b2"), TaskCompleted)


def test_an_open_task_must_be_claimed_first(conn: psycopg.Connection) -> None:
    approval(conn)
    started(conn)
    refused = complete_task(conn, the_task(conn, "approve"), actor=ADA, variables={}, request_id="r1")
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.NOT_CLAIMED


def test_R13_a_stranger_is_told_nothing_not_even_that_the_task_exists(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    hidden = complete_task(conn, task, actor=CY, variables={}, request_id="r1")
    nothing = complete_task(conn, new_id(), actor=CY, variables={}, request_id="r2")
    assert hidden == nothing == Rejected(Refusal.NOT_FOUND)


def test_an_operator_does_not_complete_what_another_holds(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    refused = complete_task(conn, task, actor=OP, variables={}, request_id="r1")
    assert isinstance(refused, Rejected) and (refused.refusal, refused.by) == (Refusal.NOT_YOURS, "ada")


@pytest.mark.parametrize(
    ("mark", "refusal"),
    [("cancelling", Refusal.INSTANCE_CANCELLING), ("suspended", Refusal.INSTANCE_SUSPENDED), ("suspending", Refusal.INSTANCE_SUSPENDED)],
)
def test_a_marked_case_refuses_and_nothing_changes(conn: psycopg.Connection, mark: str, refusal: Refusal) -> None:
    _, task = claimed_approval(conn)
    conn.execute("UPDATE process_instance SET mark = %s", (mark,))
    before = everything(conn)
    refused = complete_task(conn, task, actor=ADA, variables={}, request_id="r1")
    assert isinstance(refused, Rejected) and refused.refusal is refusal
    assert everything(conn) == before


def test_S34_what_is_too_large_is_refused_by_its_limit_before_anything_runs(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    before = everything(conn)
    refused = complete_task(conn, task, actor=ADA, variables={"approved": True, "essay": "x" * 4_000_001}, request_id="r1")
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID
    assert "4,000,000 bytes" in refused.problems[0].message
    assert everything(conn) == before
    assert one(conn, "SELECT count(*) FROM request WHERE id = 'r1'") == 0, "invalid input is never recorded"


@pytest.mark.parametrize("length", [4_001, 70_000, 1_000_000])
def test_S34_long_text_is_stored_whole_and_history_agrees(conn: psycopg.Connection, length: int) -> None:
    case, task = claimed_approval(conn)
    text = "ä" * length
    assert isinstance(complete_task(conn, task, actor=ADA, variables={"approved": True, "essay": text}, request_id="r1"), TaskCompleted)
    assert variables(conn, case.instance_id)["essay"] == text
    told = one(conn, "SELECT data->'variables'->'essay'->>'value' FROM history WHERE kind = 'variables_set' AND element_id = 'approve'")
    assert told == text


def test_S36_dotted_and_hyphenated_names_are_names(conn: psycopg.Connection) -> None:
    case, task = claimed_approval(conn)
    sent = {"approved": True, "dinner.meal": "soup", "response-x": 1, "a.b": 1, "a": {"b": 1}, "in1": 2, "timer_duration": 3}
    assert isinstance(complete_task(conn, task, actor=ADA, variables=sent, request_id="r1"), TaskCompleted)
    assert sent.items() <= variables(conn, case.instance_id).items()


def test_S22_two_tasks_of_one_instance_both_succeed_and_the_join_fires_once(conn: psycopg.Connection) -> None:
    mine, bos = user(assignee=parse("${'ada'}")), user(assignee=parse("${'bo'}"))
    deployed(
        conn, model("start -> par -> a -> par2 -> after -> end", "par -> b -> par2", a=mine, b=bos, par=par(), par2=par(), after=user())
    )
    case = started(conn)
    a, b = the_task(conn, "a"), the_task(conn, "b")

    assert isinstance(complete_task(conn, a, actor=ADA, variables={}, request_id="a"), TaskCompleted)
    assert places(conn, case.instance_id) == [("b", "waiting"), ("par2", "joining")]
    assert isinstance(complete_task(conn, b, actor=BO, variables={}, request_id="b"), TaskCompleted)

    assert places(conn, case.instance_id) == [("after", "waiting")]
    assert kinds(conn, case.instance_id).count("join_passed") == 1


def test_ada_does_not_complete_a_task_that_was_given_to_bo_since_she_read_it(conn: psycopg.Connection) -> None:
    _, task = claimed_approval(conn)
    assign(conn, task, actor=OP, assignee="bo", request_id="a")
    refused = complete_task(conn, task, actor=ADA, variables={}, request_id="r1")
    assert isinstance(refused, Rejected) and (refused.refusal, refused.by) == (Refusal.NOT_YOURS, "bo")
