"""Compensation (10.7, 13.5.5): what completed is undone, last first, once, with the data of each execution."""

from __future__ import annotations

from typing import Any

import pytest

from engine.bpmn.definition import AdHocConfig, Node, ProcessDefinition
from engine.core.values import native
from tests.core.models import (
    boundary,
    by_event,
    looped,
    model,
    on_event,
    receive,
    script,
    several,
    sub,
    undo,
    user,
)
from tests.core.world import World


def run_of(definition: ProcessDefinition, **variables: Any) -> World:
    return World(definition).start(**variables)


def undone(run: World) -> list[str]:
    return [each.split()[1] for each in run.happened if each.startswith("compensation_begun")]


def seen(run: World, element: str, name: str) -> Any:
    """The value of a variable as the open task of an element sees it."""
    scope = run.scopes.get(run.tokens[run.leaf(element).token_id].scope_id)
    while scope is not None:
        if name in scope.variables:
            return native(scope.variables[name])
        scope = run.scopes.get(scope.parent_id) if scope.parent_id else None
    raise AssertionError(f"{name} is not seen at {element}")


TRIP = model(
    "start -> hotel -> flight -> car -> regret -> late -> end",
    regret=undo(),
    handlers={"hotel": "no_hotel", "flight": "no_flight", "car": "no_car"},
)


def test_everything_that_completed_is_undone_in_reverse_order_one_after_the_other() -> None:
    run = run_of(TRIP).complete("hotel").complete("flight").complete("car")
    assert run.open == ["no_car"]
    assert run.complete("no_car").open == ["no_flight"]
    assert run.complete("no_flight").open == ["no_hotel"]
    assert run.complete("no_hotel").open == ["late"]
    assert undone(run) == ["car", "flight", "hotel"]
    assert run.complete("late").ended == "completed"


def test_history_says_what_was_thrown_and_what_was_undone_by_whom() -> None:
    run = run_of(TRIP).complete("hotel").complete("flight").complete("car")
    assert run.new() == [
        "task_completed car",
        "element_left car",
        "flow_taken car>regret",
        "element_entered regret",
        "compensation_thrown regret",
        "compensation_begun car",
        "element_entered no_car",
        "task_created no_car",
    ]
    assert run.last.history[4].data == {"activity": None, "executions": 3, "waits": True}
    assert run.complete("no_car").new("compensation_done", "element_left") == ["element_left no_car", "compensation_done car"]


def test_what_has_not_completed_is_not_undone() -> None:
    definition = model(
        "start -> par1 -> a -> regret -> par2 -> end", "par1 -> b -> par2", regret=undo(), handlers={"a": "no_a", "b": "no_b"}
    )
    run = run_of(definition).complete("a")
    assert run.open == ["b", "no_a"]
    run.complete("b").complete("no_a")
    assert run.ended == "completed"
    assert undone(run) == ["a"]


def test_a_throw_that_names_an_activity_undoes_that_one_alone() -> None:
    definition = model("start -> a -> b -> regret -> end", regret=undo("a"), handlers={"a": "no_a", "b": "no_b"})
    run = run_of(definition).complete("a").complete("b")
    assert run.open == ["no_a"]
    assert run.complete("no_a").ended == "completed"


def test_an_execution_is_undone_once_however_often_it_is_asked_for() -> None:
    definition = model(
        "start -> a -> regret -> again -> b -> last", regret=undo(), again=undo("a"), last=undo(ends=True), handlers={"a": "no_a"}
    )
    run = run_of(definition).complete("a").complete("no_a")
    assert run.open == ["b"]
    assert run.complete("b").ended == "completed"
    assert undone(run) == ["a"]


def test_a_throw_with_nothing_to_undo_goes_on() -> None:
    definition = model("start -> xor1 -> a -> xor2 -> regret -> end", "xor1 -> xor2", regret=undo(), handlers={"a": "no_a"},
                       conditions={"xor1>a": "${false}"}, defaults=("xor1>xor2",))  # fmt: skip
    assert run_of(definition).ended == "completed"


