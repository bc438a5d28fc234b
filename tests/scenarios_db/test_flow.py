"""Tokens through the database: loops and joins, event-based gateways, subprocesses that end."""

from __future__ import annotations

from engine.commands.complete_task import complete_task
from engine.commands.outcome import MessagePublished, Refusal, Rejected
from tests import rows
from tests.cast import ADA, BO
from tests.conftest import Clock
from tests.scenarios_db.stage import Stage, done


def test_S5_a_parallel_block_in_a_loop_waits_in_each_round_for_both_tokens_of_that_round(stage: Stage) -> None:
    run = stage.begin("a_parallel_block_in_a_loop", rounds=0)
    for number, (first, second) in enumerate([("a", "b"), ("b", "a"), ("a", "b")], start=1):
        assert run.tasks == ["a", "b"]
        run.complete(first)
        assert run.places == [(second, "waiting"), ("join", "joining")], "the join must not fire on one token"
        run.complete(second, rounds=number)
    assert (run.status, run.leftovers) == ("completed", 0)
    told = run.told("task_completed", "join_passed")
    assert told == [
        *("task_completed a", "task_completed b", "join_passed join"),
        *("task_completed b", "task_completed a", "join_passed join"),
        *("task_completed a", "task_completed b", "join_passed join"),
    ]


def test_S6_the_loser_of_an_event_based_gateway_is_gone_and_a_second_message_finds_nobody(stage: Stage, clock: Clock) -> None:
    run = stage.begin("paid_or_late", order=7)
    assert run.open == ["late", "paid"]
    clock.advance(minutes=2)
    paid = stage.publish("PAID", 7, amount=12)
    assert isinstance(paid, MessagePublished)
    assert (paid.outcome, paid.instance_id) == ("correlated", run.id)
    assert run.open == ["p"], "the timer went in the same transaction"

    clock.advance(minutes=29)
    assert stage.work() == []
    again = stage.publish("PAID", 7)
    assert isinstance(again, Rejected)
    assert again.refusal is Refusal.NO_SUBSCRIPTION
    assert run.variables == {"order": 7, "amount": 12}
    run.complete("p")
    assert (run.status, run.leftovers) == ("completed", 0)


def test_S6_the_timer_wins_and_the_message_finds_nobody(stage: Stage, clock: Clock) -> None:
    run = stage.begin("paid_or_late", order=7)
    clock.advance(minutes=31)
    assert done(stage.work())
    assert run.open == ["t"]
    late = stage.publish("PAID", 7)
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.NO_SUBSCRIPTION


def test_S13_terminate_in_a_subprocess_withdraws_what_is_inside_and_the_parent_goes_on(stage: Stage, clock: Clock) -> None:
    run = stage.begin("terminate_in_a_subprocess")
    assert run.open == ["decide", "late", "nag", "u"]
    u = run.task("u")
    clock.advance(minutes=11)
    assert done(stage.work())
    assert run.told("timer_fired") == ["timer_fired nag"]
    assert run.open == ["decide", "late", "nag", "u"], "it comes back for its next time"

    run.complete("decide")
    assert (run.status, run.open, run.places) == ("running", ["after"], [("after", "waiting")])
    assert rows.columns(stage.conn, "user_task", u, "status", "ended_by") == ("cancelled", "engine")
    assert rows.one(stage.conn, "SELECT count(*) FROM inbox_entry WHERE task_id = %s", u) == 0
    late = complete_task(stage.conn, u, actor=BO, variables={}, request_id=None)
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.ALREADY_CANCELLED
    clock.advance(hours=2)
    assert stage.work() == [], "the boundary timers are gone"
    run.complete("after", ADA)
    assert (run.status, run.leftovers) == ("completed", 0)


def test_S22_both_of_two_tasks_and_then_the_follow_up_job_without_any_further_trigger(stage: Stage) -> None:
    stage.handlers["ship"] = lambda variables: {"sum": variables["x"] + variables["y"]}
    run = stage.begin("two_tasks_and_a_join")
    run.complete("b", y=2)
    assert stage.work() == []
    run.complete("a", x=1)
    assert done(stage.work())
    assert (run.status, run.variables, run.leftovers) == ("completed", {"x": 1, "y": 2, "sum": 3}, 0)
    assert run.told("join_passed", "job_completed") == ["join_passed join", "job_completed ship"]
