"""Listeners and asynchronous elements run: each is a job between an element and its flows."""

from __future__ import annotations

from tests.bpmn.models import definition, model
from tests.core.world import World


def begun() -> World:
    return World(definition(model("listeners_and_steps"))).start()


def test_each_listener_and_each_step_is_a_job_in_its_turn() -> None:
    run = begun()
    assert run.open == ["start#after-1"]
    run.complete("start#after-1")  # the listener of the process
    run.go_on("start#after-2")
    assert run.new("job_completed", "element_left", "element_entered") == [
        "job_completed start#after-2",
        "element_left start#after-2",
        "element_entered check#before-1",
    ]
    run.complete("check#before-1")
    assert run.open == ["check", "late"]
    run.complete("check", good=True).complete("check#after-1", thanked=True).go_on("check#after-2")
    assert run.open == ["good#take-1"], "the conditions see what the listener set"
    run.complete("good#take-1").complete("end#before-1")
    assert (run.ended, run.final["thanked"]) == ("completed", True)


def test_an_interrupted_element_has_no_end_and_its_event_has_a_beginning() -> None:
    run = begun().complete("start#after-1").go_on("start#after-2").complete("check#before-1").fire("late")
    assert run.open == ["late#after-1"]
    assert run.complete("late#after-1").ended == "completed"


def test_a_step_that_fails_and_is_retried_goes_on_where_it_was() -> None:
    run = begun().complete("start#after-1").go_on("start#after-2").complete("check#before-1").complete("check")
    run.complete("check#after-1").go_on("check#after-2")  # nobody thanked: the condition names nothing
    assert [incident.element_id for incident in run.incidents] == ["check#after-2"]
