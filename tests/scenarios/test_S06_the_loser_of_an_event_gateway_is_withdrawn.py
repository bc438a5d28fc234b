"""S6: one event wins, and what the others waited with is gone in the same effects."""

import pytest

from engine.core.effects import NewJob, NewSubscription
from tests.core.models import catch, first_event, model
from tests.core.world import World

PAID_OR_LATE = model(
    "start -> which -> paid -> p -> end_p",
    "which -> late -> t -> end_t",
    which=first_event(),
    paid=catch(on="PAID", key="${order}"),
    late=catch(after="PT30M"),
)


def test_S6_one_token_waits_with_one_leaf_per_event() -> None:
    run = World(PAID_OR_LATE).start(order=7)
    (token,) = run.tokens.values()
    assert token.element_id == "which"
    subscription, timer = run.leaf("paid", NewSubscription), run.leaf("late", NewJob)
    assert subscription.token_id == timer.token_id == token.id
    assert isinstance(subscription, NewSubscription)
    assert (subscription.message_name, subscription.correlation_key) == ("PAID", "7")
    assert isinstance(timer, NewJob)
    assert (timer.kind, timer.due_in_seconds, timer.due_at) == ("timer", 1800.0, None)


def test_S6_the_message_wins_and_the_timer_is_gone() -> None:
    run = World(PAID_OR_LATE).start(order=7)
    (waiting,) = run.tokens
    run.receive("paid", amount=12)
    assert run.last.gone_tokens == [waiting], "the old row takes the other leaves along"
    assert run.open == ["p"]
    assert run.variables["amount"] == 12
    assert run.new() == [
        "message_correlated paid",
        "variables_set paid",
        "element_left which",
        "flow_taken which>paid",
        "element_entered paid",
        "element_left paid",
        "flow_taken paid>p",
        "element_entered p",
        "task_created p",
    ]
    with pytest.raises(AssertionError, match="expected a leaf at paid"):
        run.receive("paid")
    run.complete("p")
    assert run.ended == "completed"
    assert run.asked_whole == 0


def test_S6_the_timer_wins_and_the_subscription_is_gone() -> None:
    run = World(PAID_OR_LATE).start(order=7).fire("late")
    assert run.open == ["t"]
    assert run.new("timer_fired", "message_correlated") == ["timer_fired late"]
    assert run.complete("t").ended == "completed"
