"""The reader's half and the core's half fit for `models/more_elements.bpmn` too."""

from engine.core.effects import NewSubscription
from tests.bpmn.models import definition, model
from tests.core.world import World


def begun() -> World:
    return World(definition(model("more_elements"))).start("ask", "message", amount=21, ticket="t-1", judges=["bo", "cy"])


def test_a_letter_that_no_rule_fits_is_answered_over_the_error_and_the_link() -> None:
    run = begun()
    assert (run.open, run.variables["amount"]) == (["no_more", "rule", "too_long"], 42)
    run.complete("rule", rule=None)
    assert run.ended == "completed"
    assert run.new("element_entered")[1:] == [
        f"element_entered {element}"
        for element in (
            "none_found",
            "no_judgement",
            "to_answer",
            "answering",
            "send",
            "tell",
            "copies",
            "file",
            "file",
            "file",
            "kept",
            "end",
        )
    ]
    assert [delivery.request["body"] for delivery in run.deliveries] == [run.final, 42]
    assert {delivery.destination for delivery in run.deliveries} == {"http://desk.example/events"}


def test_a_letter_with_a_rule_waits_for_its_answer() -> None:
    run = begun().complete("rule", rule="R7")
    waiting = run.leaf("wait", NewSubscription)
    assert isinstance(waiting, NewSubscription)
    assert (waiting.message_name, waiting.correlation_key) == ("ANSWER", "t-1")
    assert "element_left milestone" in run.new()
    assert run.receive("wait").ended == "completed"


def test_what_takes_long_escalates_and_the_subprocess_goes_on() -> None:
    run = begun().fire("too_long")
    assert run.open == ["ask_why", "ask_why", "no_more", "rule", "too_long"]
    assert [task.name for task in run.last.tasks] == ["Ask bo why", "Ask cy why"]
    assert run.variables["code"] == "SLOW"
    run.fire("too_long")
    assert run.open == ["ask_why"] * 4 + ["no_more", "rule"]
    assert run.complete("ask_why").open == ["ask_why", "ask_why", "no_more", "rule"], "one of the two was enough"


def test_a_message_to_the_process_withdraws_all_of_it() -> None:
    run = begun().fire("too_long").receive("no_more")
    assert run.ended == "completed"
    assert run.new("element_left")[-2:] == ["element_left withdrawn_end", "element_left withdrawn"]
