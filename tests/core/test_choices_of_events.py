"""Event-based gateways (10.6.6, 13.4.4): that start instances, and with receive tasks behind them."""

from __future__ import annotations

from tests.core.models import catch, first_event, model, par, receive
from tests.core.world import World

BEHIND = {"mail": catch(on="MAIL"), "call": catch(on="CALL")}


def begun(at: str) -> World:
    run = World(model("either -> mail -> a -> end", "either -> call -> b -> end2", either=first_event(begins=True), **BEHIND))
    return run.start(at, "message", said="hello")


def test_the_first_event_behind_a_gateway_starts_an_instance_there() -> None:
    run = begun("call")
    assert run.tasks == ["b"] and run.open == ["b"]
    assert run.new() == [
        "instance_started call", "variables_set call", "element_entered either", "element_left either", "flow_taken either>call",
        "element_entered call", "element_left call", "flow_taken call>b", "element_entered b", "task_created b",
    ]  # fmt: skip
    run.complete("b")
    assert run.ended == "completed"


def test_the_other_event_starts_one_over_its_own_flow() -> None:
    assert begun("mail").tasks == ["a"]


def chosen() -> World:
    nodes = {"yes": receive("YES"), "no": receive("NO"), "late": catch(after="PT1H")}
    return World(
        model("start -> choice -> yes -> a -> end", "choice -> no -> b -> end", "choice -> late -> end2", choice=first_event(), **nodes)
    )


def test_a_receive_task_behind_a_gateway_takes_its_token() -> None:
    run = chosen().start()
    assert run.open == ["late", "no", "yes"]
    run.receive("no", why="dear")
    assert run.open == ["b"] and run.variables == {"why": "dear"}
    assert run.new("element_left", "element_entered") == [
        "element_left choice", "element_entered no", "element_left no", "element_entered b",
    ]  # fmt: skip


def test_a_timer_beside_receive_tasks_withdraws_them() -> None:
    run = chosen().start().fire("late")
    assert run.ended == "completed"


def test_the_first_event_behind_a_parallel_gateway_starts_an_instance_that_waits_for_the_others() -> None:
    flows = ("all -> mail -> a -> join", "all -> call -> b -> join", "join -> end")
    run = World(model(*flows, all=first_event(begins=True, parallel=True), join=par(), **BEHIND), business_key="7").start("call", "message")
    assert run.open == ["b", "mail"]
    assert run.new("flow_taken", "element_entered", "subscription_opened") == [
        "element_entered all", "flow_taken all>call", "element_entered call", "flow_taken all>mail", "element_entered mail",
        "subscription_opened mail", "flow_taken call>b", "element_entered b",
    ]  # fmt: skip
    assert run.leaf("mail").correlation_key == "7"
    run.complete("b").receive("mail").complete("a")
    assert run.ended == "completed"


def test_one_that_could_not_wait_behind_a_parallel_gateway_waits_after_a_retry() -> None:
    flows = ("all -> mail -> a -> join", "all -> call -> b -> join", "join -> end")
    nodes = {"mail": catch(on="MAIL", key="${order}"), "call": catch(on="CALL")}
    run = World(model(*flows, all=first_event(begins=True, parallel=True), join=par(), **nodes)).start("call", "message")
    assert [incident.element_id for incident in run.incidents] == ["mail"]
    run.complete("b", order=7).retry("mail")
    assert run.open == ["mail"] and run.leaf("mail").correlation_key == "7"
