"""Conditional events (10.5.5, 13.5): at activation, on false to true, in every position, and who is asked to look."""

from __future__ import annotations

from dataclasses import replace

from tests.core.models import (
    boundary,
    by_event,
    call,
    catch,
    first_event,
    link,
    looped,
    model,
    on_event,
    par,
    script,
    several,
    sub,
    throw,
    user,
)
from tests.core.world import World


def waiting_for(text: str = "${total > 100}") -> World:
    """A branch that waits for a condition beside a task whose results may fulfil it."""
    return World(model("start -> par -> wait -> rich -> end", "par -> a -> b -> end2", wait=catch(when=text)))


# ---- catch events


def test_a_condition_that_is_true_already_occurs_at_once() -> None:
    run = World(model("start -> wait -> a -> end", wait=catch(when="${total > 100}"))).start(total=101)
    assert run.tasks == ["a"]
    assert run.new("element_entered", "condition_met", "element_left")[2:5] == [
        "element_entered wait",
        "condition_met wait",
        "element_left wait",
    ]


def test_a_condition_waits_until_a_change_makes_it_true() -> None:
    run = waiting_for().start(total=1)
    assert run.tasks == ["a"]
    run.complete("a", total=99)
    assert run.tasks == ["b"] and run.new("condition_met") == []
    run.complete("b", total=101)
    assert run.tasks == ["rich"] and run.new("condition_met") == ["condition_met wait"]
    run.complete("rich")
    assert run.ended == "completed"


def test_history_says_which_condition_was_met() -> None:
    run = waiting_for().start(total=1).complete("a", total=200)
    (met,) = [event for event in run.events if event.kind == "condition_met"]
    assert met.data == {"condition": "${total > 100}"}


def test_a_name_that_does_not_exist_yet_is_not_true_yet() -> None:
    run = waiting_for("${order.total > 100}").start()
    assert not run.incidents
    run.complete("a", order={"lines": []})
    assert not run.incidents and run.tasks == ["b"]
    run.complete("b", order={"total": 101})
    assert run.tasks == ["rich"]


def test_a_change_that_goes_and_comes_back_within_a_step_is_not_seen() -> None:
    flows = ("start -> par -> wait -> rich -> end", "par -> a -> up -> down -> b -> end2")
    nodes = {"wait": catch(when="${total > 100}"), "up": script("${101}", "total"), "down": script("${1}", "total")}
    run = World(model(*flows, **nodes)).start(total=1).complete("a")
    assert run.tasks == ["b"]


def test_a_condition_over_the_clock_is_asked_at_every_change() -> None:
    run = waiting_for("${now > deadline}").start(deadline="2026-11-30T00:00:00+00:00")
    assert [incident.kind for incident in run.incidents] == ["expression"], "a text is no time"


# ---- what cannot be evaluated


def test_a_condition_that_cannot_be_evaluated_when_it_begins_to_wait_is_an_incident() -> None:
    run = World(model("start -> wait -> a -> end", wait=catch(when="${total > 100}"))).start(total="many")
    assert [(incident.element_id, incident.kind) for incident in run.incidents] == [("wait", "expression")]
    assert "condition ${total > 100} of wait" in run.incidents[0].message


def test_a_condition_that_a_change_makes_fail_is_an_incident_and_a_retry_looks_again() -> None:
    run = waiting_for().start(total=1).complete("a", total="many")
    assert [incident.element_id for incident in run.incidents] == ["wait"] and run.tasks == ["b"]
    run.complete("b", total=101)
    assert run.tasks == []
    run.retry("wait")
    assert run.tasks == ["rich"] and not run.incidents


def test_a_condition_that_is_neither_true_nor_false_is_an_incident() -> None:
    run = waiting_for("${total}").start(total=1)
    assert "expected true or false" in run.incidents[0].message


