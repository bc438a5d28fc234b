"""What instances leave behind: collected results, and events thrown to the border of their activity (10.3.8.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.bpmn.definition import LoopEvent, Node, ProcessDefinition, SignalConfig
from engine.core import loops
from engine.expressions import parse
from tests.core.models import boundary, model, script, service, several, user
from tests.core.world import World

SIGNAL = SignalConfig(parse("DONE"))


def collecting(node: Node, result: str = "${answer}", **loop: Any) -> Node:
    made = several(node, **loop)
    return replace(made, loop=replace(made.loop, output="answers", result=parse(result)))


def throwing(node: Node, *events: LoopEvent, **loop: Any) -> Node:
    made = several(node, **loop)
    return replace(made, loop=replace(made.loop, throws=events))


def row(node: Node, *chains: str, **elements: Any) -> ProcessDefinition:
    return model("start -> x -> after -> end", *chains, x=node, **elements)


# ---- results


@pytest.mark.parametrize("sequential", [True, False])
def test_results_are_collected_in_the_order_of_the_items(sequential: bool) -> None:
    run = World(row(collecting(script("${item * 2}", "answer"), of="${items}", sequential=sequential))).start(items=[3, 1, 2])
    assert (run.open, run.variables["answers"]) == (["after"], [6, 2, 4])


def test_whoever_completes_first_the_order_is_that_of_the_items() -> None:
    run = World(row(collecting(service(), "${item + bonus}", of="${items}"))).start(items=[10, 20, 30], bonus=0)
    jobs = list(run.leaves.values())
    for job, bonus in zip(reversed(jobs), (3, 2, 1), strict=True):
        asked = run.asked_whole
        run.serve(job, {"bonus": bonus})
    assert run.asked_whole == asked + 1, "only the last one reads them all"
    assert (run.open, run.variables["answers"]) == (["after"], [11, 22, 33])
    assert (len(run.scopes), len(run.tokens)) == (1, 1)


def test_what_did_not_complete_is_null_and_nothing_is_an_empty_list() -> None:
    early = World(row(collecting(user(), "${loopCounter}", times="3", until="${numberOfCompletedInstances == 1}"))).start()
    last = list(early.leaves.values())[-1]
    assert early.serve(last, {}).variables["answers"] == [None, None, 2]
    assert World(row(collecting(user(), times="0"))).start().variables["answers"] == []


def test_results_survive_bounded_steps() -> None:
    run = World(row(collecting(script("${loopCounter}", "answer"), times=str(loops.BATCH + 50)))).start().go_on("x")
    assert (run.open, run.variables["answers"]) == (["after"], [*range(loops.BATCH + 50)])


def test_a_result_that_cannot_be_told_is_an_incident_and_a_retry_tells_it() -> None:
    run = World(row(collecting(user(), times="2"))).start().complete("x")
    assert [incident.element_id for incident in run.incidents] == ["x"]
    run.complete("x", answer=7)
    assert run.retry("x").variables["answers"] == [7, 7]
    assert run.open == ["after"]


def test_an_interrupted_activity_leaves_no_results() -> None:
    run = World(row(collecting(user(), times="3"), "late -> b -> end1", late=boundary("x", after="PT1H"))).start()
    run.complete("x", answer=1).fire("late")
    assert (run.open, "answers" in run.variables, len(run.scopes)) == (["b"], False, 1)


def test_a_result_of_the_one_that_interrupts_goes_with_the_activity() -> None:
    made = collecting(user(), times="1")
    node = replace(made, loop=replace(made.loop, throws=(LoopEvent(escalation="UP"),)))
    run = World(row(node, "up -> b -> end1", up=boundary("x", escalation="UP"))).start().complete("x", answer=1)
    assert (run.open, len(run.scopes), run.variables) == (["b"], 1, {"answer": 1})


# ---- events


def caught(*events: LoopEvent, interrupting: bool = False, times: str = "3", **loop: Any) -> World:
    at_border = boundary("x", escalation="UP", interrupting=interrupting)
    return World(row(throwing(user(), *events, times=times, **loop), "up -> b -> end1", up=at_border)).start()


def test_none_throws_for_each_that_completes() -> None:
    run = caught(LoopEvent(escalation="UP"))
    for done in (1, 2):
        run.complete("x")
        assert run.open == sorted(["b"] * done + ["x"] * (3 - done))
    assert run.complete("x").open == ["after", "b", "b", "b"]


def test_one_throws_for_the_first_alone() -> None:
    run = caught(LoopEvent(escalation="UP", first=True)).complete("x").complete("x").complete("x")
    assert run.open == ["after", "b"]


def test_complex_throws_when_its_condition_is_true() -> None:
    some = LoopEvent(escalation="UP", condition=parse("${numberOfCompletedInstances == 2 and nrOfActiveInstances == 1}"))
    never = LoopEvent(escalation="UP", condition=parse("${numberOfInstances != 3 or numberOfTerminatedInstances > 0}"))
    run = caught(some, never).complete("x").complete("x").complete("x")
    assert run.open == ["after", "b"]


def test_what_interrupts_ends_the_activity_and_the_normal_way_is_not_taken() -> None:
    run = caught(LoopEvent(escalation="UP"), interrupting=True).complete("x")
    assert (run.open, len(run.scopes), len(run.tokens)) == (["b"], 1, 1)
    assert run.new("task_cancelled") == ["task_cancelled x"] * 2
    assert "element_entered after" not in run.happened


def test_instant_instances_end_with_the_first_that_interrupts() -> None:
    node = throwing(script("${loopCounter}", "n"), LoopEvent(escalation="UP"), times="3", sequential=True)
    run = World(row(node, "up -> b -> end1", up=boundary("x", escalation="UP"))).start()
    assert (run.open, run.variables) == (["b"], {"n": 0})


def test_a_signal_reaches_the_border_too() -> None:
    node = throwing(user(), LoopEvent(signal=SIGNAL), times="2")
    run = World(row(node, "up -> b -> end1", up=boundary("x", signal="DONE", interrupting=False))).start().complete("x")
    assert run.open == ["b", "up", "x"]


def test_a_condition_that_cannot_be_told_is_an_incident_and_nothing_is_thrown_twice() -> None:
    run = caught(LoopEvent(escalation="UP"), LoopEvent(escalation="UP", condition=parse("${loud}"))).complete("x")
    assert [incident.element_id for incident in run.incidents] == ["x"]
    assert "escalation_thrown x" not in run.happened
    run.complete("x", loud=False).retry("x")
    assert run.happened.count("escalation_thrown x") == 2
