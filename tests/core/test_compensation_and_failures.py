"""Compensation beside errors, interruptions, incidents and cancels (13.5.5)."""

from __future__ import annotations

from engine.core.values import typed
from tests.core.models import boundary, by_event, error_end, model, on_event, service, sub, terminate, undo
from tests.core.test_compensation import TRIP, run_of, seen, undone


def test_an_error_event_subprocess_undoes_what_its_scope_had_completed() -> None:
    definition = model(
        "start -> sub -> end", "start_in -> a -> work -> broken", "caught -> all -> end_es",
        inside={"sub": "start_in a work broken es", "es": "caught all end_es"}, sub=sub({"place": "${town}"}), es=by_event(),
        caught=on_event(error="*"), all=undo(), broken=error_end("BROKEN"), handlers={"a": "no_a", "work": "no_work"},
    )  # fmt: skip
    run = run_of(definition, town="Rome").complete("a").complete("work")
    assert run.open == ["no_work"]
    assert seen(run, "no_work", "place") == "Rome"
    run.complete("no_work").complete("no_a")
    assert run.ended == "completed"


def test_what_a_failed_subprocess_had_completed_cannot_be_undone_from_outside() -> None:
    definition = model(
        "start -> sub -> end", "start_in -> a -> broken", "caught -> regret -> end", inside={"sub": "start_in a broken"}, sub=sub(),
        broken=error_end("BROKEN"), caught=boundary("sub", error="*"), regret=undo(), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a")
    assert run.ended == "completed"
    assert undone(run) == []


def test_an_error_of_a_handler_goes_out_of_the_throw_and_ends_the_compensation() -> None:
    definition = model(
        "start -> sub -> end", "start_in -> a -> b -> regret -> end_in", "caught -> repair -> end",
        inside={"sub": "start_in a b regret end_in"}, sub=sub(), no_b=service(), regret=undo(), caught=boundary("sub", error="*"),
        handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").throw("no_b", "BROKEN")
    assert run.open == ["repair"]
    assert not run.executions


def test_what_is_undone_catches_nothing_any_more() -> None:
    """The boundary event of a subprocess that has completed is no longer there when a handler inside it fails."""
    definition = model(
        "start -> sub -> regret -> end", "start_in -> a -> end_in", "caught -> end", "outer -> repair -> end_es",
        inside={"sub": "start_in a end_in", "es": "outer repair end_es"}, sub=sub(), no_a=service(), regret=undo(),
        caught=boundary("sub", error="*"), es=by_event(), outer=on_event(error="*"), handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").throw("no_a", "BROKEN")
    assert run.open == ["repair"]


def test_a_handler_that_fails_is_tried_again_and_the_others_follow() -> None:
    definition = model(
        "start -> a -> b -> regret -> end", no_b=service(inputs={"x": "${missing}"}), regret=undo(), handlers={"a": "no_a", "b": "no_b"}
    )
    run = run_of(definition).complete("a").complete("b")
    assert [incident.element_id for incident in run.incidents] == ["no_b"]
    process = next(scope for scope in run.scopes.values() if scope.parent_id is None)
    process.variables["missing"] = typed(1)  # type: ignore[index]
    run.retry("no_b")
    assert run.open == ["no_b"]
    assert run.complete("no_b").open == ["no_a"]
    assert run.complete("no_a").ended == "completed"


def test_an_activity_that_could_not_be_left_has_completed_and_is_remembered_once() -> None:
    definition = model(
        "start -> a -> b -> regret -> end", "a -> c -> end", conditions={"a>b": "${go}", "a>c": "${not go}"}, regret=undo(),
        handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition, seat=0).complete("a", seat=7)
    assert [incident.element_id for incident in run.incidents] == ["a"]
    process = next(scope for scope in run.scopes.values() if scope.parent_id is None)
    process.variables["go"] = typed(True)  # type: ignore[index]
    run.retry("a").complete("b")
    assert seen(run, "no_a", "seat") == 7
    assert run.complete("no_a").ended == "completed"
    assert undone(run) == ["a"]


def test_a_throw_that_is_interrupted_takes_its_handlers_with_it() -> None:
    definition = model(
        "start -> sub -> end", "start_in -> a -> b -> regret -> end_in", "late -> end", inside={"sub": "start_in a b regret end_in"},
        sub=sub(), late=boundary("sub", after="PT1H"), regret=undo(), handlers={"a": "no_a", "b": "no_b"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").fire("late")
    assert run.ended == "completed"
    assert run.new("task_cancelled", "compensation_done", "element_left")[:3] == [
        "task_cancelled no_b", "element_left no_b", "compensation_done b",
    ]  # fmt: skip


def test_terminate_beside_compensation_withdraws_it() -> None:
    definition = model("start -> a -> par1 -> regret -> end", "par1 -> b -> stop", stop=terminate(), regret=undo(), handlers={"a": "no_a"})
    run = run_of(definition).complete("a").complete("b")
    assert run.ended == "completed"


def test_an_instance_that_is_cancelled_while_it_compensates_leaves_nothing() -> None:
    run = run_of(TRIP).complete("hotel").complete("flight").complete("car").complete("no_car").cancel("enough")
    assert run.ended == "cancelled"
    assert run.new("task_cancelled") == ["task_cancelled no_flight"]


def test_a_way_out_of_a_handler_belongs_to_the_handler() -> None:
    definition = model(
        "start -> a -> regret -> end", "failed -> repair -> end_repair", no_a=service(), failed=boundary("no_a", error="*"), regret=undo(),
        handlers={"a": "no_a"},
    )  # fmt: skip
    run = run_of(definition).complete("a").throw("no_a", "GONE")
    assert run.open == ["repair"]
    assert run.complete("repair").ended == "completed"


def test_two_handlers_that_complete_together_each_go_on_with_their_own() -> None:
    definition = model(
        "start -> a -> b -> c -> d -> one -> two -> end", one=undo("b", waits=False), two=undo(),
        handlers={each: f"no_{each}" for each in "abcd"},
    )  # fmt: skip
    run = run_of(definition).complete("a").complete("b").complete("c").complete("d")
    assert run.open == ["no_b", "no_d"]
    run.complete("no_d").complete("no_b").complete("no_c").complete("no_a")
    assert run.ended == "completed"
    assert undone(run) == ["b", "d", "c", "a"]