def test_what_fails_at_the_border_of_an_activity_leaves_the_activity_alone() -> None:
    flows = ("start -> par -> a -> end", "late -> b -> end2", "par -> other -> again -> end3")
    run = World(model(*flows, late=boundary("a", when="${total > 100}"))).start(total=1)
    run.complete("other", total="many")
    assert run.tasks == ["a", "again"] and not run.incidents
    assert run.new("condition_failed") == ["condition_failed late"]
    run.complete("again", total=101)
    assert run.tasks == ["b"] and run.new("condition_met") == ["condition_met late"]


def test_the_same_failure_is_told_once() -> None:
    flows = ("start -> par -> a -> end", "late -> b -> end2", "par -> other -> again -> end3")
    run = World(model(*flows, late=boundary("a", when="${total > 100 && x}"))).start(total=1, x=True)
    run.complete("other", total="many")
    run.complete("again", x=False)
    assert run.happened.count("condition_failed late") == 1


# ---- boundary events


def bordered(interrupting: bool = True) -> World:
    flows = ("start -> par -> a -> end", "rich -> b -> end2", "par -> other -> again -> once -> end3")
    return World(model(*flows, rich=boundary("a", when="${total > 100}", interrupting=interrupting)))


def test_an_interrupting_condition_cancels_its_activity() -> None:
    run = bordered().start(total=1).complete("other", total=101)
    assert run.tasks == ["again", "b"]
    assert run.new("task_cancelled", "element_left") == ["element_left other", "task_cancelled a", "element_left a", "element_left rich"]


def test_an_interrupting_condition_that_is_true_already_lets_nothing_begin() -> None:
    run = bordered().start(total=101)
    assert run.tasks == ["b", "other"]
    assert not [each for each in run.happened if each.split()[0] in ("task_created", "task_cancelled") and each.endswith(" a")]


def test_a_condition_that_does_not_interrupt_occurs_each_time_it_becomes_true() -> None:
    run = bordered(interrupting=False).start(total=1)
    run.complete("other", total=101)
    assert run.tasks == ["a", "again", "b"]
    run.complete("again", total=102)
    assert run.tasks == ["a", "b", "once"], "it was true before"
    run.complete("b", total=1)
    run.complete("once", total=101)
    assert run.tasks == ["a", "b"], "false, and true again"
    run.complete("b").complete("a")
    assert run.ended == "completed" and run.happened.count("condition_met rich") == 2


def test_a_condition_that_does_not_interrupt_and_is_true_already_occurs_once_beside_its_activity() -> None:
    run = bordered(interrupting=False).start(total=101)
    assert run.tasks == ["a", "b", "other"]
    run.complete("other", total=102)
    assert run.tasks == ["a", "again", "b"]


def test_an_activity_that_ends_is_watched_no_longer() -> None:
    run = bordered().start(total=1).complete("a").complete("other", total=101)
    assert run.tasks == ["again"] and not run.new("condition_met")


def test_the_result_of_the_activity_itself_comes_too_late_to_interrupt_it() -> None:
    run = bordered().start(total=1).complete("a", total=101)
    assert run.tasks == ["other"] and not run.new("condition_met")


# ---- scopes


def test_a_change_inside_a_subprocess_is_seen_at_its_border() -> None:
    flows = ("start -> sub -> end", "start2 -> a -> b -> end2", "rich -> c -> end3")
    run = World(model(*flows, inside={"sub": "start2 a b end2"}, sub=sub(), rich=boundary("sub", when="${total > 100}")))
    run.start(total=1).complete("a", total=101)
    assert run.tasks == ["c"]


def test_a_change_outside_is_seen_inside_a_subprocess_that_was_not_loaded() -> None:
    flows = ("start -> par -> sub -> end", "start2 -> wait -> b -> end2", "par -> a -> c -> end3")
    run = World(model(*flows, inside={"sub": "start2 wait b end2"}, sub=sub(), wait=catch(when="${total > 100}")))
    run.start(total=1)
    run.complete("a", other=1)
    assert run.asked_whole == 0, "a name that no condition reads"
    run.complete("c", total=101)
    assert run.asked_whole == 1 and run.tasks == ["b"]


