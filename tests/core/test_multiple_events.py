"""Multiple events, of which any part occurs, and parallel multiple ones, of which all must (10.5.1, 10.5.4)."""

from __future__ import annotations

import pytest

from tests.core.models import (
    allof,
    anyof,
    boundary,
    by_event,
    catch,
    error_end,
    escalation_end,
    first_event,
    model,
    on_event,
    signals,
    sub,
    terminate,
    throw,
)
from tests.core.world import World

PAID, LATE, RICH = catch(on="PAID"), catch(after="PT1H"), catch(when="${total > 100}")


def waiting(*events: object, parallel: bool = False) -> World:
    wait = anyof(*events, parallel=parallel)  # type: ignore[arg-type]
    return World(model("start -> par -> wait -> b -> end", "par -> a -> c -> end2", wait=wait)).start(total=1)


# ---- any of them


def test_any_part_of_a_catch_event_lets_it_occur_and_withdraws_the_others() -> None:
    run = waiting(PAID, LATE)
    assert run.open == ["a", "wait#1", "wait#2"]
    run.receive("wait#1", who="bo")
    assert run.open == ["a", "b"] and run.variables["who"] == "bo"
    assert run.new()[:3] == ["message_correlated wait", "variables_set wait", "element_left wait"]
    assert waiting(PAID, LATE).fire("wait#2").open == ["a", "b"]


def test_a_condition_may_be_a_part() -> None:
    run = waiting(PAID, RICH)
    run.complete("a", total=101)
    assert run.open == ["b", "c"] and run.new("condition_met") == ["condition_met wait"]


def test_a_condition_that_is_true_leaves_nothing_to_wait_for() -> None:
    run = World(model("start -> wait -> b -> end", wait=anyof(PAID, RICH))).start(total=101)
    assert run.open == ["b"]


def test_a_multiple_event_behind_a_gateway_takes_its_token() -> None:
    flows = ("start -> choice -> wait -> b -> end", "choice -> other -> c -> end2")
    run = World(model(*flows, choice=first_event(), wait=anyof(PAID, LATE), other=catch(on="NO"))).start()
    assert run.open == ["other", "wait#1", "wait#2"]
    run.fire("wait#2")
    assert run.open == ["b"]


def bordered(*, interrupting: bool = True, parallel: bool = False) -> World:
    parts = [boundary("a", on="STOP", interrupting=interrupting), boundary("a", when="${total > 100}", interrupting=interrupting)]
    flows = ("start -> par -> a -> end", "edge -> b -> end2", "par -> c -> d -> e -> end3")
    return World(model(*flows, edge=anyof(*parts, parallel=parallel))).start(total=1)


def test_any_part_at_a_border_interrupts() -> None:
    assert bordered().receive("edge#1").tasks == ["b", "c"]
    assert bordered().complete("c", total=101).tasks == ["b", "d"]


def test_a_part_that_does_not_interrupt_waits_again_beside_the_others() -> None:
    run = bordered(interrupting=False).receive("edge#1")
    assert run.open == ["a", "b", "c", "edge#1"]
    run.complete("c", total=101)
    assert run.tasks == ["a", "b", "b", "d"]


def test_an_error_may_be_a_part_at_a_border() -> None:
    flows = ("start -> sub -> end", "start2 -> a -> bad", "edge -> b -> end2")
    nodes = {"sub": sub(), "bad": error_end("BROKEN"), "edge": anyof(boundary("sub", after="PT1H"), boundary("sub", error="BROKEN"))}
    run = World(model(*flows, inside={"sub": "start2 a bad"}, **nodes)).start()
    assert run.open == ["a", "edge#1"]
    run.complete("a")
    assert run.open == ["b"] and run.new("error_caught") == ["error_caught edge"]


def listening(*parts: object, parallel: bool = False) -> World:
    handler = {"handler": by_event(), "on": anyof(*parts, parallel=parallel)}  # type: ignore[arg-type]
    return World(model("start -> a -> c -> end", "on -> b -> end2", inside={"handler": "on b end2"}, **handler)).start(total=1)


def test_any_part_begins_an_event_subprocess() -> None:
    parts = (on_event(on="NEWS", interrupting=False), on_event(after="PT1H", interrupting=False))
    run = listening(*parts).fire("on#2")
    assert run.open == ["a", "b", "on#1"], "the timer is over, the message may come again"
    run.receive("on#1").receive("on#1")
    assert run.open == ["a", "b", "b", "b", "on#1"]


def test_an_escalation_may_be_a_part_at_the_start_of_an_event_subprocess() -> None:
    flows = ("start -> sub -> end", "start2 -> a -> loud", "on -> b -> end2")
    nodes = {"sub": sub(), "loud": escalation_end("LOUD"), "handler": by_event()}
    on = anyof(on_event(on="NEWS"), on_event(escalation="LOUD"))
    run = World(model(*flows, inside={"sub": "start2 a loud", "handler": "on b end2"}, on=on, **nodes)).start()
    assert run.open == ["a", "on#1"]
    run.complete("a")
    assert run.open == ["b"]


def test_any_part_starts_an_instance() -> None:
    start = anyof(on_event(on="NEWS"), on_event(on="OLD"))
    run = World(model("start -> a -> end", start=start)).start("start#2", "message", said="hello")
    assert run.tasks == ["a"] and run.new()[:3] == ["instance_started start", "variables_set start", "element_entered start"]


# ---- all of them