def test_an_end_event_ends_when_all_is_undone() -> None:
    definition = model("start -> a -> b -> regret", regret=undo(ends=True), handlers={"a": "no_a", "b": "no_b"})
    run = run_of(definition).complete("a").complete("b").complete("no_b")
    assert run.ended is None
    run.complete("no_a")
    assert run.ended == "completed"
    assert run.new("element_left") == ["element_left no_a", "element_left regret"]


def test_handlers_without_waiting_are_all_done_in_one_step_however_many() -> None:
    tasks = {f"t{number}": script("${n + 1}", "n") for number in range(400)}
    undos = {f"u{number}": script("${n - 1}", "n") for number in range(400)}
    definition = model(
        " -> ".join(["start", *tasks, "regret", "wait", "end"]),
        **tasks, **undos, regret=undo(), handlers={f"t{number}": f"u{number}" for number in range(400)},
    )  # fmt: skip
    run = run_of(definition, n=0)
    assert run.variables["n"] == 0
    assert undone(run) == [f"t{number}" for number in reversed(range(400))]


# ---- waitForCompletion


def test_a_throw_that_does_not_wait_goes_on_at_once_and_its_scope_ends_after_the_handlers() -> None:
    definition = model("start -> a -> regret -> b -> end", regret=undo(waits=False), handlers={"a": "no_a"})
    run = run_of(definition).complete("a")
    assert run.open == ["b", "no_a"]
    assert run.complete("b").ended is None
    assert run.complete("no_a").ended == "completed"
    assert run.happened.count("element_left regret") == 1


def test_two_throws_that_do_not_wait_share_what_there_is() -> None:
    definition = model(
        "start -> a -> b -> one -> two -> end", one=undo("a", waits=False), two=undo(waits=False), handlers={"a": "no_a", "b": "no_b"}
    )
    run = run_of(definition).complete("a").complete("b")
    assert run.open == ["no_a", "no_b"]
    run.complete("no_b").complete("no_a")
    assert run.ended == "completed"


# ---- data


def test_an_activity_executed_several_times_is_undone_for_each_with_the_results_of_each() -> None:
    definition = model(
        "start -> xor1 -> book -> xor2 -> xor1", "xor2 -> regret -> end", regret=undo(), handlers={"book": "unbook"},
        conditions={"xor2>xor1": "${seat < 3}"}, defaults=("xor2>regret",),
    )  # fmt: skip
    run = run_of(definition, seat=0, price=5)
    for seat in (1, 2, 3):
        run.complete("book", seat=seat)
    for seat in (3, 2, 1):
        assert seen(run, "unbook", "seat") == seat
        assert seen(run, "unbook", "price") == 5  # what the execution did not set is as it is now
        run.complete("unbook", price=5)
    assert run.ended == "completed"
    assert run.final["seat"] == 3


def test_what_a_handler_writes_goes_where_it_would_without_the_data_of_the_execution() -> None:
    run = run_of(model("start -> a -> regret -> b -> end", regret=undo(), handlers={"a": "no_a"})).complete("a", seat=7)
    run.complete("no_a", seat=0)
    assert run.variables["seat"] == 0


def test_what_a_receive_task_received_is_its_result() -> None:
    definition = model("start -> wait -> b -> regret -> end", wait=receive("NEWS"), regret=undo(), handlers={"wait": "answer"})
    run = run_of(definition, news="none").receive("wait", news="first").complete("b", news="later")
    assert seen(run, "answer", "news") == "first"


def test_a_script_is_undone_on_the_data_of_now() -> None:
    definition = model(
        "start -> add -> more -> regret -> end", add=script("${total + 1}", "total"), more=script("${total * 10}", "total"),
        less=script("${total - 1}", "total"), regret=undo(), handlers={"add": "less"},
    )  # fmt: skip
    run = run_of(definition, total=1)
    assert run.final["total"] == 19