def test_a_local_variable_hides_a_change_outside() -> None:
    flows = ("start -> par -> sub -> end", "start2 -> wait -> b -> end2", "par -> a -> end3")
    inner = sub({"total": "${1}"})
    run = World(model(*flows, inside={"sub": "start2 wait b end2"}, sub=inner, wait=catch(when="${total > 100}"))).start(total=1)
    run.complete("a", total=101)
    assert not run.tasks


def test_a_process_without_conditions_never_asks_for_the_whole_because_of_a_variable() -> None:
    run = World(model("start -> par -> a -> end", "par -> b -> end2")).start().complete("a", total=101)
    assert run.asked_whole == 0


def test_each_iteration_watches_its_own_item() -> None:
    flows = ("start -> sub -> end", "start2 -> wait -> b -> end2")
    body = several(sub(), of="${items}")
    run = World(model(*flows, inside={"sub": "start2 wait b end2"}, sub=body, wait=catch(when="${item > 1}"))).start(items=[1, 2, 3])
    assert run.tasks == ["b", "b"]


def test_a_looped_activity_that_is_interrupted_at_once_does_not_begin() -> None:
    flows = ("start -> a -> end", "rich -> b -> end2")
    run = World(model(*flows, a=looped(user(), maximum=2), rich=boundary("a", when="${total > 100}"))).start(total=101)
    assert run.tasks == ["b"]


# ---- event-based gateways


def choosing(**nodes: object) -> World:
    flows = ("start -> par -> choice -> rich -> b -> end", "choice -> late -> c -> end2", "par -> a -> d -> end3")
    return World(model(*flows, choice=first_event(), rich=catch(when="${total > 100}"), late=catch(after="PT1H")))


def test_a_condition_behind_a_gateway_takes_the_token_when_it_becomes_true() -> None:
    run = choosing().start(total=1)
    assert run.open == ["a", "late"]
    run.complete("a", total=101)
    assert run.tasks == ["b", "d"] and run.open == ["b", "d"], "the timer is withdrawn"


def test_the_loser_of_the_gateway_is_a_condition() -> None:
    run = choosing().start(total=1).fire("late").complete("a", total=101)
    assert run.tasks == ["c", "d"] and not run.new("condition_met")


def test_a_gateway_with_a_condition_that_is_true_waits_for_nothing_else() -> None:
    run = choosing().start(total=101)
    assert run.open == ["a", "b"] and not run.new("job_created")


# ---- event subprocesses


def listening(interrupting: bool) -> World:
    flows = ("start -> a -> c -> e -> end", "on -> b -> end2")
    handler = {"handler": by_event(), "on": on_event(when="${total > 100}", interrupting=interrupting)}
    return World(model(*flows, inside={"handler": "on b end2"}, **handler))


def test_an_interrupting_event_subprocess_begins_when_its_condition_becomes_true() -> None:
    run = listening(True).start(total=1).complete("a", total=101)
    assert run.tasks == ["b"] and run.asked_whole == 0
    run.complete("b")
    assert run.ended == "completed"


def test_an_interrupting_event_subprocess_whose_condition_is_true_takes_the_place_of_all_else() -> None:
    run = listening(True).start(total=101)
    assert run.tasks == ["b"] and "task_created a" not in run.happened


def test_one_that_does_not_interrupt_begins_each_time() -> None:
    run = listening(False).start(total=101)
    assert run.tasks == ["a", "b"]
    run.complete("a", total=1).complete("c", total=101)
    assert run.tasks == ["b", "b", "e"]


def test_a_listener_that_fails_rests_beside_an_incident_and_listens_again_after_a_retry() -> None:
    run = listening(True).start(total=1).complete("a", total="many")
    assert [incident.element_id for incident in run.incidents] == ["handler"] and run.tasks == ["c"]
    run.complete("c", total=1)
    run.retry("handler")
    assert not run.incidents and run.tasks == ["e"]
    run.complete("e")
    assert run.ended == "completed"


