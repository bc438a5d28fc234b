"""Event subprocesses: listening, beginning, interrupting or not, by timer, message, error and escalation (10.3.5, 13.5.4)."""

from __future__ import annotations

from typing import Any

from engine.bpmn.definition import Node, ProcessDefinition
from engine.core.effects import NewIncident
from tests.core.models import (
    boundary,
    by_event,
    end,
    error_end,
    escalation_end,
    model,
    on_event,
    par,
    service,
    start,
    terminate,
    throw,
)
from tests.core.world import World


def beside(event: Node, *chains: str, **elements: Any) -> ProcessDefinition:
    """A process of two tasks in a row, with an event subprocess of one task."""
    inside = {"handler": "on h he", **elements.pop("inside", {})}
    return model("start -> a -> b -> end", "on -> h -> he", *chains, handler=by_event(), on=event, he=end(), inside=inside, **elements)


# ---- timers and messages


def test_a_message_that_does_not_interrupt_begins_it_each_time() -> None:
    run = World(beside(on_event(on="NEWS", interrupting=False))).start()
    assert run.open == ["a", "on"]
    assert [(token.element_id, token.status) for token in run.tokens.values()] == [("handler", "listening"), ("a", "waiting")]
    run.receive("on", n=1).receive("on", n=2)
    assert run.open == ["a", "h", "h", "on"]
    assert run.new("element_entered") == ["element_entered handler", "element_entered on", "element_entered h"]
    run.complete("a").complete("b")
    assert run.ended is None, "it goes on while an event subprocess does"
    run.complete("h").complete("h")
    assert run.ended == "completed"
    assert run.final == {"n": 2}


def test_listening_does_not_keep_the_scope_open() -> None:
    run = World(beside(on_event(on="NEWS"))).start().complete("a").complete("b")
    assert run.ended == "completed"


def test_a_timer_that_interrupts_ends_everything_else_of_the_process() -> None:
    run = World(beside(on_event(after="PT1H"))).start().fire("on")
    assert run.open == ["h"]
    assert run.new()[:5] == ["timer_fired on", "task_cancelled a", "element_left a", "element_entered handler", "element_entered on"]
    assert run.complete("h").ended == "completed"
    assert "element_entered b" not in run.happened


def test_a_cycle_goes_on_until_it_is_over() -> None:
    run = World(beside(on_event(after="R2/PT1H", interrupting=False))).start()
    run.fire("on")
    assert run.open == ["a", "h", "on"]
    run.fire("on")
    assert run.open == ["a", "h", "h"]
    assert {token.status for token in run.tokens.values()} == {"waiting"}, "nothing listens any more"
    run.complete("h").complete("h").complete("a").complete("b")
    assert run.ended == "completed"


def test_a_cycle_that_is_over_when_the_scope_opens_leaves_nothing() -> None:
    run = World(beside(on_event(after="R1/2020-01-01T00:00:00Z/PT1H", interrupting=False))).start()
    assert (run.open, len(run.tokens)) == (["a"], 1)


def test_what_listens_in_a_subprocess_that_ends_at_once_is_never_written() -> None:
    at_once = model(
        "start -> sub -> a -> end", "s -> e", "on -> h -> he",
        s=start(), e=end(), handler=by_event(), on=on_event(on="NEWS"), he=end(), inside={"sub": "s e handler", "handler": "on h he"},
    )  # fmt: skip
    run = World(at_once).start()
    assert run.open == ["a"]
    assert [token.element_id for token in run.last.new_tokens] == ["a"]


def test_its_own_scope_may_have_event_subprocesses_and_gets_what_is_local() -> None:
    nested = beside(
        on_event(on="OUT"), "on2 -> h2 -> he2",
        inner=by_event(), on2=on_event(on="IN", interrupting=False), he2=end(), inside={"handler": "on h he inner", "inner": "on2 h2 he2"},
    )  # fmt: skip
    run = World(nested).start().receive("on")
    assert run.open == ["h", "on2"]
    assert run.receive("on2").open == ["h", "h2", "on2"]
    assert run.complete("h").open == ["h2", "on2"]
    assert run.complete("h2").ended == "completed"


def test_terminate_inside_it_ends_it_alone() -> None:
    run = World(beside(on_event(on="NEWS", interrupting=False), "h -> stop", stop=terminate(), inside={"handler": "on h he stop"})).start()
    assert run.receive("on").complete("h").open == ["a", "on"]


def test_terminate_beside_it_ends_it_too() -> None:
    run = World(beside(on_event(on="NEWS", interrupting=False), "a -> stop", stop=terminate())).start().receive("on")
    assert run.complete("a").ended == "completed"


def test_a_boundary_event_of_the_subprocess_around_takes_listeners_along() -> None:
    around = model(
        "start -> sub -> end", "late -> x -> end1", "s -> a -> e", "on -> h -> he",
        s=start(), e=end(), handler=by_event(), on=on_event(on="NEWS", interrupting=False), he=end(), late=boundary("sub", after="PT1H"),
        inside={"sub": "s a e handler", "handler": "on h he"},
    )  # fmt: skip
    run = World(around).start().receive("on")
    assert run.open == ["a", "h", "late", "on"]
    assert run.fire("late").open == ["x"]
    assert run.complete("x").ended == "completed"


def test_an_instance_that_listens_can_be_cancelled() -> None:
    run = World(beside(on_event(on="NEWS", interrupting=False))).start().receive("on").cancel()
    assert run.new("task_cancelled") == ["task_cancelled a", "task_cancelled h"]