INNER = model(
    "start -> sub -> after -> regret -> end",
    "start_in -> a -> b -> end_in",
    inside={"sub": "start_in a b end_in"},
    sub=sub({"place": "${town}"}),
    regret=undo(),
    handlers={"a": "no_a", "b": "no_b"},
)


def test_a_subprocess_without_a_handler_undoes_what_it_holds_with_the_data_it_had() -> None:
    run = run_of(INNER, town="Rome").complete("a").complete("b", town="Bern")
    run.complete("after", town="Oslo")
    assert run.open == ["no_b"]
    assert seen(run, "no_b", "place") == "Rome"
    assert seen(run, "no_b", "town") == "Bern"  # the result of b
    run.complete("no_b", place="Paris")
    assert seen(run, "no_a", "place") == "Paris"  # the restored subprocess is a scope: its handlers share it
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["sub", "b", "a"]


def test_a_handler_of_a_subprocess_takes_the_place_of_those_inside_it() -> None:
    definition = model(
        "start -> sub -> regret -> end", "start_in -> a -> end_in", inside={"sub": "start_in a end_in"}, sub=sub({"place": "${town}"}),
        regret=undo(), handlers={"a": "no_a", "sub": "no_sub"},
    )  # fmt: skip
    run = run_of(definition, town="Rome").complete("a", town="Oslo")
    assert run.open == ["no_sub"]
    assert seen(run, "no_sub", "place") == "Rome"
    assert run.complete("no_sub").ended == "completed"
    assert undone(run) == ["sub"]


def test_a_compensation_event_subprocess_runs_in_what_its_subprocess_was() -> None:
    definition = model(
        "start -> sub -> after -> regret -> end",
        "start_in -> a -> b -> end_in",
        "start_undo -> tell -> rest -> thanks -> end_undo",
        inside={"sub": "start_in a b end_in es", "es": "start_undo tell rest thanks end_undo"},
        sub=sub({"place": "${town}"}), es=by_event(), start_undo=on_event(compensate=True), rest=undo("a"), regret=undo(),
        handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition, town="Rome").complete("a").complete("b").complete("after", town="Oslo")
    assert run.open == ["tell"]
    assert seen(run, "tell", "place") == "Rome"
    assert run.complete("tell").open == ["no_a"]
    assert run.complete("no_a").open == ["thanks"]
    assert run.complete("thanks").ended == "completed"  # b was left to the subprocess, which did not undo it
    assert undone(run) == ["sub", "a"]
    assert not run.executions


def test_a_compensation_event_subprocess_listens_inside_as_any_other_scope_does() -> None:
    definition = model(
        "start -> sub -> regret -> end", "start_in -> a -> end_in", "start_undo -> tell -> end_undo", "news -> stop -> end_stop",
        inside={"sub": "start_in a end_in es", "es": "start_undo tell end_undo inner", "inner": "news stop end_stop"}, sub=sub(),
        es=by_event(), start_undo=on_event(compensate=True), inner=by_event(), news=on_event(on="NEWS"), regret=undo(),
    )  # fmt: skip
    run = run_of(definition).complete("a")
    assert run.open == ["news", "tell"]
    assert run.receive("news").complete("stop").ended == "completed"


def test_each_run_of_an_event_subprocess_is_undone_with_what_it_holds() -> None:
    definition = model(
        "start -> sub -> regret -> end", "start_in -> a -> end_in", "news -> b -> end_es",
        inside={"sub": "start_in a end_in es", "es": "news b end_es"}, sub=sub(), es=by_event(),
        news=on_event(on="NEWS", interrupting=False), regret=undo(), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).receive("news").complete("b", seat=1).receive("news").complete("a").complete("b", seat=2)
    assert (run.open, seen(run, "no_b", "seat")) == (["no_b"], 2)
    assert run.complete("no_b").open == ["no_a"]
    assert (run.complete("no_a").open, seen(run, "no_b", "seat")) == (["no_b"], 1)
    assert run.complete("no_b").ended == "completed"
    assert undone(run) == ["sub", "es", "b", "a", "es", "b"]
    assert run.happened.count("compensation_done es") == 2


