"""The reader's half and the core's half fit: `models/every_element.bpmn`, read as at deployment, run as in a database."""

from pathlib import Path

import pytest

from engine.bpmn.reader import read_files
from engine.core.effects import NewSubscription, NewTask
from tests.core.world import World

MODEL = Path(__file__).parent.parent / "models" / "every_element.bpmn"
ORDER = {"id": 33, "customer": "Ada & Co", "total": 120, "lines": [{"sku": "A-1"}]}


@pytest.fixture
def run() -> World:
    result = read_files([(MODEL.name, MODEL.read_bytes())])
    assert not result.problems
    ((_, definition),) = result.definitions
    return World(definition, business_key="o-33", started_by="ada")


def begun(run: World) -> World:
    return run.start("start", order=ORDER, deputy="bo", deadline="2026-12-24", amount=12.5)


def test_the_first_task_is_as_the_model_describes_it(run: World) -> None:
    task = begun(run).leaf("check", NewTask)
    assert isinstance(task, NewTask)
    assert (task.name, task.assignee, task.about, task.priority) == ("Check order 33", "ada", "Ada & Co, 120 EUR", 70)
    assert (task.candidate_users, task.candidate_groups) == (("ada", "bo"), ("sales",))
    assert task.due_at is not None
    assert task.due_at.date().isoformat() == "2026-12-24"


def test_a_refused_order_terminates_at_once(run: World) -> None:
    begun(run).complete("check", ok=False)
    assert run.ended == "completed"
    assert [each for each in run.new() if "gateway" not in each][-4:] == [
        "flow_taken f6",
        "element_entered stop",
        "element_left stop",
        "instance_completed",
    ]


def test_the_two_branches_run_and_a_message_boundary_ends_them_all(run: World) -> None:
    begun(run).complete("check", ok=True)
    assert run.open == ["halted", "is_paid", "remind", "reserve", "too_late"]
    (job,) = [each for each in run.last.jobs if each.kind == "service"]
    assert (job.topic, job.max_attempts, job.lease_seconds, job.lock_first) == ("stock.reserve", 5, 120, True)
    assert job.payload["inputs"]["both"] == {"type": "json", "value": [33, "fixed"]}
    paid = run.leaf("is_paid", NewSubscription)
    assert isinstance(paid, NewSubscription)
    assert (paid.message_name, paid.correlation_key) == ("PAID", "33")

    run.fire("remind")
    (mail,) = run.last.deliveries
    assert (mail.kind, mail.destination, mail.address) == ("mail", "ada@example.org", "mail:/example.org")
    assert "remind" in run.open

    run.receive("halted")
    assert run.ended == "completed"
    assert run.new("element_left", "instance_completed") == [
        "element_left reserve",
        "element_left pick",
        "element_left halted",
        "element_left payment",
        "element_left stop",
        "instance_completed",
    ]


def test_an_error_is_caught_inside_the_subprocess_which_goes_on(run: World) -> None:
    begun(run).complete("check", ok=True).throw("reserve", "OUT_OF_STOCK", "none left")
    assert run.variables["why"] == "none left"
    assert "element_left pick" in run.new()
    assert run.open == ["is_paid", "too_late"]
    run.fire("too_late")
    assert run.open == ["dun"]
    assert run.last.external_tasks[0].priority == 9
