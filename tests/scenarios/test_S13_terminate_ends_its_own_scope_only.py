"""S13: a terminate end event ends the scope that it lies in, with everything inside, and nothing outside."""

from tests.core.models import boundary, end, model, par, start, terminate
from tests.core.world import World

INSIDE = model(
    "start -> sub -> after -> end",
    "s -> par -> u -> e",
    "par -> decide -> stop",
    s=start(),
    e=terminate(),
    stop=terminate(),
    late=boundary("u", after="PT1H"),
    nag=boundary("u", after="R/PT10M", interrupting=False),
    inside={"sub": "s par u e decide stop late nag"},
)


def test_S13_the_open_task_and_its_timers_go_and_the_parent_continues() -> None:
    run = World(INSIDE).start()
    assert run.open == ["decide", "late", "nag", "u"]
    run.complete("decide")
    assert run.open == ["after"], "U is withdrawn and its boundary timers are gone"
    assert run.ended is None
    assert run.new() == [
        "task_completed decide",
        "element_left decide",
        "flow_taken decide>stop",
        "element_entered stop",
        "task_cancelled u",
        "element_left u",
        "element_left stop",
        "element_left sub",
        "flow_taken sub>after",
        "element_entered after",
        "task_created after",
    ]
    assert run.complete("after").ended == "completed"


def test_S13_terminate_reached_first_keeps_the_branches_after_it_from_beginning() -> None:
    first = model(
        "start -> sub -> after -> end",
        "s -> par -> stop",
        "par -> u -> e",
        s=start(),
        e=end(),
        stop=terminate(),
        inside={"sub": "s par u e stop"},
    )
    run = World(first).start()
    assert run.open == ["after"]
    assert "flow_taken par>u" not in run.happened
    assert "task_created u" not in run.happened


def test_S13_terminate_reached_at_once_withdraws_what_opened_before_it() -> None:
    at_once = model(
        "start -> sub -> after -> end",
        "s -> par -> u -> e",
        "par -> stop",
        s=start(),
        e=terminate(),
        stop=terminate(),
        late=boundary("u", after="PT1H"),
        inside={"sub": "s par u e stop late"},
    )
    run = World(at_once).start()
    assert run.open == ["after"]
    assert not run.last.cancelled_tasks, "a task that was never written is not withdrawn from the database"
    assert run.new("task_created", "task_cancelled") == ["task_created u", "task_cancelled u", "task_created after"]


def test_S13_terminate_of_an_inner_scope_spares_the_scopes_around_it() -> None:
    nested = model(
        "start -> sub -> after -> end",
        "s -> par -> sub_in -> e",
        "par -> beside -> e2",
        "si -> pi -> v -> ei",
        "pi -> decide -> stop",
        s=start(),
        si=start(),
        e=terminate(),
        e2=end(),
        ei=terminate(),
        pi=par(),
        stop=terminate(),
        late_in=boundary("sub_in", after="PT2H"),
        late_v=boundary("v", after="PT1H"),
        inside={"sub": "s par sub_in beside e e2 late_in", "sub_in": "si pi v decide ei stop late_v"},
    )
    run = World(nested).start()
    assert run.open == ["beside", "decide", "late_in", "late_v", "v"]
    run.complete("decide")
    assert run.new("task_cancelled", "element_left")[:3] == ["element_left decide", "task_cancelled v", "element_left v"]
    # sub_in ended and its token went on to e, which terminates sub: beside is withdrawn, after opens.
    assert run.open == ["after"]
    assert not run.last.ended
    assert run.complete("after").ended == "completed"


def test_S13_terminate_at_the_top_ends_the_instance_with_its_subprocesses() -> None:
    top = model(
        "start -> par -> sub -> end",
        "par -> decide -> stop",
        "s -> u -> e",
        s=start(),
        e=end(),
        stop=terminate(),
        late=boundary("u", after="PT1H"),
        inside={"sub": "s u e late"},
    )
    run = World(top).start(x=1)
    run.complete("decide", y=2)
    assert run.ended == "completed"
    assert run.final == {"x": 1, "y": 2}
    assert run.new()[-4:] == ["element_left u", "element_left sub", "element_left stop", "instance_completed"]
    assert len(run.last.cancelled_tasks) == 1
    assert run.asked_whole == 1, "what a terminate must cancel lies outside a narrow snapshot"
