"""Ad hoc subprocesses: what begins, when they are done, what is cancelled (10.3.5, 13.3.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.bpmn.definition import ProcessDefinition
from engine.core.values import typed
from tests.core.models import ad_hoc, boundary, by_event, call, end, model, on_event, script, service, several, user, xor
from tests.core.world import World


def steps(*chains: str, inside: str = "a b c", **elements: Any) -> ProcessDefinition:
    given = {"box": ad_hoc(), **{name: user() for name in inside.split() if name not in elements}, **elements}
    nested = given.pop("nested", {})
    return model("start -> box -> after -> end", *chains, inside={"box": inside, **nested}, **given)


def test_every_activity_without_incoming_flows_runs_once() -> None:
    run = World(steps("a -> c")).start()
    assert run.open == ["a", "b"]
    assert run.complete("b").complete("a").open == ["c"]
    assert run.complete("c").open == ["after"]
    assert (len(run.scopes), len(run.tokens)) == (1, 1)


def test_sequential_ones_run_one_after_the_other_in_the_order_of_the_document() -> None:
    run = World(steps("a -> c", box=ad_hoc(sequential=True))).start()
    assert run.open == ["a"]
    assert run.complete("a").open == ["c"], "what follows a comes before the next one"
    assert run.complete("c").open == ["b"]
    assert run.complete("b").open == ["after"]


def test_instant_ones_are_done_in_one_step_in_order() -> None:
    for sequential in (True, False):
        scripts = {name: script(f"${{path + '{name}'}}", "path") for name in "abc"}
        run = World(steps(box=ad_hoc(sequential=sequential), **scripts)).start(path="")
        assert (run.open, run.variables) == (["after"], {"path": "abc"})


def test_many_instant_ones_in_a_row_need_no_depth() -> None:
    names = [f"n{number}" for number in range(400)]
    instant = {name: script("${n + 1}", "n") for name in names}
    run = World(steps(inside=" ".join(names), box=ad_hoc(sequential=True), **instant)).start(n=0)
    assert (run.open, run.variables) == (["after"], {"n": 400})


def test_a_true_completion_condition_cancels_the_rest_and_enables_nothing_more() -> None:
    run = World(steps("a -> c", box=ad_hoc(until="${enough}"))).start(enough=False)
    assert run.complete("a", enough=True).open == ["after"]
    assert run.new("task_cancelled", "element_left") == ["task_cancelled b", "element_left b", "element_left a", "element_left box"]


def test_or_lets_the_rest_end_by_itself() -> None:
    run = World(steps("a -> c", "b -> d", inside="a b c d", box=ad_hoc(until="${enough}", cancel_remaining=False))).start(enough=False)
    assert run.complete("a", enough=True).open == ["b"]
    assert run.complete("b", enough=False).open == ["after"], "it was true once: nothing more is enabled"


def test_sequential_with_a_condition_begins_no_more() -> None:
    run = World(steps(box=ad_hoc(sequential=True, until="${n == 2}"))).start(n=0)
    assert run.complete("a", n=1).complete("b", n=2).open == ["after"]


def test_the_condition_is_asked_after_each_activity_and_nothing_else() -> None:
    asked = steps("a -> xor -> c", inside="a b c xor", box=ad_hoc(until="${n > 1}"), xor=xor())
    run = World(asked).start(n=0).complete("a", n=1)
    assert run.open == ["b", "c"]
    assert run.complete("c", n=2).open == ["after"]


def test_a_condition_that_cannot_be_told_is_an_incident_at_the_activity_and_a_retry_asks_again() -> None:
    run = World(steps(box=ad_hoc(until="${enough}"))).start().complete("a")
    assert [incident.element_id for incident in run.incidents] == ["a"]
    run.complete("b", enough=False).retry("a")
    assert (run.open, run.incidents) == (["c"], [])


def test_an_expression_may_choose_what_runs() -> None:
    chosen = steps(box=ad_hoc(activities="${wanted}", sequential=True))
    run = World(chosen).start(wanted=["c", "a"])
    assert run.open == ["c"]
    assert run.complete("c").complete("a").open == ["after"]
    assert World(chosen).start(wanted=[]).open == ["after"]
    (incident,) = World(chosen).start(wanted=["a", "x"]).incidents
    assert "expected ids of activities without incoming flows from ${wanted}, found 'x'" in incident.message
    assert incident.element_id == "box"


def test_boundary_events_of_the_whole_and_of_the_parts() -> None:
    bordered = steps(
        "late -> out -> end1", "nag -> remind", inside="a b nag remind", late=boundary("box", after="PT1H"),
        nag=boundary("a", after="PT5M"),
    )  # fmt: skip
    run = World(bordered).start()
    assert run.open == ["a", "b", "late", "nag"]
    assert run.fire("nag").open == ["b", "late", "remind"]
    assert run.fire("late").open == ["out"]


def test_an_interrupting_event_subprocess_takes_the_place_of_what_was_to_come() -> None:
    watched = steps(
        "on -> h -> he", inside="a b handler", nested={"handler": "on h he"}, box=ad_hoc(sequential=True), handler=by_event(),
        on=on_event(on="STOP"), he=end(), h=user(),
    )  # fmt: skip
    run = World(watched).start().receive("on")
    assert run.open == ["h"]
    assert run.complete("h").open == ["after"]


def test_several_of_it_each_with_its_own_state() -> None:
    run = World(steps(inside="a b", box=several(ad_hoc(sequential=True), times="2"))).start()
    assert run.open == ["a", "a"]
    run.complete("a")
    assert run.open == ["a", "b"]
    run.complete("a").complete("b").complete("b")
    assert run.open == ["after"]


def test_activities_inside_may_be_repeated() -> None:
    run = World(steps(inside="a b", a=several(service(), times="2"), box=ad_hoc(until="${n == 1}"))).start(n=0)
    assert run.complete("a", n=1).open == ["a", "b"], "asked when the whole of a is done"
    assert run.complete("a").open == ["after"]


def test_cancelling_the_case_leaves_nothing() -> None:
    assert World(steps()).start().complete("a").cancel().ended == "cancelled"


def test_a_retry_of_one_that_could_not_begin_begins_it_and_does_not_pass_over_it() -> None:
    run = World(steps(inside="a b", box=ad_hoc(sequential=True), b=script("${missing + 1}", "n"))).start().complete("a")
    assert (run.open, len(run.incidents)) == (["b"], 1)
    run.retry("b")
    assert (run.open, len(run.incidents)) == (["b"], 1), "it fails once more"
    (process,) = (scope for scope in run.scopes.values() if scope.parent_id is None)
    run.scopes[process.id] = replace(process, variables={"missing": typed(1)})
    assert (run.retry("b").open, run.incidents) == (["after"], [])
    assert run.variables["n"] == 2


def test_a_retry_of_one_whose_result_could_not_be_kept_does_its_work_again() -> None:
    run = World(steps(inside="a", a=service(outputs={"size": "${found.size}"}))).start().complete("a", found=1)
    assert [incident.element_id for incident in run.incidents] == ["a"]
    assert run.retry("a").open == ["a"] and run.incidents == []
    assert run.complete("a", found={"size": 3}).open == ["after"] and run.variables == {"size": 3}


def test_a_retry_of_a_call_whose_result_could_not_be_made_calls_again() -> None:
    ask = call("checking", results={"ok": "${verdict.size}"})
    library = {"checking": replace(model("start -> check -> end", check=user()), key="checking")}
    for each in (ask, several(ask, times="${1}")):
        run = World(steps(inside="a", a=each), library=library).start().complete("check")
        assert [incident.element_id for incident in run.incidents] == ["a"]
        run.retry("a").complete("check", verdict={"size": 3})
        assert run.open == ["after"] and run.variables == {"ok": 3} and run.incidents == []
