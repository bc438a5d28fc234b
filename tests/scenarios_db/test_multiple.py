"""A model of multiple events from its start to its end: messages, a signal and a condition that must all occur."""

from __future__ import annotations

from engine.commands.outcome import MessagePublished
from tests import rows
from tests.cast import ADA
from tests.scenarios_db.stage import Run, Stage, done


def asked(stage: Stage) -> Run:
    stage.deploy("several_at_once")
    sent = stage.publish("MAIL", 7, broken=False)
    assert isinstance(sent, MessagePublished) and sent.started
    (run,) = stage.runs("several_at_once")
    return run


def test_all_parts_occur_in_their_own_time_and_what_is_thrown_at_the_end_is_all_thrown(stage: Stage) -> None:
    run = asked(stage)
    stage.publish("PAID", 7, live=60)
    run.complete("pack", ADA)
    assert done(stage.work()), "a stored message meets its part"
    assert rows.one(stage.conn, "SELECT memory -> 'occurred' FROM token WHERE element_id = 'ready'") == ["ready#1"]
    stage.signal("PICKED UP")
    assert done(stage.work())
    assert rows.one(stage.conn, "SELECT memory -> 'occurred' FROM token WHERE element_id = 'ready'") == ["ready#1", "ready#2"]
    assert run.tasks == []
    stage.publish("CALL", 7, checked=True)
    assert run.tasks == ["check", "note"]
    run.complete("check", ADA)
    run.complete("note", ADA)
    assert done(stage.work())
    assert (run.status, run.leftovers) == ("completed", 0)
    assert run.told("message_thrown", "signal_thrown") == ["message_thrown told", "signal_thrown told"]


def test_a_lost_lease_between_two_parts_loses_nothing(stage: Stage) -> None:
    """What has occurred is in the token's row, committed with the job that brought it."""
    run = asked(stage)
    run.complete("pack", ADA, checked=True)
    stage.signal("PICKED UP")
    (thrown,) = stage.take()
    stage.end(thrown)
    (item,) = stage.take()
    stage.end(item)
    stage.end(item)  # again, by a worker that does not know that it has landed
    assert rows.one(stage.conn, "SELECT memory -> 'occurred' FROM token WHERE element_id = 'ready'") == ["ready#3", "ready#2"]
    stage.publish("PAID", 7)
    assert run.tasks == ["check"]
