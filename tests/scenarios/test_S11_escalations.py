"""S11: escalations find the event of their code, interrupt or carry on, and without a catcher are no error."""

from dataclasses import replace

from tests.core.models import boundary, call, end, escalation_end, model, start, sub, throw
from tests.core.world import World

INSIDE = {"sub": "s before late between stop after_stop e"}
CHAIN = "s -> before -> late -> between -> stop -> after_stop -> e"
THROWS = {"s": start(), "e": end(), "late": throw(escalation="LATE"), "stop": throw(escalation="STOP")}
TWO = model(
    "start -> sub -> regular -> end",
    CHAIN,
    "on_late -> n -> end1",
    "on_stop -> i -> end2",
    on_late=boundary("sub", escalation="LATE", interrupting=False),
    on_stop=boundary("sub", escalation="STOP"),
    inside=INSIDE,
    **THROWS,
)


def test_S11_the_one_opens_beside_the_subprocess_the_other_cancels_it() -> None:
    run = World(TWO).start().complete("before")
    assert run.open == ["between", "n"], "the subprocess carries on"
    run.complete("between")
    assert run.open == ["i", "n"]
    assert "element_entered after_stop" not in run.happened
    assert run.happened.count("task_created n") == run.happened.count("task_created i") == 1
    assert run.complete("n").complete("i").ended == "completed"
    thrown = [(event.element_id, event.data["code"], event.data["caught_by"]) for event in run.events if event.kind == "escalation_thrown"]
    assert thrown == [("late", "LATE", "on_late"), ("stop", "STOP", "on_stop")]


def test_S11_a_boundary_without_a_code_catches_every_one() -> None:
    every = model(
        "start -> sub -> regular -> end", CHAIN, "any -> n -> end1",
        any=boundary("sub", escalation="*", interrupting=False, code_variable="code"), inside=INSIDE, **THROWS,
    )  # fmt: skip
    run = World(every).start().complete("before")
    assert (run.open, run.variables["code"]) == (["between", "n"], "LATE")
    run.complete("between")
    assert (run.open, run.variables["code"]) == (["after_stop", "n", "n"], "STOP")


def test_S11_what_nothing_catches_is_no_error_the_token_goes_on() -> None:
    run = World(model("start -> sub -> regular -> end", CHAIN, inside=INSIDE, **THROWS)).start().complete("before")
    assert (run.open, run.incidents) == (["between"], [])
    assert run.complete("between").complete("after_stop").open == ["regular"]


def test_S11_an_end_event_may_escalate_too_and_passes_activities_that_do_not_catch() -> None:
    nested = model(
        "start -> outer -> regular -> end", "on_late -> n -> end1", "s -> inner -> e", "s2 -> a -> enough",
        outer=sub(), inner=sub(), s=start(), e=end(), s2=start(), enough=escalation_end("LATE"),
        other=boundary("inner", escalation="STOP"), on_late=boundary("outer", escalation="LATE", interrupting=False),
        inside={"outer": "s inner e other", "inner": "s2 a enough"},
    )  # fmt: skip
    run = World(nested).start().complete("a")
    assert run.open == ["n", "regular"]


def test_S11_an_end_event_whose_escalation_interrupts_ends_with_what_is_cancelled() -> None:
    interrupted = model(
        "start -> sub -> regular -> end", "on_late -> i -> end1", "s -> par -> a -> enough", "par -> b -> e",
        s=start(), e=end(), enough=escalation_end("LATE"), on_late=boundary("sub", escalation="LATE"),
        inside={"sub": "s par a b e enough"},
    )  # fmt: skip
    run = World(interrupted).start().complete("a")
    assert run.open == ["i"]
    assert run.new("element_left", "task_cancelled")[1:] == [
        "element_left enough",
        "task_cancelled b",
        "element_left b",
        "element_left sub",
        "element_left on_late",
    ]


THROWN_BELOW = replace(
    model("s -> before -> late -> between -> stop -> after_stop -> e", **THROWS),
    key="below",
)


def test_S11_the_same_when_they_are_thrown_in_a_called_process() -> None:
    calling = model(
        "start -> sub -> regular -> end", "on_late -> n -> end1", "on_stop -> i -> end2", sub=call("below"),
        on_late=boundary("sub", escalation="LATE", interrupting=False), on_stop=boundary("sub", escalation="STOP"),
    )  # fmt: skip
    run = World(calling, library={"below": THROWN_BELOW}).start().complete("before")
    assert run.open == ["between", "n"], "the called process carries on"
    run.complete("between")
    assert run.open == ["i", "n"] and [called.status for called in run.called.values()] == ["cancelled"]
    assert run.complete("n").complete("i").ended == "completed"
    thrown = [(event.element_id, event.data["code"], event.data["caught_by"]) for event in run.events if event.kind == "escalation_thrown"]
    assert thrown == [("late", "LATE", "on_late"), ("stop", "STOP", "on_stop")]


def test_S11_without_a_catcher_in_the_caller_the_called_process_goes_on() -> None:
    run = World(model("start -> sub -> regular -> end", sub=call("below")), library={"below": THROWN_BELOW}).start()
    assert run.complete("before").complete("between").complete("after_stop").open == ["regular"]
