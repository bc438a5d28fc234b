"""Timers and messages that live for a while, on a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.commands.outcome import MessagePublished, Refusal, Rejected
from tests import rows
from tests.conftest import Clock
from tests.scenarios_db.stage import Stage, done


def test_S16_a_reminder_and_a_deadline_on_one_task_both_fire_in_that_order(stage: Stage, clock: Clock) -> None:
    run = stage.begin("a_reminder_and_a_deadline")
    clock.advance(days=9, hours=23)
    assert stage.work() == []
    clock.advance(hours=2)
    assert done(stage.work())
    assert run.tasks == ["check", "nag"], "the reminder does not interrupt"
    clock.advance(days=10)
    assert done(stage.work())
    assert run.tasks == ["escalate", "nag"]
    assert run.told("timer_fired") == ["timer_fired remind", "timer_fired deadline"]
    clock.advance(days=30)
    assert stage.work() == []
    run.complete("nag")
    run.complete("escalate")
    assert (run.status, run.leftovers) == ("completed", 0)


def test_S16_both_are_due_at_once_and_fire_in_their_order(stage: Stage, clock: Clock) -> None:
    run = stage.begin("a_reminder_and_a_deadline")
    clock.advance(days=40)  # nobody worked for long
    for _ in range(2):
        (leased,) = stage.take(limit=1)
        stage.end(leased)
    assert run.told("timer_fired") == ["timer_fired remind", "timer_fired deadline"]
    assert run.tasks == ["escalate", "nag"]


def test_S16_a_date_in_the_past_fires_at_once(stage: Stage) -> None:
    run = stage.begin("wait_until_a_date", when="2020-02-29T12:00:00Z")
    assert run.open == ["until"]
    assert done(stage.work())
    assert run.tasks == ["go"]


def test_S16_a_start_timer_keeps_to_its_anchor_and_makes_no_burst_for_the_past(stage: Stage, clock: Clock) -> None:
    stage.deploy("every_quarter_of_an_hour")
    now: datetime = rows.one(stage.conn, "SELECT baton_now()")
    next_quarter = (now - now.replace(hour=0, minute=0, second=0, microsecond=0)) // timedelta(minutes=15) + 1
    first = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + next_quarter * timedelta(minutes=15)
    assert rows.one(stage.conn, "SELECT due_at FROM job") == first
    clock.advance(seconds=(first - now).total_seconds() + 300)  # five minutes after a quarter
    for started in (1, 2, 3):
        assert done(stage.work())
        assert len(stage.runs("every_quarter_of_an_hour")) == started
        assert stage.work() == []
        assert rows.one(stage.conn, "SELECT due_at FROM job") == first + started * timedelta(minutes=15)
        assert stage.deploy("every_quarter_of_an_hour").definitions[0].unchanged
        clock.advance(minutes=15)
    clock.advance(hours=5)
    assert done(stage.work())
    late = len(stage.runs("every_quarter_of_an_hour"))
    assert late == 4, "one start catches up, whatever was missed"
    assert rows.one(stage.conn, "SELECT due_at > baton_now() FROM job")


def test_S25_an_expired_message_is_not_used_though_no_upkeep_has_run(stage: Stage, clock: Clock) -> None:
    run = stage.begin("wait_for_an_answer", ticket=42)
    stored = stage.publish("ANSWER", 42, live=10, text="too early")
    assert isinstance(stored, MessagePublished)
    assert stored.outcome == "stored"
    clock.advance(seconds=12)
    run.complete("ask")
    assert stage.work() == []
    assert run.open == ["answer"]
    assert rows.one(stage.conn, "SELECT count(*) FROM message") == 1, "nobody cleaned up"


def test_S25_a_stored_message_is_taken_in_time_and_key_42_is_the_text_and_the_number(stage: Stage, clock: Clock) -> None:
    run = stage.begin("wait_for_an_answer", ticket=42)
    stage.publish("ANSWER", "42", live=10, text="in time")
    clock.advance(seconds=8)
    run.complete("ask")
    assert done(stage.work())
    assert run.tasks == ["read"]
    assert run.variables["text"] == "in time"


def test_S25_of_two_who_wait_with_one_key_the_older_subscription_receives(stage: Stage) -> None:
    stage.deploy("wait_for_an_answer")
    older, younger = (stage.start("wait_for_an_answer", ticket=42) for _ in range(2))
    younger.complete("ask")
    older.complete("ask")
    for expected in (younger, older):  # the order of asking counts, not that of starting
        published = stage.publish("ANSWER", 42)
        assert isinstance(published, MessagePublished)
        assert published.instance_id == expected.id
    nobody = stage.publish("ANSWER", 42)
    assert isinstance(nobody, Rejected)
    assert nobody.refusal is Refusal.NO_SUBSCRIPTION
