"""Call activities (10.3.6, 13.3.5): another process as an instance of its own, moved in the same advance as its caller."""

from dataclasses import replace

import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.core.elements.call_activity import MAX_DEPTH
from engine.core.snapshot import NoHandlerForError
from engine.core.values import Variable, native
from tests.core.models import (
    boundary,
    by_event,
    call,
    catch,
    end,
    error_end,
    escalation_end,
    looped,
    model,
    on_event,
    par,
    service,
    several,
    start,
    sub,
    terminate,
    user,
)
from tests.core.world import World


def named(key: str, definition: ProcessDefinition) -> ProcessDefinition:
    return replace(definition, key=key, name=key.title())


CHECKING = named("checking", model("start -> check -> end", check=user()))
ORDER = model("start -> ask -> ship -> end", ask=call("checking"), ship=user())


def calling(definition: ProcessDefinition = ORDER, **library: ProcessDefinition) -> World:
    return World(definition, business_key="A-1", library={"checking": CHECKING, **library})


# ---- one after the other, in one step


def test_a_call_begins_an_instance_of_its_own_and_waits_for_it() -> None:
    case = calling().start()
    (called,) = case.called.values()
    assert case.tasks == ["check"] and (called.status, called.parent_id) == ("running", case.instance_id)
    assert case.tokens[called.parent_token_id].element_id == "ask"
    assert case.new("instance_started", "element_entered") == [
        "instance_started start",
        "element_entered start",
        "element_entered ask",
        "instance_started start",
        "element_entered start",
        "element_entered check",
    ]


def test_the_end_of_the_called_process_moves_the_caller_in_the_same_step() -> None:
    case = calling().start().complete("check")
    assert case.tasks == ["ship"] and [called.status for called in case.called.values()] == ["completed"]
    assert case.new("instance_completed", "element_left") == [
        "element_left check",
        "element_left end",
        "instance_completed",
        "element_left ask",
    ]
    assert case.complete("ship").ended == "completed"


def test_events_and_rows_belong_to_the_instance_in_which_they_happen() -> None:
    case = calling().start()
    (called,) = case.called
    by_instance = {(event.kind, event.element_id): event.instance_id for event in case.last.history}
    assert by_instance["task_created", "check"] == called and by_instance["element_entered", "ask"] is None
    case.complete("check")
    by_instance = {(event.kind, event.element_id): event.instance_id for event in case.last.history}
    assert by_instance["task_completed", "check"] is None and by_instance["task_created", "ship"] == case.instance_id


def test_calls_of_calls_begin_and_end_in_one_step() -> None:
    middle = named("middle", model("start -> inner -> end", inner=call("checking")))
    case = calling(model("start -> outer -> end", outer=call("middle")), middle=middle).start()
    assert len(case.called) == 2 and case.tasks == ["check"]
    assert case.complete("check").ended == "completed"
    assert {called.status for called in case.called.values()} == {"completed"}


def test_a_called_process_that_waits_for_nothing_is_over_at_once() -> None:
    case = calling(checking=named("checking", model("start -> end"))).start()
    assert case.tasks == ["ship"]
    assert [(called.status, called.final_variables) for called in case.called.values()] == [("completed", {})]


def test_terminate_ends_the_called_instance_only() -> None:
    stopping = named("checking", model("start -> par -> a -> end", "par -> b -> stop", a=user(), b=user(), stop=terminate()))
    case = calling(checking=stopping).start().complete("b")
    assert case.tasks == ["ship"] and "task_cancelled a" in case.happened


def test_a_called_process_with_its_own_subprocess_and_boundary_timer() -> None:
    inner = named(
        "checking",
        model(
            "start -> sub -> end", "begin -> check -> done", "late -> end", inside={"sub": "begin check done"},
            begin=start(), done=terminate(), check=user(), sub=sub(), late=boundary("sub", after="PT1H"),
        ),
    )  # fmt: skip
    case = calling(checking=inner).start().fire("late")
    assert case.tasks == ["ship"] and "task_cancelled check" in case.happened


# ---- what is passed


def test_without_mappings_nothing_goes_in_and_nothing_comes_back() -> None:
    case = calling().start(amount=7)
    (called,) = case.called
    assert _variables(case, called) == {}
    case.complete("check", verdict="good")
    assert case.variables == {"amount": 7}
    assert case.called[called].final_variables == {"verdict": Variable("string", "good")}


