"""Transactions (10.3.5, 13.3.4): cancelled, they are undone as a whole and left by their cancel boundary event."""

from __future__ import annotations

from engine.bpmn.definition import AdHocConfig, Node
from tests.core.models import (
    boundary,
    by_event,
    cancel_end,
    end,
    error_end,
    model,
    on_event,
    par,
    service,
    several,
    start,
    sub,
    throw,
    transaction,
    undo,
    user,
)
from tests.core.test_compensation import run_of, seen, undone


def test_a_transaction_that_is_not_cancelled_is_a_subprocess() -> None:
    definition = model(
        "start -> tx -> after -> end", "start_in -> a -> end_in", inside={"tx": "start_in a end_in"}, tx=transaction(),
        gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("after")
    assert run.ended == "completed"
    assert undone(run) == []


def test_a_completed_transaction_is_undone_as_a_subprocess_is() -> None:
    definition = model(
        "start -> tx -> regret -> end", "start_in -> a -> end_in", inside={"tx": "start_in a end_in"}, tx=transaction(), regret=undo(),
        handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("no_a")
    assert run.ended == "completed"


CANCELLED = model(
    "start -> tx -> after -> end",
    "gone -> sorry -> end",
    "start_in -> par1 -> a -> b -> stop",
    "par1 -> c -> end_in",
    inside={"tx": "start_in par1 a b c stop end_in"},
    par1=par(),
    tx=transaction(),
    stop=cancel_end(),
    gone=boundary("tx", cancel=True),
    late=boundary("tx", after="PT1H"),
    handlers={"a": "no_a", "b": "no_b", "c": "no_c"},
)


def test_a_cancel_withdraws_what_runs_undoes_what_completed_and_leaves_by_the_cancel_event() -> None:
    run = run_of(CANCELLED).complete("a").complete("b")
    assert run.new("task_cancelled", "transaction_cancelled") == ["transaction_cancelled tx", "task_cancelled c"]
    assert run.tasks == ["no_b"]
    assert run.complete("no_b").tasks == ["no_a"]
    assert run.complete("no_a").tasks == ["sorry"]
    assert run.new("element_left", "element_entered")[-4:] == [
        "element_left tx",
        "element_entered gone",
        "element_left gone",
        "element_entered sorry",
    ]
    assert run.complete("sorry").ended == "completed"


def test_a_transaction_that_is_being_cancelled_is_not_interrupted_by_its_timer() -> None:
    run = run_of(CANCELLED).complete("a").complete("b").fire("late")
    assert run.tasks == ["no_b"]
    assert run.complete("no_b").complete("no_a").tasks == ["sorry"]


def test_handlers_see_the_data_of_the_transaction() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> stop", inside={"tx": "start_in a stop"}, stop=cancel_end(),
        tx=transaction(), gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition, town="Rome").complete("a", town="Oslo")
    assert seen(run, "no_a", "town") == "Oslo"
    assert run.complete("no_a").ended == "completed"


def test_an_error_of_a_handler_is_a_hazard_and_leaves_by_the_error_event() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "hazard -> repair -> end", "start_in -> a -> b -> stop", inside={"tx": "start_in a b stop"},
        stop=cancel_end(), tx=transaction(), gone=boundary("tx", cancel=True), hazard=boundary("tx", error="*"), no_b=service(),
        handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").throw("no_b", "BROKEN")
    assert run.open == ["repair"]
    assert not run.executions


def test_an_error_inside_leaves_without_compensation() -> None:
    definition = model(
        "start -> tx -> end", "hazard -> repair -> end", "start_in -> a -> broken", inside={"tx": "start_in a broken"},
        broken=error_end("BROKEN"), tx=transaction(), hazard=boundary("tx", error="*"), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a")
    assert run.open == ["repair"]
    assert undone(run) == []


NESTED = model(
    "start -> tx -> end",
    "gone -> end",
    "start_in -> a -> par1 -> sub -> end_in",
    "par1 -> stopping -> stop",
    "start_s -> b -> c -> end_s",
    inside={"tx": "start_in a par1 sub stopping stop end_in", "sub": "start_s b c end_s"},
    par1=par(),
    tx=transaction(),
    sub=sub({"mine": "${town}"}),
    stop=cancel_end(),
    gone=boundary("tx", cancel=True),
    late=boundary("sub", after="PT1H"),
    handlers={"a": "no_a", "b": "no_b", "c": "no_c", "sub": "no_sub"},
)


def test_what_a_running_subprocess_had_completed_is_undone_but_not_the_subprocess() -> None:
    run = run_of(NESTED, town="Rome").complete("a").complete("b").complete("stopping", town="Oslo")
    assert run.tasks == ["no_b"]
    assert seen(run, "no_b", "mine") == "Rome"
    run.fire("late")  # its boundary event occurs no more
    assert run.complete("no_b").tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["b", "a"]
    assert run.happened.count("element_left sub") == 1


def test_a_running_subprocess_without_anything_completed_is_withdrawn() -> None:
    run = run_of(NESTED, town="Rome").complete("a").complete("stopping")
    assert run.tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"


def test_a_cancel_from_within_a_nested_subprocess_reaches_the_transaction_around() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> sub -> end_in", "start_s -> b -> stop",
        inside={"tx": "start_in a sub end_in", "sub": "start_s b stop"}, tx=transaction(), stop=cancel_end(),
        gone=boundary("tx", cancel=True), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("no_b").complete("no_a")
    assert run.ended == "completed"


def test_the_inner_of_two_transactions_is_cancelled_alone() -> None:
    definition = model(
        "start -> tx -> end", "out -> end", "start_in -> a -> inner -> end_in", "gone -> z -> end_in",
        "start_s -> b -> stop",
        inside={"tx": "start_in a inner gone z end_in", "inner": "start_s b stop"}, tx=transaction(), inner=transaction(),
        stop=cancel_end(), gone=boundary("inner", cancel=True), out=boundary("tx", cancel=True), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("no_b")
    assert run.tasks == ["z"]
    assert run.complete("z").ended == "completed"


def test_completed_instances_of_a_running_multi_instance_activity_are_undone() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> par1 -> each -> end_in", "par1 -> stopping -> stop", "start_s -> b -> c -> end_s",
        inside={"tx": "start_in par1 each stopping stop end_in", "each": "start_s b c end_s"}, par1=par(), tx=transaction(),
        each=several(sub({"mine": "${item}"}), of="${people}"), stop=cancel_end(), gone=boundary("tx", cancel=True),
        handlers={"b": "no_b", "c": "no_c"},
    )  # fmt: skip
    run = run_of(definition, people=["ada", "bo", "cy"])
    run.complete("b").complete("c")  # ada is done
    run.complete("b")  # bo is on the way
    run.complete("stopping")
    assert run.tasks == ["no_b"]
    assert seen(run, "no_b", "mine") == "bo"
    run.complete("no_b")
    assert (run.tasks, seen(run, "no_c", "mine")) == (["no_c"], "ada")
    run.complete("no_c").complete("no_b")
    assert run.ended == "completed"


def test_compensation_under_way_goes_on_when_its_transaction_is_cancelled() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> b -> par1 -> regret -> never -> end_in", "par1 -> stopping -> stop",
        inside={"tx": "start_in a b par1 regret never stopping stop end_in"}, par1=par(), tx=transaction(), regret=undo("b"),
        stop=cancel_end(), gone=boundary("tx", cancel=True), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("stopping")
    assert run.tasks == ["no_b"]
    assert run.complete("no_b").tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["b", "a"]


def test_an_ad_hoc_subprocess_that_runs_when_its_transaction_is_cancelled_is_undone_as_far_as_it_came() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> par1 -> box -> end_in", "par1 -> stopping -> stop",
        inside={"tx": "start_in par1 box stopping stop end_in", "box": "a b c"}, par1=par(), tx=transaction(), a=user(), b=user(), c=user(),
        box=Node("", "ad_hoc_subprocess", config=AdHocConfig(sequential=True)), stop=cancel_end(), gone=boundary("tx", cancel=True),
        handlers={each: f"no_{each}" for each in "abc"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("stopping")
    assert run.tasks == ["no_b"]
    run.complete("no_b").complete("no_a")
    assert run.ended == "completed"


def test_an_event_subprocess_may_cancel_its_transaction() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> b -> end_in", "halted -> stop",
        inside={"tx": "start_in a b end_in es", "es": "halted stop"}, tx=transaction(), es=by_event(), halted=on_event(on="HALT"),
        stop=cancel_end(), gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").receive("halted")
    assert run.tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"


def test_a_transaction_cancelled_in_the_step_in_which_it_begins() -> None:
    definition = model(
        "start -> tx -> end", "gone -> sorry -> end", "start_in -> stop", inside={"tx": "start_in stop"}, tx=transaction(),
        stop=cancel_end(), gone=boundary("tx", cancel=True),
    )  # fmt: skip
    run = run_of(definition)
    assert run.tasks == ["sorry"]


def test_an_instance_cancelled_while_its_transaction_is_undone_leaves_nothing() -> None:
    run = run_of(NESTED, town="Rome").complete("a").complete("b").complete("stopping").cancel()
    assert run.ended == "cancelled"


def test_compensation_under_way_in_a_running_subprocess_goes_on_when_its_transaction_is_cancelled() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> par1 -> sub -> end_in", "par1 -> stopping -> stop",
        "start_s -> a -> regret -> never -> end_s",
        inside={"tx": "start_in par1 sub stopping stop end_in", "sub": "start_s a regret never end_s"},
        par1=par(), tx=transaction(), sub=sub(), regret=undo(), stop=cancel_end(), gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("stopping")
    assert run.tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["a"]


def test_an_escalation_of_a_handler_reaches_the_border_of_its_transaction() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "loud -> note -> end", "start_in -> a -> stop", "start_h -> shout -> end_h",
        inside={"tx": "start_in a stop", "no_a": "start_h shout end_h"}, tx=transaction(), stop=cancel_end(), no_a=sub(),
        gone=boundary("tx", cancel=True), loud=boundary("tx", escalation="*", interrupting=False), shout=throw(escalation="LOUD"),
        handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a")
    assert run.open == ["note"]
    assert run.complete("note").ended == "completed"


def test_a_handler_that_cancels_a_transaction_being_cancelled_changes_nothing() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> b -> stop", "start_h -> x -> stop_h",
        inside={"tx": "start_in a b stop", "no_a": "start_h x stop_h"}, tx=transaction(), stop=cancel_end(),
        stop_h=cancel_end(), no_a=sub(), gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("x")
    assert run.ended == "completed"
    assert run.happened.count("transaction_cancelled tx") == 1


def test_a_handler_may_cancel_the_transaction_in_which_it_was_asked_for() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> b -> regret -> c -> end_in", "start_h -> x -> stop_h",
        inside={"tx": "start_in a b regret c end_in", "no_b": "start_h x stop_h"}, tx=transaction(), regret=undo("b"), stop_h=cancel_end(),
        no_b=sub(), gone=boundary("tx", cancel=True), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("x")
    assert run.tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["b", "a"]


def test_compensation_that_nobody_waits_for_goes_on_in_a_cancelled_transaction_and_is_told_once() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> a -> b -> regret -> c -> stop", inside={"tx": "start_in a b regret c stop"},
        tx=transaction(), stop=cancel_end(), regret=undo("b", waits=False), gone=boundary("tx", cancel=True),
        handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("c")
    assert run.tasks == ["no_b"]
    assert run.complete("no_b").tasks == ["no_a"]
    assert run.complete("no_a").ended == "completed"
    assert run.happened.count("element_left regret") == 1


def test_an_incident_in_a_transaction_goes_when_it_is_cancelled() -> None:
    definition = model(
        "start -> tx -> end", "gone -> end", "start_in -> par1 -> a -> bad -> end_in", "par1 -> c -> stop",
        inside={"tx": "start_in par1 a bad end_in c stop"}, par1=par(), tx=transaction(), bad=service(inputs={"x": "${missing}"}),
        stop=cancel_end(), gone=boundary("tx", cancel=True), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("c")
    assert run.open == ["no_a"]
    assert run.complete("no_a").ended == "completed"


def test_subprocesses_that_are_undone_side_by_side_are_all_undone_before_the_transaction_is_left() -> None:
    definition = model(
        "start -> tx -> end", "gone -> sorry -> end", "sx -> par1 -> s1 -> ex", "par1 -> s2 -> ex", "par1 -> c -> stop",
        "b1 -> a1 -> w1 -> e1", "b2 -> a2 -> w2 -> e2", tx=transaction(), gone=boundary("tx", cancel=True), stop=cancel_end(),
        s1=sub(), s2=sub(), **dict.fromkeys(("sx", "b1", "b2"), start()), **dict.fromkeys(("ex", "e1", "e2"), end()),
        inside={"tx": "sx par1 s1 s2 c stop ex", "s1": "b1 a1 w1 e1", "s2": "b2 a2 w2 e2"}, handlers={"a1": "no_a1", "a2": "no_a2"},
    )  # fmt: skip
    run = run_of(definition).complete("a1").complete("a2").complete("c")
    assert run.open == ["no_a1", "no_a2"]
    assert run.complete("no_a1").open == ["no_a2"]
    assert run.complete("no_a2").open == ["sorry"]


def test_so_are_the_instances_of_a_subprocess_for_several() -> None:
    definition = model(
        "start -> tx -> end", "gone -> sorry -> end", "sx -> par1 -> s -> ex", "par1 -> c -> stop", "b -> a -> w -> e",
        tx=transaction(), gone=boundary("tx", cancel=True), stop=cancel_end(), s=several(sub(), times="${2}"),
        **dict.fromkeys(("sx", "b"), start()), **dict.fromkeys(("ex", "e"), end()),
        inside={"tx": "sx par1 s c stop ex", "s": "b a w e"}, handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("a").complete("c")
    assert run.open == ["no_a", "no_a"]
    assert run.complete("no_a").open == ["no_a"]
    assert run.complete("no_a").open == ["sorry"]
