"""Standard loops and multi-instance activities: counters, local variables, boundary events, incidents (10.3.8, 13.3.6, 13.3.7)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.bpmn.definition import Node, ProcessDefinition
from engine.core.effects import NewTask
from engine.core.loops import BATCH, LONG, MAX_INSTANCES
from engine.core.snapshot import CannotContinue
from engine.expressions import parse
from tests.core.models import (
    boundary,
    by_event,
    end,
    error_end,
    looped,
    model,
    on_event,
    receive,
    script,
    service,
    several,
    start,
    sub,
    user,
)
from tests.core.world import World

JOB = {"inputs": {"item": "${item}", "number": "${loopCounter}"}}


def row(node: Node, *chains: str, **elements: Any) -> ProcessDefinition:
    return model("start -> x -> after -> end", *chains, x=node, **elements)


def given(run: World) -> list[tuple[Any, Any]]:
    """What the open jobs at x were given: (item, number)."""
    jobs = [leaf for leaf in run.leaves.values() if leaf.element_id == "x"]
    return [tuple(job.payload["inputs"][name]["value"] for name in ("item", "number")) for job in jobs]  # type: ignore[union-attr]


# ---- parallel


def test_each_item_of_a_collection_has_an_instance_with_its_own_variables() -> None:
    run = World(row(several(service(**JOB), of="${orders}"))).start(orders=["a", {"n": 2}, 3])
    assert given(run) == [("a", 0), ({"n": 2}, 1), (3, 2)]
    assert run.variables == {"orders": ["a", {"n": 2}, 3]}, "item and counter are local"
    assert all(job.lock_first for job in run.last.jobs)
    for _ in range(3):
        assert run.tasks == []
        run.complete("x")
    assert run.open == ["after"]


def test_one_completion_touches_its_own_iteration_and_the_counters_alone() -> None:
    run = World(row(several(service(), times="5"))).start()
    scopes = len(run.scopes)
    asked = run.asked_whole
    run.complete("x")
    assert run.asked_whole == asked, "a narrow snapshot was enough"
    assert (len(run.last.gone_scopes), list(run.last.counters.values())) == (1, [{"total": 5, "begun": 5, "completed": 1}])
    assert not (run.last.moved_tokens or run.last.new_tokens or run.last.gone_tokens)
    assert len(run.scopes) == scopes - 1


def test_results_go_outwards_unless_the_name_is_local() -> None:
    run = World(row(several(service(), of="${orders}"))).start(orders=[1, 2])
    run.complete("x", item=7, total=1).complete("x", total=2)
    assert run.variables == {"orders": [1, 2], "total": 2}


@pytest.mark.parametrize("times", ["3", "${n}", "${'3'}"])
def test_a_cardinality_is_a_whole_number(times: str) -> None:
    run = World(row(several(user(), times=times))).start(n=3)
    assert run.tasks == ["x"] * 3


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (several(user(), times="${n}"), "expected a whole number of instances from ${n}, found -1"),
        (several(user(), times="${half}"), "expected a whole number of instances"),
        (several(user(), times="${yes}"), "expected a whole number of instances"),
        (several(user(), of="${n}"), "expected a list from ${n}, found -1"),
        (several(user(), of="${gone}"), "gone"),
        (several(user(), times=str(MAX_INSTANCES + 1)), "expected at most 100,000 instances, found 100,001"),
    ],
)
def test_what_cannot_be_counted_is_an_incident_and_a_retry_counts_again(node: Node, said: str) -> None:
    run = World(row(node, "late -> b -> end1", late=boundary("x", after="PT1H"))).start(n=-1, half=0.5, yes=True)
    (incident,) = run.incidents
    assert incident.element_id == "x"
    assert said in incident.message
    assert (run.open, len(run.scopes), len(run.tokens)) == (["x"], 1, 1), "nothing was begun, and no boundary event waits"


def test_a_timer_at_the_border_belongs_to_all_of_them() -> None:
    several_late = row(several(user(), times="3"), "late -> b -> end1", late=boundary("x", after="PT1H"))
    run = World(several_late).start()
    assert run.open == ["late", "x", "x", "x"]
    run.complete("x").fire("late")
    assert run.open == ["b"]
    assert run.new("task_cancelled") == ["task_cancelled x"] * 2
    assert World(several_late).start().complete("x").complete("x").complete("x").open == ["after"]


def test_a_reminder_at_the_border_leaves_them_alone() -> None:
    run = World(row(several(user(), times="2"), "nag -> b -> end1", nag=boundary("x", on="HURRY", interrupting=False))).start()
    assert run.receive("nag").open == ["b", "nag", "x", "x"]


def test_an_error_of_one_cancels_all_where_a_boundary_event_catches_it() -> None:
    run = World(row(several(service(), times="3"), "bad -> b -> end1", bad=boundary("x", error="BAD"))).start().complete("x")
    assert run.throw("x", "BAD").open == ["b"]
    assert run.complete("b").ended == "completed"


def test_a_subprocess_runs_several_times_each_with_its_own_scope() -> None:
    each = model(
        "start -> sub -> after -> end", "s -> a -> b -> e", sub=several(sub({"name": "${item}"}), of="${names}"),
        s=start(), e=end(), a=user(name=parse("A of ${name}")), inside={"sub": "s a b e"},
    )  # fmt: skip
    run = World(each).start(names=["one", "two"])
    assert sorted(leaf.name for leaf in run.leaves.values() if isinstance(leaf, NewTask)) == ["A of one", "A of two"]
    run.complete("a").complete("a")
    assert run.tasks == ["b", "b"]
    assert run.complete("b").complete("b").open == ["after"]


def test_an_error_end_inside_one_of_several_subprocesses_cancels_the_others() -> None:
    each = model(
        "start -> sub -> after -> end", "bad -> c -> end1", "s -> a -> err", sub=several(sub(), times="3"), s=start(), a=user(),
        err=error_end("BAD"), bad=boundary("sub", error="*"), inside={"sub": "s a err"},
    )  # fmt: skip
    run = World(each).start().complete("a")
    assert run.open == ["c"]
    assert (len(run.scopes), len(run.tokens)) == (1, 1)


def test_event_subprocesses_inside_listen_once_for_each() -> None:
    each = model(
        "start -> sub -> after -> end", "s -> a -> e", "on -> h -> he", sub=several(sub(), times="2"), s=start(), a=user(), e=end(),
        handler=by_event(), on=on_event(on="STOP"), he=end(), inside={"sub": "s a e handler", "handler": "on h he"},
    )  # fmt: skip
    run = World(each).start()
    assert run.open == ["a", "a", "on", "on"]
    assert run.receive("on").open == ["a", "h", "on"]
    assert run.complete("h").complete("a").open == ["after"]


def test_one_that_fails_rests_alone_and_a_retry_mends_it_alone() -> None:
    run = World(row(several(service(inputs={"n": "${1 / item}"}), of="${of}"))).start(of=[1, 0])
    assert [incident.element_id for incident in run.incidents] == ["x"]
    assert len(run.leaves) == 2
    run.complete("x")
    assert run.ended is None
    run.retry("x")
    assert [incident.element_id for incident in run.incidents] == ["x"]
    assert run.cancel().ended == "cancelled"


def test_a_condition_that_cannot_be_judged_keeps_the_result_and_a_retry_judges_again() -> None:
    run = World(row(several(user(), times="2", until="${enough}"))).start().complete("x", answer=1)
    assert run.variables == {"answer": 1}
    assert [incident.element_id for incident in run.incidents] == ["x"]
    run.complete("x", enough=False)
    assert (run.tasks, run.ended) == ([], None)
    assert run.retry("x").open == ["after"]


def test_work_that_takes_no_time_is_all_done_in_one_step_and_may_be_enough_early() -> None:
    added = script("${total + item}", "total")
    run = World(row(several(added, of="${numbers}"))).start(numbers=[1, 2, 3], total=0)
    assert (run.open, run.variables["total"]) == (["after"], 6)
    early = World(row(several(added, of="${numbers}", until="${total >= 3}"))).start(numbers=[1, 2, 3], total=0)
    assert (early.open, early.variables["total"]) == (["after"], 3)


def test_a_receive_task_may_wait_several_times() -> None:
    run = World(row(several(receive("ANSWER", "${item}"), of="${of}"))).start(of=["a", "b"])
    assert run.open == ["x", "x"]
    assert run.receive("x").receive("x").open == ["after"]


def test_several_inside_several() -> None:
    nested = model(
        "start -> sub -> after -> end", "s -> a -> e", sub=several(sub(), times="2"), s=start(), e=end(),
        a=several(user(), times="2", until="${nrOfCompletedInstances == 1}"), inside={"sub": "s a e"},
    )  # fmt: skip
    run = World(nested).start()
    assert run.tasks == ["a"] * 4
    assert run.complete("a").tasks == ["a"] * 2, "one is enough for each of the two"
    assert run.complete("a").open == ["after"]


def test_work_of_one_among_several_takes_the_lock_first_though_the_others_are_not_loaded() -> None:
    each = model(
        "start -> sub -> end", "s -> a -> b -> e", sub=several(sub(), times="2"), s=start(), e=end(), b=service(),
        inside={"sub": "s a b e"},
    )  # fmt: skip
    run = World(each).start().complete("a")
    assert run.asked_whole == 0
    assert [job.lock_first for job in run.last.jobs] == [True]


# ---- many


def many(number: int, **loop: Any) -> World:
    return World(row(several(user(), times=str(number), **loop), "late -> b -> end1", late=boundary("x", after="PT1H"))).start()


def test_S37_a_large_number_begins_in_bounded_steps_each_as_a_narrow_snapshot_shows_it() -> None:
    run = many(2 * BATCH + 50)
    assert (len(run.tasks), len(run.last.new_scopes)) == (BATCH, BATCH + 2)
    run.go_on("x")
    assert (len(run.tasks), len(run.last.new_scopes)) == (2 * BATCH, BATCH)
    run.complete("x").go_on("x")
    assert (len(run.tasks), run.asked_whole) == (2 * BATCH + 49, 0)
    assert [kind for kind in run.open if kind == "late"] == ["late"], "the boundary event is armed once"
    while "x" in run.tasks:
        run.complete("x")
    assert run.open == ["after"]
    assert run.happened.count("element_entered x") == run.happened.count("element_left x") == 2 * BATCH + 51
    assert sorted(event.data["loop"] for event in run.events if event.kind == "element_left" and "loop" in event.data) == list(
        range(2 * BATCH + 50)
    )


def test_S37_all_that_are_begun_may_be_done_before_the_others_begin() -> None:
    run = many(BATCH + 1)
    for _ in range(BATCH):
        run.complete("x")
    assert (run.tasks, run.ended) == ([], None), "one is still to come"
    assert run.go_on("x").tasks == ["x"]
    assert run.complete("x").open == ["after"]


def test_S37_a_condition_fulfilled_in_the_middle_begins_no_more() -> None:
    run = many(BATCH + 50, until="${nrOfCompletedInstances == 2}").complete("x")
    assert run.complete("x").open == ["after"], "neither the timer nor the job that was to begin the others is left"
    assert (len(run.scopes), len(run.tokens)) == (1, 1)


def test_S37_a_condition_fulfilled_by_one_that_a_later_step_began() -> None:
    run = World(row(several(script("${loopCounter}", "n"), times="450", until=f"${{n == {BATCH + 50}}}"))).start()
    assert run.go_on("x").open == ["after"]
    assert run.variables == {"n": BATCH + 50}


def test_S37_a_boundary_event_in_the_middle_cancels_those_that_are_and_those_to_come() -> None:
    run = many(BATCH + 50).fire("late")
    assert (run.open, len(run.scopes), len(run.tokens)) == (["b"], 1, 1)
    assert run.new("task_cancelled") == ["task_cancelled x"] * BATCH


def test_S37_a_case_cancelled_in_the_middle_leaves_nothing() -> None:
    assert many(BATCH + 50).cancel().ended == "cancelled"


def test_S37_a_collection_that_was_changed_in_the_middle_is_named_and_can_be_mended() -> None:
    run = World(row(several(user(), of="${items}"))).start(items=[*range(BATCH + 5)])
    run.complete("x", items=[1])
    with pytest.raises(CannotContinue, match=f"expected the collection to keep its {BATCH + 5} items, found 1"):
        run.go_on("x")


def test_nested_ones_share_the_bound_of_a_step() -> None:
    each = model(
        "start -> sub -> after -> end", "s -> x -> e", sub=several(sub(), times="150"), s=start(), e=end(), x=several(user(), times="3"),
        inside={"sub": "s x e"},
    )  # fmt: skip
    run = World(each).start()
    steps = [len(run.last.new_scopes)]
    while jobs := [leaf for leaf in run.leaves.values() if getattr(leaf, "kind", "") == "continue"]:
        run.go_on(jobs[0].element_id)
        steps.append(len(run.last.new_scopes))
    assert (len(run.tasks), run.happened.count("element_entered x")) == (450, 150 + 450)
    assert max(steps) <= 150 * 3 + BATCH
    while run.tasks != ["after"]:
        run.complete("x")


def test_long_iterations_share_the_bound_of_a_step() -> None:
    row_of_tasks = " -> ".join(["s", *(f"t{number}" for number in range(50)), "u", "e"])
    tasks = {f"t{number}": script("${1}", "n") for number in range(50)}
    each = model(
        "start -> sub -> after -> end", row_of_tasks, sub=several(sub(), times="100"), s=start(), e=end(), u=user(), **tasks,
        inside={"sub": " ".join(["s", *tasks, "u", "e"])},
    )  # fmt: skip
    run = World(each).start()
    assert len(run.tasks) == -(-LONG // 52), "each of them takes 51 flows"
    assert run.incidents == []


# ---- sequential


def test_sequential_instances_come_one_after_the_other() -> None:
    run = World(row(several(service(**JOB), of="${orders}", sequential=True))).start(orders=["a", "b"])
    assert given(run) == [("a", 0)]
    run.complete("x")
    assert given(run) == [("b", 1)]
    assert run.new() == [
        "job_completed x",
        "element_left x",
        "variables_set x",
        "element_entered x",
        "job_created x",
    ]
    assert run.complete("x").open == ["after"]


def test_a_collection_that_shrinks_on_the_way_is_an_incident() -> None:
    run = World(row(several(user(), of="${orders}", sequential=True))).start(orders=["a", "b"]).complete("x", orders=["a"])
    assert "expected the collection to keep its 2 items, found 1" in run.incidents[0].message


@pytest.mark.parametrize("sequential", [True, False])
def test_a_long_row_of_instant_work_is_done_in_bounded_steps(sequential: bool) -> None:
    run = World(row(several(script("${loopCounter}", "n"), times="900", sequential=sequential))).start()
    steps = 1
    while run.open == ["x"]:
        assert run.happened.count("element_left x") == steps * BATCH
        run.go_on("x")
        steps += 1
    assert (steps, run.open, run.variables) == (900 // BATCH, ["after"], {"n": 899})


# ---- standard loops


def test_a_loop_is_done_again_while_its_condition_holds() -> None:
    run = World(row(looped(user(), "${more}"))).start(more=False)
    assert run.tasks == ["x"], "tested after, not before"
    assert run.complete("x", more=True).tasks == ["x"]
    assert run.complete("x", more=False).open == ["after"]
    assert run.happened.count("element_entered x") == run.happened.count("element_left x") == 3, "the whole and two rounds"


def test_a_loop_that_tests_before_may_not_run_at_all() -> None:
    before = row(looped(user(), "${more}", test_before=True))
    assert World(before).start(more=False).open == ["after"]
    run = World(before).start(more=True)
    assert run.complete("x", more=False).open == ["after"]


def test_a_loop_stops_at_its_maximum() -> None:
    run = World(row(looped(user(), "${true}", maximum=2))).start()
    assert run.complete("x").complete("x").open == ["after"]
    counted = World(row(looped(script("${loopCounter}", "n"), maximum=3))).start()
    assert counted.variables == {"n": 2}


def test_a_loop_without_waiting_and_without_end_is_an_incident() -> None:
    run = World(row(looped(script("${1}", "n"), "${true}"))).start()
    assert [(incident.kind, incident.element_id) for incident in run.incidents] == [("endless_loop", "x")]


def test_the_condition_may_count() -> None:
    run = World(row(looped(user(), "${loopCounter < 2}"))).start()
    assert run.complete("x").complete("x").open == ["after"]