def test_mapped_variables_keep_their_types_and_expressions_are_evaluated_where_they_stand() -> None:
    order = model(
        "start -> ask -> ship -> end",
        ask=call("checking", inputs={"sum": "amount", "twice": "${amount * 2}", "no": "missing"}, results={"ok": "${verdict == 'good'}"}),
        ship=user(),
    )  # fmt: skip
    case = calling(order).start(amount=7)
    (called,) = case.called
    assert _variables(case, called) == {"sum": 7, "twice": 14, "no": None}
    assert case.complete("check", verdict="good", sum=8).variables == {"amount": 7, "ok": True}


def test_all_variables_in_and_all_back() -> None:
    order = model("start -> ask -> ship -> end", ask=call("checking", passes="all", returns_all=True), ship=user())
    case = calling(order).start(amount=7).complete("check", amount=8, verdict="good")
    assert case.variables == {"amount": 8, "verdict": "good"}


def test_only_the_locals_of_the_activity_are_passed() -> None:
    order = model("start -> ask -> end", ask=call("checking", locals={"sum": "${amount + 1}", "more": "${sum + 1}"}, passes="local"))
    case = calling(order).start(amount=7)
    assert [_variables(case, called) for called in case.called] == [{"sum": 8, "more": 9}]
    assert case.variables == {"amount": 7}


def test_outputs_see_the_variables_of_the_called_process_before_those_of_the_caller() -> None:
    order = model("start -> ask -> ship -> end", ask=call("checking", outputs={"total": "${amount + extra}"}), ship=user())
    assert calling(order).start(amount=7, extra=1).complete("check", amount=10).variables == {"amount": 7, "extra": 1, "total": 11}


def test_the_business_key_goes_along_unless_another_is_mapped() -> None:
    case = calling().start()
    assert [called.business_key for called in case.called.values()] == ["A-1"]
    order = model("start -> ask -> end", ask=call("checking", business_key="${businessKey}/check"))
    assert [called.business_key for called in calling(order).start().called.values()] == ["A-1/check"]


def test_a_result_that_cannot_be_made_is_an_incident_and_a_retry_calls_again() -> None:
    order = model("start -> ask -> ship -> end", ask=call("checking", results={"ok": "${verdict.size}"}), ship=user())
    case = calling(order).start().complete("check")
    assert [incident.element_id for incident in case.incidents] == ["ask"] and case.tasks == []
    case.retry("ask").complete("check", verdict={"size": 3})
    assert case.tasks == ["ship"] and case.variables == {"ok": 3}
    assert [called.status for called in case.called.values()] == ["completed", "completed"]


# ---- what cannot be called


def test_a_process_that_is_not_there_is_an_incident_until_it_is() -> None:
    case = World(ORDER, library={}).start()
    (incident,) = case.incidents
    assert (incident.kind, incident.element_id) == ("not_callable", "ask") and "no process checking" in incident.message
    assert not case.called
    case.library["checking"] = CHECKING
    assert case.retry("ask").tasks == ["check"] and not case.incidents


def test_a_process_that_only_a_message_starts_cannot_be_called() -> None:
    case = calling(checking=named("checking", model("start -> end", start=on_event(on="go")))).start()
    assert "none start event" in case.incidents[0].message


def test_a_process_that_calls_itself_without_end_becomes_an_incident() -> None:
    endless = named("endless", model("start -> again -> end", again=call("endless")))
    case = World(endless, library={"endless": endless}).start()
    assert [incident.kind for incident in case.incidents] == ["too_deep"]
    assert len(case.called) == MAX_DEPTH - 1
    assert case.cancel().ended == "cancelled" and {called.status for called in case.called.values()} == {"cancelled"}


def test_recursion_with_an_end_returns_through_every_level() -> None:
    counting = named(
        "counting",
        model(
            "start -> xor -> deeper -> join", "xor -> work -> join", "join -> end",
            conditions={"xor>deeper": "${n > 0}"}, defaults=("xor>work",),
            deeper=call("counting", inputs={"n": "${n - 1}"}, results={"sum": "${sum + n}"}), work=user(), join=user(),
        ),
    )  # fmt: skip
    short = replace(counting, nodes={**counting.nodes, "join": replace(counting.nodes["join"], kind="exclusive_gateway", config=None)})
    case = World(short, library={"counting": short}).start(n=20)
    assert len(case.called) == 20 and case.tasks == ["work"]
    assert case.complete("work", sum=0).ended == "completed" and case.final["sum"] == sum(range(20))


