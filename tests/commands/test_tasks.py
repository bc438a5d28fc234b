"""Claim, unclaim, assign, take next: each happy path, each refusal, twice is harmless, a refusal changes nothing."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.outcome import Assigned, Claimed, Refusal, Rejected, Unclaimed
from engine.commands.tasks import assign, claim, take_next, unclaim
from engine.ids import new_id
from tests import rows
from tests.cast import ADA, BO, CY, OP, engage

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def state(conn: Connection, task: Any) -> tuple[Any, ...]:
    return rows.columns(conn, "user_task", task, "status", "assignee", "assigned_by")


def end(conn: Connection, task: Any, status: str) -> None:
    conn.execute("UPDATE user_task SET status = %s, ended_at = baton_clock(), ended_by = 'bo' WHERE id = %s", (status, task))


def test_a_candidate_claims_an_open_task(conn: Connection) -> None:
    task = rows.task(conn)
    outcome = claim(conn, task, actor=ADA, request_id="1")
    assert isinstance(outcome, Claimed)
    assert (outcome.task_id, outcome.assignee, outcome.repeated) == (task, "ada", False)
    assert state(conn, task) == ("claimed", "ada", "ada")
    assert outcome.at == rows.columns(conn, "user_task", task, "assigned_at")[0]
    assert rows.history(conn, task) == [("task_claimed", "ada")]
    assert rows.one(conn, "SELECT count(*) FROM inbox_entry WHERE task_id = %s", task) == 1


def test_an_operator_claims_without_being_a_candidate(conn: Connection) -> None:
    assert isinstance(claim(conn, rows.task(conn), actor=OP, request_id=None), Claimed)


def test_S23_my_own_second_claim_is_a_harmless_success_without_a_second_event(conn: Connection) -> None:
    task = rows.task(conn)
    first = claim(conn, task, actor=ADA, request_id="1")
    again = claim(conn, task, actor=ADA, request_id="2")
    assert again == Claimed(task, "ada", first.at, repeated=True)
    assert rows.history(conn, task) == [("task_claimed", "ada")]


def test_S23_a_rival_is_told_who_and_when_and_later_that_it_is_completed(conn: Connection) -> None:
    task = rows.task(conn)
    won = claim(conn, task, actor=ADA, request_id="1")
    lost = claim(conn, task, actor=BO, request_id="2")
    assert lost == Rejected(Refusal.ALREADY_CLAIMED, "", "ada", "Ada Lovelace", won.at, item_id=task)

    end(conn, task, "completed")
    late = claim(conn, task, actor=BO, request_id="3")
    assert (late.refusal, late.by, late.by_name) == (Refusal.ALREADY_COMPLETED, "bo", "Bo Diddley")
    assert late.at == rows.columns(conn, "user_task", task, "ended_at")[0]
    assert rows.history(conn, task) == [("task_claimed", "ada")]


def test_a_cancelled_task_cannot_be_claimed(conn: Connection) -> None:
    task = rows.task(conn)
    end(conn, task, "cancelled")
    assert claim(conn, task, actor=ADA, request_id=None).refusal is Refusal.ALREADY_CANCELLED


@pytest.mark.parametrize(
    ("mark", "refusal"),
    [
        ("suspending", Refusal.INSTANCE_SUSPENDED),
        ("suspended", Refusal.INSTANCE_SUSPENDED),
        ("cancelling", Refusal.INSTANCE_CANCELLING),
    ],
)
def test_a_marked_case_refuses_claim_assign_and_take_next(conn: Connection, mark: str, refusal: Refusal) -> None:
    task = rows.task(conn)
    conn.execute("UPDATE process_instance SET mark = %s", (mark,))
    assert claim(conn, task, actor=ADA, request_id=None).refusal is refusal
    assert assign(conn, task, actor=OP, assignee="ada", request_id=None).refusal is refusal
    assert take_next(conn, actor=ADA, request_id=None).refusal is Refusal.NOTHING_FREE
    assert state(conn, task) == ("open", None, None)


@pytest.mark.parametrize("press", [claim, unclaim], ids=["claim", "unclaim"])
def test_R13_who_may_not_see_a_task_gets_the_answer_for_one_that_is_not_there(conn: Connection, press: Any) -> None:
    task = rows.task(conn)
    claim(conn, task, actor=ADA, request_id=None)
    hidden = press(conn, task, actor=CY, request_id="1")
    assert hidden == press(conn, new_id(), actor=CY, request_id="2") == Rejected(Refusal.NOT_FOUND)
    assert assign(conn, task, actor=CY, assignee="cy", request_id="3") == Rejected(Refusal.NOT_FOUND)
    assert assign(conn, task, actor=CY, assignee="nobody", request_id="4") == Rejected(Refusal.NOT_FOUND)


def test_R13_another_tenant_sees_nothing(conn: Connection) -> None:
    task = rows.task(conn)
    stranger = type(OP)("op", role="administrator", tenant_id="other")
    assert claim(conn, task, actor=stranger, request_id=None) == Rejected(Refusal.NOT_FOUND)
    assert assign(conn, task, actor=stranger, assignee=None, request_id=None) == Rejected(Refusal.NOT_FOUND)


def test_R10_a_refusal_changes_nothing_but_its_own_record(conn: Connection) -> None:
    task = rows.task(conn)
    claim(conn, task, actor=ADA, request_id="1")
    before = rows.everything(conn)
    claim(conn, task, actor=BO, request_id="2")
    claim(conn, task, actor=BO, request_id=None)
    claim(conn, task, actor=CY, request_id="3")
    unclaim(conn, task, actor=BO, request_id="4")
    assign(conn, task, actor=BO, assignee="bo", request_id="5")
    assign(conn, task, actor=ADA, assignee="cy", request_id="6")
    assign(conn, task, actor=ADA, assignee="nobody", request_id="7")
    take_next(conn, actor=ADA, request_id="8")
    assert rows.everything(conn) == before


def test_R10_a_replayed_win_gets_the_same_answer_also_after_it_was_given_back(conn: Connection) -> None:
    task = rows.task(conn)
    won = claim(conn, task, actor=ADA, request_id="1")
    unclaim(conn, task, actor=ADA, request_id="2")
    assert claim(conn, task, actor=ADA, request_id="1") == won
    assert state(conn, task) == ("open", None, None)
    assert isinstance(claim(conn, task, actor=ADA, request_id="3"), Claimed)


def test_R10_a_replayed_loss_gets_the_same_answer_also_after_the_winner_unclaims(conn: Connection) -> None:
    task = rows.task(conn)
    claim(conn, task, actor=ADA, request_id="1")
    lost = claim(conn, task, actor=BO, request_id="2")
    unclaim(conn, task, actor=ADA, request_id="3")
    assert claim(conn, task, actor=BO, request_id="2") == lost
    assert state(conn, task) == ("open", None, None)
    assert isinstance(claim(conn, task, actor=BO, request_id="4"), Claimed)


def test_R10_may_is_asked_again_before_a_replay(conn: Connection) -> None:
    task = rows.task(conn)
    assert isinstance(claim(conn, task, actor=ADA, request_id="1"), Claimed)
    assign(conn, task, actor=OP, assignee="bo", request_id="2")
    expelled = type(ADA)("ada", groups=frozenset({"warehouse"}))
    assert claim(conn, task, actor=expelled, request_id="1") == Rejected(Refusal.NOT_FOUND)


def test_unclaiming_gives_it_back_to_the_candidates(conn: Connection) -> None:
    task = rows.task(conn)
    claim(conn, task, actor=ADA, request_id=None)
    assert isinstance(unclaim(conn, task, actor=ADA, request_id="1"), Unclaimed)
    assert state(conn, task) == ("open", None, None)
    assert rows.history(conn, task) == [("task_claimed", "ada"), ("task_unclaimed", "ada")]
    assert unclaim(conn, task, actor=ADA, request_id="1") == unclaim(conn, task, actor=ADA, request_id="1")
    assert unclaim(conn, task, actor=ADA, request_id="2").refusal is Refusal.NOT_CLAIMED


def test_only_the_assignee_and_operators_unclaim(conn: Connection) -> None:
    task = rows.task(conn)
    won = claim(conn, task, actor=ADA, request_id=None)
    lost = unclaim(conn, task, actor=BO, request_id=None)
    assert lost == Rejected(Refusal.NOT_YOURS, "", "ada", "Ada Lovelace", won.at, item_id=task)
    assert isinstance(unclaim(conn, task, actor=OP, request_id=None), Unclaimed)
    assert rows.one(conn, "SELECT data FROM history WHERE kind = 'task_unclaimed'") == {"from": "ada"}


def test_an_operator_assigns_to_anybody_and_takes_it_back(conn: Connection) -> None:
    task = rows.task(conn)
    given = assign(conn, task, actor=OP, assignee="cy", request_id="1")
    assert isinstance(given, Assigned)
    assert state(conn, task) == ("claimed", "cy", "op")
    assert assign(conn, task, actor=OP, assignee="cy", request_id="2") == Assigned(task, "cy", given.at)
    assert isinstance(assign(conn, task, actor=OP, assignee=None, request_id="3"), Assigned)
    assert state(conn, task) == ("open", None, None)
    moves = conn.execute("SELECT kind, data FROM history WHERE item_id = %s ORDER BY id", (task,)).fetchall()
    assert moves == [("task_assigned", {"from": None, "to": "cy"}), ("task_assigned", {"from": "cy", "to": None})]


def test_the_assignee_hands_it_on_to_a_candidate_only(conn: Connection) -> None:
    task = rows.task(conn)
    assert assign(conn, task, actor=ADA, assignee="bo", request_id=None).refusal is Refusal.NOT_CLAIMED
    claim(conn, task, actor=ADA, request_id=None)
    assert assign(conn, task, actor=ADA, assignee="cy", request_id=None).refusal is Refusal.NOT_ALLOWED
    assert isinstance(assign(conn, task, actor=ADA, assignee="bo", request_id=None), Assigned)
    assert assign(conn, task, actor=ADA, assignee="ada", request_id=None).refusal is Refusal.NOT_YOURS


def test_nobody_is_assigned_who_cannot_sign_in(conn: Connection) -> None:
    task = rows.task(conn)
    unknown = assign(conn, task, actor=OP, assignee="nobody", request_id="1")
    assert unknown.refusal is Refusal.INVALID
    assert [p.field for p in unknown.problems] == ["assignee"]
    conn.execute("UPDATE person SET disabled_at = baton_clock() WHERE username = 'bo'")
    assert assign(conn, task, actor=OP, assignee="bo", request_id="2").refusal is Refusal.INVALID


def test_take_next_goes_by_priority_then_due_date_then_age(conn: Connection) -> None:
    made = {
        name: rows.task(conn, name=name, priority=priority, due_at=due)
        for name, priority, due in [
            ("old", 50, None),
            ("new", 50, None),
            ("due later", 50, "2030-01-02"),
            ("due", 50, "2030-01-01"),
            ("urgent", 90, None),
        ]
    }
    rows.task(conn, groups=("warehouse",), name="not mine", priority=100)
    mine = rows.task(conn, groups=(), candidate_users=["ada"], name="mine", priority=95)
    taken = []
    while isinstance(outcome := take_next(conn, actor=ADA, request_id=None), Claimed):
        taken.append(outcome.task_id)
    assert taken == [mine, *(made[name] for name in ("urgent", "due", "due later", "old", "new"))]
    assert outcome.refusal is Refusal.NOTHING_FREE


def test_R10_take_next_twice_under_one_id_takes_one_task(conn: Connection) -> None:
    rows.task(conn), rows.task(conn)
    first = take_next(conn, actor=ADA, request_id="1")
    assert take_next(conn, actor=ADA, request_id="1") == first
    assert rows.one(conn, "SELECT count(*) FROM user_task WHERE status = 'claimed'") == 1
    assert take_next(conn, actor=CY, request_id="1").refusal is Refusal.NOTHING_FREE
    rows.task(conn, groups=("warehouse",))
    assert take_next(conn, actor=CY, request_id="1").refusal is Refusal.NOTHING_FREE
    assert isinstance(take_next(conn, actor=CY, request_id="2"), Claimed)
