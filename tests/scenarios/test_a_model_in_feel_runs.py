"""The reader, FEEL and the core fit for `models/orders_in_feel.bpmn`: scripts, conditions, loops, timers, messages."""

from decimal import Decimal
from typing import Any

from engine.core.effects import NewJob, NewSubscription
from tests.bpmn.models import definition, model
from tests.core.world import World

LINES = [{"sku": "a", "n": 2, "price": 40}, {"sku": "b", "n": 1, "price": 0.5}, {"sku": "c", "n": 1, "price": 20}]


def begun(**variables: Any) -> World:
    order = {"id": 7, "customer": "Cy", "lines": LINES}
    given = {"order": order, "rate": Decimal("0.2"), "limit": 100, "region": "EU", "reviewer": "ada", **variables}
    return World(definition(model("orders_in_feel"))).start("start", **given)


def test_S32_numbers_keep_their_kind_in_feel() -> None:
    run = begun()
    assert run.variables["totals"] == {"net": Decimal("100.5"), "gross": Decimal("120.6")}
    assert run.variables["label"] == "Order 7, large"
    whole = begun(order={"id": 8, "customer": "Cy", "lines": [{"sku": "a", "n": 2, "price": 30}]})
    assert whole.variables["totals"]["net"] == 60
    assert type(whole.variables["totals"]["net"]) is int


def test_the_items_that_a_filter_finds_are_checked_and_their_results_collected() -> None:
    run = begun()
    assert run.open == ["check", "check", "late"]
    assert {task.assignee for task in run.last.tasks} == {"ada"}
    run.complete("check", ok=True).complete("check", ok=True)
    assert run.variables["checked"] == [{"sku": "a", "ok": True}, {"sku": "c", "ok": True}]
    assert run.open == ["paid"]


def test_the_loop_ends_when_its_condition_in_feel_holds() -> None:
    assert begun().complete("check", ok=False).open == ["paid"]


def test_a_duration_that_feel_calculates_is_the_timers() -> None:
    run = begun()
    job = run.leaf("late", NewJob)
    assert isinstance(job, NewJob)
    assert job.due_in_seconds == 3 * 3600
    assert run.fire("late").ended == "completed"


def test_a_message_has_the_name_and_the_key_that_feel_makes() -> None:
    run = begun(limit=1000)
    waiting = run.leaf("paid", NewSubscription)
    assert isinstance(waiting, NewSubscription)
    assert (waiting.message_name, waiting.correlation_key) == ("PAID-EU", "7")


def test_a_key_that_is_missing_in_a_condition_is_an_incident_that_names_it_and_not_the_default_flow() -> None:
    run = begun(order={"id": 7, "lines": LINES})
    (incident,) = run.last.incidents
    assert "'customer'" in incident.message
    assert run.open == ["large"]
    assert run.ended is None