# ---- cancelled from outside, and from inside


def test_a_boundary_timer_cancels_everything_that_was_called() -> None:
    middle = named("middle", model("start -> inner -> end", inner=call("checking")))
    order = model("start -> ask -> end", "late -> other -> end", ask=call("middle"), late=boundary("ask", after="PT1H"), other=user())
    case = calling(order, middle=middle).start().fire("late")
    assert case.tasks == ["other"] and {called.status for called in case.called.values()} == {"cancelled"}
    assert case.new("task_cancelled", "instance_cancelled") == ["task_cancelled check", "instance_cancelled", "instance_cancelled"]


def test_a_boundary_event_that_does_not_interrupt_leaves_the_called_process_running() -> None:
    order = model("start -> ask -> end", "late -> other -> end", ask=call("checking"), other=user(),
                  late=boundary("ask", after="PT1H", interrupting=False))  # fmt: skip
    case = calling(order).start().fire("late")
    assert case.tasks == ["check", "other"]
    assert case.complete("other").complete("check").ended == "completed"


def test_an_error_in_the_called_process_is_caught_at_the_border_of_the_call() -> None:
    failing = named("checking", model("start -> check -> bad", check=user(), bad=error_end("E1")))
    order = model("start -> ask -> end", "wrong -> other -> end", ask=call("checking"), other=user(),
                  wrong=boundary("ask", error="E1", code_variable="code"))  # fmt: skip
    case = calling(order, checking=failing).start().complete("check")
    assert case.tasks == ["other"] and case.variables == {"code": "E1"}
    assert [called.status for called in case.called.values()] == ["cancelled"]
    caught = next(event for event in case.events if event.kind == "error_caught")
    assert (caught.element_id, caught.instance_id) == ("wrong", case.instance_id)


def test_an_error_that_nothing_catches_rests_where_it_was_thrown() -> None:
    failing = named("checking", model("start -> check -> bad", check=user(), bad=error_end("E1")))
    case = calling(checking=failing).start().complete("check")
    assert [(incident.kind, incident.element_id) for incident in case.incidents] == [("uncaught_error", "bad")]


def test_an_error_of_a_handler_goes_through_two_calls() -> None:
    deepest = named("deepest", model("start -> work -> end", work=service()))
    middle = named("middle", model("start -> inner -> end", inner=call("deepest")))
    order = model("start -> ask -> end", "wrong -> other -> end", ask=call("middle"), other=user(), wrong=boundary("ask", error="*"))
    library = {"middle": middle, "deepest": deepest}
    assert World(order, library=library).start().throw("work", "E9").tasks == ["other"]
    with pytest.raises(NoHandlerForError):
        World(model("start -> ask -> end", ask=call("middle")), library=library).start().throw("work", "E9")


def test_an_escalation_reaches_the_border_of_the_call_and_the_called_process_goes_on() -> None:
    escalating = named("checking", model("start -> par -> check -> end", "par -> up", check=user(), up=escalation_end("UP")))
    order = model("start -> ask -> end", "told -> other -> end", ask=call("checking"), other=user(),
                  told=boundary("ask", escalation="UP", interrupting=False))  # fmt: skip
    case = calling(order, checking=escalating).start()
    assert case.tasks == ["check", "other"]
    assert case.complete("check").complete("other").ended == "completed"


def test_an_escalation_that_interrupts_cancels_the_called_process() -> None:
    escalating = named("checking", model("start -> par -> check -> end", "par -> up", check=user(), up=escalation_end("UP")))
    order = model("start -> ask -> end", "told -> other -> end", ask=call("checking"), other=user(), told=boundary("ask", escalation="UP"))
    case = calling(order, checking=escalating).start()
    assert case.tasks == ["other"] and [called.status for called in case.called.values()] == ["cancelled"]