@pytest.mark.parametrize("first", ["message", "timer"])
def test_all_parts_of_a_catch_event_must_occur_in_any_order(first: str) -> None:
    run = waiting(PAID, LATE, parallel=True)
    steps = [lambda: run.receive("wait#1", who="bo"), lambda: run.fire("wait#2")]
    for step in steps if first == "message" else reversed(steps):
        assert "b" not in run.open
        step()
    assert run.open == ["a", "b"] and run.variables["who"] == "bo"


def test_the_parts_that_have_occurred_are_remembered() -> None:
    run = waiting(PAID, LATE, catch(on="PACKED"), parallel=True)
    run.receive("wait#1")
    (token,) = [token for token in run.tokens.values() if token.element_id == "wait"]
    assert token.memory == {"occurred": ["wait#1"]} and run.open == ["a", "wait#2", "wait#3"]


def test_a_condition_that_was_true_once_has_occurred() -> None:
    run = waiting(PAID, RICH, parallel=True)
    run.complete("a", total=101)
    assert run.open == ["c", "wait#1"]
    run.complete("c", total=1)
    run.receive("wait#1")
    assert run.open == ["b"]


def test_conditions_that_are_true_already_have_occurred() -> None:
    both = anyof(RICH, catch(when="${total > 200}"), parallel=True)
    run = World(model("start -> wait -> b -> end", wait=both)).start(total=300)
    assert run.tasks == ["b"]
    run = World(model("start -> wait -> b -> end", wait=anyof(RICH, PAID, parallel=True))).start(total=300)
    assert run.open == ["wait#2"]


def test_all_parts_at_a_border_interrupt_together() -> None:
    run = bordered(parallel=True).complete("c", total=101)
    assert run.tasks == ["a", "d"]
    run.receive("edge#1")
    assert run.tasks == ["b", "d"]


def test_all_parts_of_one_that_does_not_interrupt_must_occur_anew() -> None:
    run = bordered(parallel=True, interrupting=False).complete("c", total=101).receive("edge#1")
    assert run.tasks == ["a", "b", "d"]
    run.receive("edge#1")
    assert run.tasks == ["a", "b", "d"], "the condition has not become true again"
    run.complete("d", total=1).complete("e", total=101)
    assert run.tasks == ["a", "b", "b"]


def test_with_a_duration_among_them_all_parts_occur_once() -> None:
    parts = [boundary("a", on="STOP", interrupting=False), boundary("a", after="PT1H", interrupting=False)]
    run = World(model("start -> a -> end", "edge -> b -> end2", edge=anyof(*parts, parallel=True))).start()
    run.receive("edge#1").fire("edge#2")
    assert run.open == ["a", "b"]


def test_all_parts_begin_an_event_subprocess() -> None:
    run = listening(on_event(on="NEWS"), on_event(after="PT1H"), parallel=True).receive("on#1")
    assert run.open == ["a", "on#2"]
    run.fire("on#2")
    assert run.open == ["b"]


# ---- signals, and what is thrown


def signalling(*throws: object, **more: object) -> World:
    """A branch that throws, beside one that waits for two signals."""
    both = anyof(catch(signal="ONE"), catch(signal="TWO"), parallel=True)
    flows = ("start -> par -> both -> b -> end", "par -> a -> loud -> c -> end2")
    return World(model(*flows, both=both, loud=allof(*throws), **more)).start()  # type: ignore[arg-type]


def test_signals_of_one_step_are_the_parts_of_an_event_that_needs_both() -> None:
    run = signalling(signals("ONE"), signals("TWO")).complete("a")
    assert run.tasks == ["b", "c"]
    assert run.new("signal_thrown", "signal_caught") == ["signal_thrown loud"] * 2 + ["signal_caught both"] * 2


def test_one_of_two_signals_is_remembered() -> None:
    run = signalling(signals("ONE"), throw(escalation="LOUD")).complete("a")
    assert run.open == ["both#2", "c"] and run.new("escalation_thrown") == ["escalation_thrown loud"]


def test_a_multiple_throw_sends_all_or_nothing() -> None:
    run = signalling(signals("ONE"), signals("${missing}")).complete("a")
    assert [incident.element_id for incident in run.incidents] == ["loud"]
    assert not run.last.throws and not run.new("signal_caught", "signal_thrown")


def ending(*ends: object) -> World:
    flows = ("start -> sub -> d -> end", "start2 -> par -> a -> last", "par -> b -> end3", "edge -> c -> end2")
    nodes = {"sub": sub(), "last": allof(*ends), "edge": boundary("sub", error="BROKEN")}  # type: ignore[arg-type]
    return World(model(*flows, inside={"sub": "start2 par a last b end3"}, **nodes)).start()


def test_a_multiple_end_throws_all_and_the_error_last() -> None:
    run = ending(escalation_end("LOUD"), error_end("BROKEN")).complete("a")
    assert run.tasks == ["c"]
    assert run.new("escalation_thrown", "error_caught") == ["escalation_thrown last", "error_caught edge"]


def test_a_multiple_end_whose_error_nothing_catches_throws_nothing() -> None:
    run = ending(escalation_end("LOUD"), error_end("OTHER")).complete("a")
    assert [incident.kind for incident in run.incidents] == ["uncaught_error"] and not run.new("escalation_thrown")


def test_a_multiple_end_terminates_its_scope_after_the_rest() -> None:
    run = ending(escalation_end("LOUD"), terminate()).complete("a")
    assert run.tasks == ["d"] and run.new("escalation_thrown") == ["escalation_thrown last"]
