"""BPMN errors find the innermost boundary event that catches them (10.5.6, 13.5.3)."""

import pytest

from engine.core.snapshot import NoHandlerForError
from tests.core.models import boundary, end, model, par, service, start
from tests.core.world import World


def test_an_error_goes_on_at_the_boundary_event_of_its_code() -> None:
    run = World(
        model(
            "start -> s -> end",
            "any -> a -> end1",
            "exact -> b -> end2",
            s=service(),
            any=boundary("s", error="*"),
            exact=boundary("s", error="LATE", code_variable="code", message_variable="text"),
        )
    ).start()
    run.throw("s", "LATE", "too late", days=3)
    assert run.open == ["b"], "an exact code comes before a catch-all"
    assert run.variables == {"code": "LATE", "text": "too late", "days": 3}
    assert run.new()[:3] == ["error_caught exact", "element_left s", "variables_set exact"]
    assert run.events[-7].kind == "element_left"
    (caught,) = [event for event in run.last.history if event.kind == "error_caught"]
    assert caught.data["thrown_by"] == "s"
    assert caught.data["code"] == "LATE"


def test_a_catch_all_catches_what_no_other_event_names() -> None:
    run = World(
        model(
            "start -> s -> end",
            "any -> a -> end1",
            "exact -> b -> end2",
            s=service(),
            any=boundary("s", error="*"),
            exact=boundary("s", error="LATE"),
        )
    ).start()
    assert run.throw("s", "OTHER").open == ["a"]


def test_an_error_that_nothing_catches_changes_nothing() -> None:
    run = World(model("start -> s -> end", "exact -> b -> end2", s=service(), exact=boundary("s", error="LATE"))).start()
    with pytest.raises(NoHandlerForError, match="'OTHER' of s"):
        run.throw("s", "OTHER", "why")


NESTED = model(
    "start -> par0 -> sub -> end",
    "par0 -> beside -> end0",
    "outer -> x -> end1",
    "s1 -> sub_in -> e1",
    "inner -> y -> e3",
    "s2 -> par -> s -> e2",
    "par -> u -> e2",
    s1=start(),
    s2=start(),
    par=par(),
    e1=end(),
    e2=end(),
    e3=end(),
    s=service(),
    outer=boundary("sub", error="*"),
    inner=boundary("sub_in", error="NEAR"),
    nag=boundary("u", after="PT1H"),
    late=boundary("sub_in", after="P1D"),
    inside={"sub": "s1 sub_in e1 inner y e3 late", "sub_in": "s2 par s u e2 nag"},
)


def test_an_error_is_caught_by_the_enclosing_subprocess_which_is_cancelled_whole() -> None:
    run = World(NESTED).start()
    assert run.open == ["beside", "late", "nag", "s", "u"]
    run.throw("s", "NEAR")
    assert run.open == ["beside", "y"]
    assert run.new("task_cancelled") == ["task_cancelled u"]
    run.complete("y").complete("beside")
    assert run.ended == "completed"


def test_an_error_passes_through_scopes_that_do_not_catch_it() -> None:
    run = World(NESTED).start()
    run.throw("s", "FAR")
    assert run.open == ["beside", "x"]
    assert run.asked_whole == 1, "the sibling's task lies outside the narrow snapshot"
    assert run.new("element_left") == ["element_left s", "element_left u", "element_left sub_in", "element_left sub", "element_left outer"]
    run.complete("x").complete("beside")
    assert run.ended == "completed"


def test_an_error_out_of_a_subprocess_with_a_single_token_needs_only_a_narrow_snapshot() -> None:
    lone = model(
        "start -> sub -> end",
        "oops -> x -> end1",
        "s0 -> s -> e",
        s0=start(),
        s=service(),
        e=end(),
        oops=boundary("sub", error="*"),
        inside={"sub": "s0 s e"},
    )
    run = World(lone).start(n=1)
    run.throw("s", "E", n=2)
    assert run.open == ["x"]
    assert run.variables == {"n": 2}
    assert run.asked_whole == 0
