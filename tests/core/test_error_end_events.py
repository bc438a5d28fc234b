"""Error end events (10.5.3, 10.5.6, 13.5.3): caught outwards; what nothing catches rests at the end event, an incident."""

from tests.core.models import boundary, end, error_end, model, par, start, sub, user
from tests.core.world import World

INSIDE = {"sub": "s par u e decide err"}
CAUGHT = model(
    "start -> sub -> after -> end",
    "caught -> mend -> end1",
    "s -> par -> u -> e",
    "par -> decide -> err",
    s=start(),
    e=end(),
    err=error_end("BROKEN"),
    caught=boundary("sub", error="BROKEN", code_variable="code"),
    inside=INSIDE,
)


def test_the_activity_around_it_is_cancelled_and_goes_on_at_the_boundary_event() -> None:
    run = World(CAUGHT).start().complete("decide")
    assert run.open == ["mend"]
    assert run.variables == {"code": "BROKEN"}
    assert run.new() == [
        "task_completed decide",
        "element_left decide",
        "flow_taken decide>err",
        "element_entered err",
        "element_left err",
        "error_caught caught",
        "task_cancelled u",
        "element_left u",
        "element_left sub",
        "variables_set caught",
        "element_entered caught",
        "element_left caught",
        "flow_taken caught>mend",
        "element_entered mend",
        "task_created mend",
    ]
    (caught,) = [event for event in run.last.history if event.kind == "error_caught"]
    assert (caught.data["code"], caught.data["thrown_by"]) == ("BROKEN", "err")
    assert run.complete("mend").ended == "completed"


def test_it_passes_activities_that_catch_other_errors() -> None:
    nested = model(
        "start -> outer -> end", "any -> mend -> end1", "s -> inner -> e", "other -> e", "s2 -> err",
        outer=sub(), inner=sub(), s=start(), s2=start(), e=end(), err=error_end("BROKEN"),
        other=boundary("inner", error="LATE"), any=boundary("outer", error="*"),
        inside={"outer": "s inner e other", "inner": "s2 err"},
    )  # fmt: skip
    run = World(nested).start()
    assert run.open == ["mend"]


def test_what_nothing_catches_rests_there_and_the_other_tokens_go_on() -> None:
    uncaught = model(
        "start -> par -> u -> end", "par -> err",
        err=error_end("BROKEN"), par=par(),
    )  # fmt: skip
    run = World(uncaught).start()
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("err", "uncaught_error")
    assert "'BROKEN' is caught by nothing around it" in incident.message
    assert "element_left err" not in run.happened
    run.complete("u")
    assert run.ended is None, "the failed token keeps the instance open until somebody decides"
    run.retry("err")
    assert [each.kind for each in run.incidents] == ["uncaught_error"]
    assert run.cancel().ended == "cancelled"


def test_an_error_of_a_boundary_events_own_way_is_not_caught_by_its_neighbours() -> None:
    beside = model(
        "start -> a -> end", "late -> err", a=user(), late=boundary("a", after="PT1H"), err=error_end("X"), any=boundary("a", error="*")
    )
    run = World(beside).start().fire("late")
    assert [each.kind for each in run.incidents] == ["uncaught_error"]
