"""Tasks that are neither user nor service tasks, and intermediate throw events (10.3.3, 10.5.4, 13.3.3, 13.5.2)."""

import pytest

from engine.bpmn.definition import Node
from engine.core.effects import NewSubscription
from tests.core.models import boundary, model, receive, script, send, service, throw
from tests.core.world import World


@pytest.mark.parametrize("kind", ["task", "manual_task", "intermediate_throw_event"])
def test_what_an_engine_cannot_see_is_entered_and_left_at_once(kind: str) -> None:
    run = World(model("start -> x -> a -> end", x=Node("", kind))).start()
    assert run.happened[3:6] == ["flow_taken start>x", "element_entered x", "element_left x"]
    assert run.open == ["a"]


def test_only_the_way_out_of_it_can_fail_and_a_retry_takes_it_again() -> None:
    run = World(
        model("start -> x -> a -> end", "x -> b -> end", x=Node("", "task"), conditions={"x>a": "${left}", "x>b": "${!left}"})
    ).start()
    assert [incident.element_id for incident in run.incidents] == ["x"]
    run.retry("x")
    assert run.new("element_entered") == [], "it was entered already"
    assert [incident.element_id for incident in run.incidents] == ["x"]


# ---- messages out


@pytest.mark.parametrize("node", [send("TOLD", "http://there"), throw(sends="TOLD")])
def test_a_message_thrown_to_a_destination_is_a_delivery_and_the_token_goes_on(node: Node) -> None:
    run = World(model("start -> x -> a -> end", x=node)).start(amount=3)
    (delivery,) = run.last.deliveries
    assert (delivery.kind, delivery.destination, delivery.element_id) == ("http", "http://there", "x")
    assert delivery.request["headers"] == {"X-Message-Name": "TOLD"}
    assert delivery.request["body"] == {"amount": 3}
    assert run.open == ["a"]


def test_a_message_without_a_destination_is_an_incident_and_no_delivery() -> None:
    run = World(model("start -> x -> a -> end", x=send("TOLD", "${where}"))).start(where="")
    assert (run.last.deliveries, run.incidents[0].element_id) == ([], "x")


def test_a_bound_send_task_waits_for_its_handler() -> None:
    bound = Node("", "send_task", config=service("mailer").config)
    run = World(model("start -> x -> a -> end", x=bound)).start()
    assert [job.topic for job in run.last.jobs] == ["mailer"]
    assert run.complete("x").open == ["a"]


def test_a_business_rule_task_is_done_by_its_handler() -> None:
    rule = Node("", "business_rule_task", config=service("rules.find", outputs={"rule": "${found}"}).config)
    run = World(model("start -> x -> a -> end", x=rule)).start()
    assert run.complete("x", found="R7").variables == {"rule": "R7"}


# ---- messages in


def test_a_receive_task_waits_for_its_message_and_keeps_what_came_with_it() -> None:
    run = World(model("start -> x -> a -> end", x=receive("ANSWER", "${ticket}"))).start(ticket=7)
    waiting = run.leaf("x", NewSubscription)
    assert isinstance(waiting, NewSubscription)
    assert (waiting.message_name, waiting.correlation_key) == ("ANSWER", "7")
    run.receive("x", answer="yes")
    assert run.new() == [
        "message_correlated x",
        "variables_set x",
        "element_left x",
        "flow_taken x>a",
        "element_entered a",
        "task_created a",
    ]
    assert run.variables["answer"] == "yes"


def test_a_receive_task_has_boundary_events_as_every_activity() -> None:
    waiting = model(
        "start -> x -> a -> end", "late -> b -> end", "nag -> c -> end",
        x=receive("ANSWER"), late=boundary("x", after="PT1H"), nag=boundary("x", on="HURRY", interrupting=False),
    )  # fmt: skip
    late = World(waiting).start()
    assert late.open == ["late", "nag", "x"]
    late.receive("nag")
    assert late.open == ["c", "late", "nag", "x"]
    assert late.fire("late").open == ["b", "c"]
    assert World(waiting).start().receive("x").open == ["a"]


def test_a_receive_task_without_a_key_is_an_incident_that_a_retry_can_mend() -> None:
    run = World(model("start -> x -> a -> end", x=receive("ANSWER", "${ticket}"))).start(ticket="")
    assert run.incidents[0].element_id == "x"
    assert "correlation key" in run.incidents[0].message


def test_a_receive_task_that_instantiates_has_received_when_it_is_entered() -> None:
    run = World(model("x -> a -> end", x=receive("ASKED", instantiate=True))).start("x", "message", about="rain")
    assert run.new() == [
        "instance_started x",
        "variables_set x",
        "element_entered x",
        "element_left x",
        "flow_taken x>a",
        "element_entered a",
        "task_created a",
    ]


# ---- scripts


def test_a_script_is_an_expression_whose_value_becomes_a_variable() -> None:
    run = World(model("start -> x -> a -> end", x=script("${amount * factor}", "amount", {"factor": "${2}"}))).start(amount=3)
    assert run.variables == {"amount": 6}, "the input is seen by the script alone"
    assert run.open == ["a"]


def test_a_script_writes_where_the_name_is_nearest() -> None:
    inside = model(
        "start -> sub -> end", "s -> x -> a -> e",
        x=script("${n + 1}", "n"), s=Node("", "start_event"), e=Node("", "end_event"), inside={"sub": "s x a e"},
    )  # fmt: skip
    run = World(inside).start(n=1)
    assert run.variables == {"n": 2}


def test_a_script_that_fails_is_an_incident_and_no_variable() -> None:
    run = World(model("start -> x -> a -> end", x=script("${gone + 1}", "n"))).start()
    assert (run.incidents[0].element_id, run.incidents[0].kind, run.variables) == ("x", "expression", {})


def test_a_bound_script_task_waits_for_its_handler() -> None:
    run = World(model("start -> x -> a -> end", x=Node("", "script_task", config=service("python.run").config))).start()
    assert [job.topic for job in run.last.jobs] == ["python.run"]