def test_what_cannot_listen_is_an_incident_that_a_retry_mends() -> None:
    run = World(beside(on_event(after="${when}", interrupting=False))).start(when="soon")
    assert [(incident.element_id, incident.kind) for incident in run.incidents] == [("handler", "expression")]
    run.complete("a", when="2027-01-01")
    run.retry("handler")
    assert (run.open, run.incidents) == (["b", "on"], [])
    assert [token.status for token in run.tokens.values() if token.element_id == "handler"] == ["listening"]


def test_a_listener_that_fails_keeps_its_scope_open_and_mended_lets_it_end() -> None:
    run = World(beside(on_event(after="${when}", interrupting=False))).start(when="soon").complete("a", when="2027-01-01").complete("b")
    assert run.ended is None
    assert run.retry("handler").ended == "completed"


def test_an_occurrence_after_which_it_cannot_listen_begins_it_all_the_same() -> None:
    again = beside(Node("", "start_event", config=on_event(on="${name}", interrupting=False).config))
    run = World(again).start(name="NEWS")
    run.complete("a", name="").receive("on")
    assert run.tasks == ["b", "h"]
    assert [incident.element_id for incident in run.incidents] == ["handler"]
    assert "cannot wait for its next occurrence" in run.leaf("handler", NewIncident).message  # type: ignore[union-attr]


# ---- errors


def test_an_error_of_a_job_begins_it_with_the_errors_variables() -> None:
    run = World(beside(on_event(error="BROKEN"), a=service(), x=par())).start()
    run.throw("a", "BROKEN", "no wheels", wheels=0)
    assert (run.open, run.variables) == (["h"], {"wheels": 0})
    assert run.new()[:3] == ["error_caught on", "element_left a", "element_entered handler"]
    assert run.complete("h").ended == "completed"


def test_an_error_end_event_begins_it_once_whatever_else_is_open() -> None:
    run = World(beside(on_event(error="*"), "start -> c -> err", err=error_end("BROKEN"))).start()
    assert run.open == ["a", "c"]
    assert run.complete("c").open == ["h"]
    assert run.happened.count("element_entered handler") == 1


def test_the_boundary_event_of_the_activity_comes_first() -> None:
    run = World(beside(on_event(error="*"), "near -> x -> end1", a=service(), near=boundary("a", error="BROKEN"))).start()
    assert run.throw("a", "BROKEN").open == ["x"]


def test_what_an_event_subprocess_throws_goes_outwards_not_to_itself() -> None:
    around = model(
        "start -> sub -> end", "caught -> x -> end1", "s -> a -> e", "on -> h -> again",
        s=start(), e=end(), a=service(), handler=by_event(), on=on_event(error="*"), again=error_end("WORSE"),
        caught=boundary("sub", error="*"), inside={"sub": "s a e handler", "handler": "on h again"},
    )  # fmt: skip
    run = World(around).start().throw("a", "BROKEN")
    assert run.open == ["h"]
    assert run.complete("h").open == ["x"]


def test_an_error_out_of_one_that_interrupts_is_not_caught_beside_it() -> None:
    """It has taken the place of everything in its scope, the other event subprocesses included."""
    both = beside(
        on_event(on="NEWS"), "h -> err", "on2 -> h2 -> he2", err=error_end("BROKEN"),
        handler2=by_event(), on2=on_event(error="BROKEN"), he2=end(), inside={"handler": "on h he err", "handler2": "on2 h2 he2"},
    )  # fmt: skip
    run = World(both).start().receive("on").complete("h")
    assert [(incident.element_id, incident.kind) for incident in run.incidents] == [("err", "uncaught_error")]


def test_an_error_out_of_one_that_does_not_interrupt_is_caught_beside_it() -> None:
    both = beside(
        on_event(on="NEWS", interrupting=False), "h -> err", "on2 -> h2 -> he2", err=error_end("BROKEN"),
        handler2=by_event(), on2=on_event(error="BROKEN"), he2=end(), inside={"handler": "on h he err", "handler2": "on2 h2 he2"},
    )  # fmt: skip
    run = World(both).start().receive("on").complete("h")
    assert run.open == ["h2"]


# ---- escalations


def test_an_escalation_that_does_not_interrupt_begins_it_and_the_thrower_goes_on() -> None:
    thrown = beside(on_event(escalation="LATE", interrupting=False), "start -> t -> c -> end", t=throw(escalation="LATE"))
    run = World(thrown).start()
    assert run.open == ["a", "c", "h"]
    assert run.variables == {"code": "LATE"}


def test_an_escalation_that_interrupts_takes_its_thrower_along() -> None:
    thrown = beside(on_event(escalation="*"), "start -> t -> c -> end", t=throw(escalation="LATE"))
    run = World(thrown).start()
    assert run.open == ["h"]
    assert "element_entered c" not in run.happened


def test_one_that_escalates_what_it_catches_itself_does_not_begin_again() -> None:
    itself = beside(
        on_event(escalation="LATE", interrupting=False), "start -> enough", "h -> more",
        enough=escalation_end("LATE"), more=escalation_end("LATE"), inside={"handler": "on h he more"},
    )  # fmt: skip
    run = World(itself).start()
    assert run.complete("h").open == ["a"]
    assert [event.data["caught_by"] for event in run.events if event.kind == "escalation_thrown"] == ["on", None]


def test_an_escalation_inside_a_subprocess_is_caught_by_the_process_around_it() -> None:
    deep = beside(
        on_event(escalation="LATE", interrupting=False), "start -> sub -> end", "s -> t -> c -> e",
        s=start(), e=end(), t=throw(escalation="LATE"), inside={"sub": "s t c e"},
    )  # fmt: skip
    assert World(deep).start().open == ["a", "c", "h"]