# ---- chains


def test_what_occurs_changes_variables_and_lets_others_occur() -> None:
    flows = ("start -> par -> one -> more -> end", "par -> two -> b -> end2", "par -> a -> end3")
    nodes = {"one": catch(when="${x > 0}"), "more": script("${x + 1}", "y"), "two": catch(when="${y > 1}")}
    run = World(model(*flows, **nodes)).start(x=0, y=0).complete("a", x=1)
    assert run.tasks == ["b"]
    assert run.new("condition_met") == ["condition_met one", "condition_met two"]


def test_all_that_became_true_by_one_change_occur() -> None:
    flows = ("start -> par -> one -> down -> end", "par -> two -> b -> end2", "par -> a -> end3")
    nodes = {"one": catch(when="${x > 0}"), "down": script("${0}", "x"), "two": catch(when="${x > 0}")}
    run = World(model(*flows, **nodes)).start(x=0).complete("a", x=1)
    assert run.tasks == ["b"]


def test_conditions_that_make_each_other_true_for_ever_end_as_an_incident() -> None:
    flows = ("start -> a -> end", "on -> off_script -> end2", "off -> on_script -> end3")
    nodes = {
        "a": sub(),
        "on": boundary("a", when="${x}", interrupting=False),
        "off": boundary("a", when="${!x}", interrupting=False),
        "off_script": script("${false}", "x"),
        "on_script": script("${true}", "x"),
    }
    run = World(model(*flows, "start2 -> b -> end4", inside={"a": "start2 b end4"}, **nodes)).start(x=True)
    assert {incident.kind for incident in run.incidents} == {"endless_loop"}
    assert run.tasks == ["b"]


def test_a_loop_over_a_condition_that_stays_true_ends_as_an_incident() -> None:
    run = World(model("start -> xor -> wait -> xor", wait=catch(when="${true}"))).start()
    assert [incident.kind for incident in run.incidents] == ["endless_loop"]


def test_links_and_joins_go_on_after_a_condition() -> None:
    flows = ("start -> par -> wait -> out", "back -> join", "par -> a -> join -> b -> end")
    nodes = {"wait": catch(when="${x > 0}"), "out": throw(link="L"), "back": link("L"), "join": par()}
    run = World(model(*flows, **nodes)).start(x=0).complete("a", x=1)
    assert run.tasks == ["b"]


def test_cancelling_leaves_no_condition_behind() -> None:
    run = bordered().start(total=1).cancel()
    assert run.ended == "cancelled" and not run.tokens


# ---- called processes


def test_what_a_called_process_gives_back_is_seen_by_the_conditions_of_its_caller() -> None:
    called = replace(model("start -> a -> end"), key="called")
    flows = ("start -> par -> ask -> end", "par -> wait -> b -> end2", "par -> c -> end3")
    run = World(
        model(*flows, ask=call("called", results={"total": "total"}), wait=catch(when="${total > 100}")), library={"called": called}
    )
    run.start(total=1)
    run.complete("a", total=101)
    assert run.tasks == ["b", "c"]


def test_a_called_process_does_not_see_what_changes_around_it() -> None:
    called = replace(model("start -> wait -> a -> end", wait=catch(when="${total > 100}")), key="called")
    flows = ("start -> par -> ask -> end", "par -> c -> d -> end3")
    run = World(model(*flows, ask=call("called", inputs={"total": "total"})), library={"called": called}).start(total=1)
    run.complete("c", total=101)
    assert run.tasks == ["d"]


def test_a_condition_at_the_border_of_a_call_ends_the_called_process() -> None:
    called = replace(model("start -> a -> end"), key="called")
    flows = ("start -> par -> ask -> end", "rich -> b -> end2", "par -> c -> end3")
    run = World(model(*flows, ask=call("called"), rich=boundary("ask", when="${total > 100}")), library={"called": called}).start(total=1)
    run.complete("c", total=101)
    assert run.tasks == ["b"]