def test_an_ad_hoc_subprocess_is_undone_as_others_are_and_its_handlers_are_not_among_its_steps() -> None:
    definition = model(
        "start -> box -> regret -> end", inside={"box": "a b"}, box=Node("", "ad_hoc_subprocess", config=AdHocConfig()), a=user(), b=user(),
        regret=undo(), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition)
    assert run.open == ["a", "b"]
    run.complete("b").complete("a").complete("no_a").complete("no_b")
    assert run.ended == "completed"


def test_subprocesses_in_subprocesses_are_undone_from_the_last_inwards() -> None:
    definition = model(
        "start -> outer -> regret -> end",
        "start_o -> a -> inner -> d -> end_o",
        "start_i -> b -> c -> end_i",
        inside={"outer": "start_o a inner d end_o", "inner": "start_i b c end_i"},
        outer=sub(), inner=sub(), regret=undo(), handlers={each: f"no_{each}" for each in "abcd"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("c").complete("d")
    for each in "dcba":
        assert run.open == [f"no_{each}"]
        run.complete(f"no_{each}")
    assert run.ended == "completed"
    assert undone(run) == ["outer", "d", "inner", "c", "b", "a"]


@pytest.mark.parametrize("sequential", [True, False])
def test_each_instance_of_a_multi_instance_activity_is_undone_with_its_item(sequential: bool) -> None:
    definition = model(
        "start -> each -> regret -> end",
        each=several(user(), of="${people}", sequential=sequential),
        regret=undo(),
        handlers={"each": "no_each"},
    )
    run = run_of(definition, people=["ada", "bo", "cy"])
    for _ in range(3):
        run.complete("each")
    for name in ("cy", "bo", "ada"):
        assert seen(run, "no_each", "item") == name
        run.complete("no_each")
    assert run.ended == "completed"


def test_each_instance_of_a_looped_subprocess_keeps_its_own_data() -> None:
    definition = model(
        "start -> each -> regret -> end", "start_in -> a -> end_in", inside={"each": "start_in a end_in"},
        each=several(sub({"mine": "${item}"}), of="${people}"), regret=undo(), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition, people=["ada", "bo"]).complete("a").complete("a")
    for name in ("bo", "ada"):
        assert (seen(run, "no_a", "mine"), seen(run, "no_a", "item")) == (name, name)
        run.complete("no_a")
    assert run.ended == "completed"


def test_instances_of_a_loop_that_was_interrupted_are_not_undone() -> None:
    definition = model(
        "start -> each -> end", "late -> regret -> end", each=several(user(), times="2"), late=boundary("each", after="PT1H"),
        regret=undo(), handlers={"each": "no_each"},
    )  # fmt: skip
    run = run_of(definition).complete("each").fire("late")
    assert run.ended == "completed"
    assert undone(run) == []


def test_instances_that_completed_before_the_condition_held_are_undone() -> None:
    each = several(user(), times="3", until="${nrOfCompletedInstances == 2}")
    run = run_of(model("start -> each -> regret -> end", each=each, regret=undo(), handlers={"each": "no_each"}))
    run.complete("each").complete("each").complete("no_each").complete("no_each")
    assert run.ended == "completed"


def test_a_handler_may_run_several_times_itself() -> None:
    definition = model("start -> a -> regret -> end", no_a=looped(user(), maximum=2), regret=undo(), handlers={"a": "no_a"})
    run = run_of(definition).complete("a").complete("no_a").complete("no_a")
    assert run.ended == "completed"


def test_a_handler_may_be_a_subprocess_that_undoes_its_own_steps() -> None:
    definition = model(
        "start -> a -> regret -> end", "start_in -> x -> y -> inner -> end_in", inside={"no_a": "start_in x y inner end_in"},
        no_a=sub(), regret=undo(), inner=undo(), handlers={"a": "no_a", "x": "no_x"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("x").complete("y")
    assert run.open == ["no_x"]
    assert run.complete("no_x").ended == "completed"