def test_cancelling_the_case_ends_every_instance_and_names_every_task() -> None:
    case = calling(model("start -> ask -> end", ask=several(call("checking"), times="${3}"))).start()
    assert case.tasks == ["check"] * 3
    case.cancel("enough")
    assert case.ended == "cancelled" and [called.status for called in case.called.values()] == ["cancelled"] * 3
    assert case.new() == ["task_cancelled check"] * 3 + ["instance_cancelled"] * 4


# ---- several


def test_a_call_for_each_of_several_and_each_gets_its_item() -> None:
    order = model("start -> ask -> end", ask=several(call("checking", inputs={"name": "item"}), of="${names}"))
    case = calling(order).start(names=["a", "b"])
    assert [_variables(case, called) for called in case.called] == [{"name": "a"}, {"name": "b"}]
    assert case.complete("check").complete("check").ended == "completed"


def test_a_completion_condition_cancels_the_calls_that_are_left() -> None:
    order = model(
        "start -> ask -> ship -> end", ask=several(call("checking"), times="${3}", until="${nrOfCompletedInstances == 1}"), ship=user()
    )
    case = calling(order).start().complete("check")
    assert case.tasks == ["ship"]
    assert sorted(called.status for called in case.called.values()) == ["cancelled", "cancelled", "completed"]


# ---- waiting in the called process


def test_a_message_of_the_called_process_has_its_business_key() -> None:
    waiting = named("checking", model("start -> answer -> end", answer=catch(on="answered")))
    case = calling(checking=waiting).start()
    assert case.leaf("answer").correlation_key == "A-1"  # type: ignore[union-attr]
    assert case.receive("answer").tasks == ["ship"]


def test_an_event_subprocess_of_the_called_process_interrupts_that_alone() -> None:
    watching = named(
        "checking",
        model(
            "start -> check -> end", "late -> note -> done", inside={"watch": "late note done"},
            watch=by_event(), late=on_event(after="PT1H"), note=user(), check=user(), done=end(),
        ),
    )  # fmt: skip
    case = calling(checking=watching).start().fire("late")
    assert case.tasks == ["note"] and case.complete("note").tasks == ["ship"]


def _variables(case: World, instance_id: object) -> dict[str, object]:
    (scope,) = (scope for scope in case.scopes.values() if scope.instance_id == instance_id and scope.parent_id is None)
    return {name: native(variable) for name, variable in scope.variables.items()}


def test_an_event_subprocess_of_the_caller_catches_what_the_called_process_throws() -> None:
    failing = named("checking", model("start -> check -> bad", check=user(), bad=error_end("E1")))
    order = model(
        "start -> par -> ask -> end", "par -> pack -> end2", "wrong -> repair -> done", inside={"mend": "wrong repair done"},
        par=par(), ask=call("checking"), pack=user(), mend=by_event(), wrong=on_event(error="E1"), repair=user(), done=end(), end2=end(),
    )  # fmt: skip
    case = calling(order, checking=failing).start().complete("check")
    assert case.tasks == ["repair"] and [called.status for called in case.called.values()] == ["cancelled"]
    assert case.complete("repair").ended == "completed"


def test_a_called_process_that_is_called_again_in_a_loop_is_another_instance_each_time() -> None:
    order = model("start -> ask -> end", ask=looped(call("checking", results={"n": "${n}"}), "${n < 3}"))
    case = calling(order).start()
    for n in (1, 2, 3):
        case.complete("check", n=n)
    assert case.ended == "completed" and [called.status for called in case.called.values()] == ["completed"] * 3


def test_a_join_in_the_caller_waits_for_the_call() -> None:
    order = model("start -> par -> ask -> par2 -> ship -> end", "par -> pack -> par2", par=par(), par2=par(), ask=call("checking"),
                  pack=user(), ship=user())  # fmt: skip
    case = calling(order).start().complete("check")
    assert case.tasks == ["pack"] and case.complete("pack").tasks == ["ship"]


def test_two_versions_of_one_process_run_in_one_case_with_the_same_element_ids() -> None:
    """An element id means something in its definition alone."""
    inner = named("checking", model("start -> ask -> end", ask=user()))
    case = calling(model("start -> ask -> end", ask=call("checking"), end=end()), checking=inner).start()
    assert case.tasks == ["ask"] and case.complete("ask").ended == "completed"
