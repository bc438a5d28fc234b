"""What user tasks, service tasks and message ends write (10.3.3.1, 10.3.4.1, 10.5.3)."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.core.effects import NewTask
from engine.expressions import parse
from tests.core.models import boundary, message_end, model, service, user
from tests.core.world import NOW, World


def opened(variables: dict[str, object], **config: str | tuple[str, ...]) -> NewTask:
    parsed = {name: tuple(map(parse, text)) if isinstance(text, tuple) else parse(text) for name, text in config.items()}
    run = World(model("start -> a -> end", a=user("Approve", **parsed))).start(**variables)
    assert not run.incidents, run.incidents[0].message
    (task,) = run.last.tasks
    return task


def test_a_task_without_any_attribute_has_the_elements_name_and_the_normal_priority() -> None:
    task = opened({})
    assert (task.name, task.assignee, task.candidate_users, task.candidate_groups) == ("Approve", None, (), ())
    assert (task.priority, task.due_at, task.follow_up_at, task.about) == (50, None, None, "")


def test_everything_about_a_task_may_be_an_expression() -> None:
    task = opened(
        {"who": "ada", "order": {"number": 33.0, "parts": ["a", "b"]}, "day": "2026-12-01"},
        assignee="${who}",
        candidate_users=("bo", "${who}"),
        candidate_groups=("clerks, managers", "${order.parts}"),
        name="Check ${order.number}",
        about="order ${order.number}",
        priority="${50 + 10}",
        due="${day}",
        follow_up="PT2H",
    )
    assert task.assignee == "ada"
    assert task.candidate_users == ("bo", "ada")
    assert task.candidate_groups == ("clerks", "managers", "a", "b")
    assert (task.name, task.about, task.priority) == ("Check 33", "order 33", 60)
    assert task.due_at == datetime(2026, 12, 1, 23, 59, 59, tzinfo=UTC)
    assert task.follow_up_at == NOW + timedelta(hours=2)


def test_dates_of_a_task_without_a_zone_are_in_the_tasks_own() -> None:
    berlin = user(due=parse("2026-12-01"), follow_up=parse("2026-12-24T18:00"), zone="Europe/Berlin")
    (task,) = World(model("start -> a -> end", a=berlin)).start().last.tasks
    assert task.due_at == datetime(2026, 12, 1, 22, 59, 59, tzinfo=UTC)
    assert task.follow_up_at == datetime(2026, 12, 24, 17, tzinfo=UTC)


def test_null_and_empty_mean_nobody_and_no_date() -> None:
    task = opened({"nobody": None, "blank": ""}, assignee="${nobody}", candidate_users=("${blank}",), due="${nobody}", priority="${nobody}")
    assert (task.assignee, task.candidate_users, task.due_at, task.priority) == (None, (), None, 50)


@pytest.mark.parametrize(("given", "kept"), [("7", 7), ("-3", 0), ("500", 100), ("${7.0}", 7)])
def test_a_priority_is_a_whole_number_from_0_to_100(given: str, kept: int) -> None:
    assert opened({}, priority=given).priority == kept


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"assignee": parse("${missing}")}, "missing"),
        ({"assignee": parse("${pair}")}, "expected an assignee, found 2"),
        ({"candidate_groups": (parse("${yes}"),)}, "expected candidate groups"),
        ({"due": parse("soon")}, "expected a date"),
        ({"due": parse("${yes}")}, "expected a date"),
        ({"priority": parse("high")}, "expected a priority"),
        ({"priority": parse("${yes}")}, "expected a priority"),
        ({"priority": parse("${1.5}")}, "expected a priority"),
        ({"name": parse("Check ${missing}")}, "missing"),
    ],
)
def test_what_has_no_value_is_an_incident_and_no_task(config: dict[str, object], said: str) -> None:
    run = World(model("start -> a -> end", a=user("A", **config), late=boundary("a", after="PT1H"))).start(pair=["x", "y"], yes=True)
    (incident,) = run.incidents
    assert said in incident.message
    assert run.open == ["a"]
    assert run.last.jobs == []


def test_a_handlers_job_carries_its_inputs_with_their_types() -> None:
    inputs = {"sum": "${a + b}", "again": "${sum * 2}", "when": "2026", "half": "${a / 2}"}
    run = World(
        model(
            "start -> s -> end", s=service("score", inputs=inputs, retry="R5/PT1M", max_attempts=5, priority=parse("20"), lease_seconds=90)
        )
    ).start(a=1, b=2)
    (job,) = run.last.jobs
    assert (job.kind, job.topic, job.due_at, job.due_in_seconds) == ("service", "score", None, None)
    assert (job.priority, job.max_attempts, job.retry, job.lease_seconds) == (9, 5, "R5/PT1M", 90)
    assert job.payload == {
        "inputs": {
            "sum": {"type": "integer", "value": 3},
            "again": {"type": "integer", "value": 6},
            "when": {"type": "string", "value": "2026"},
            "half": {"type": "double", "value": 0.5},
        }
    }
    assert run.variables == {"a": 1, "b": 2}, "inputs are not variables"


def test_an_external_task_waits_for_its_topic() -> None:
    run = World(model("start -> s -> end", s=service("ship", work="external", inputs={"n": "${n}"}))).start(n=1)
    (task,) = run.last.external_tasks
    assert (task.topic, task.priority, task.payload) == ("ship", 5, {"inputs": {"n": {"type": "integer", "value": 1}}})
    assert run.new("external_task_created") == ["external_task_created s"]
    assert run.complete("s", done=True).final == {"n": 1, "done": True}


def test_a_delivery_is_written_and_the_token_goes_on_at_once() -> None:
    inputs = {"url": "http://shop/${id}", "method": "put", "headers": "${headers}", "body": "${order}"}
    late = boundary("s", after="PT1H")
    run = World(model("start -> s -> a -> end", s=service("http.deliver", work="deliver", inputs=inputs, max_attempts=8), late=late))
    run.start(id=7, order={"n": 1.5}, headers={"X-A": 1})
    (delivery,) = run.last.deliveries
    assert (delivery.kind, delivery.destination, delivery.address) == ("http", "http://shop/7", "http://shop/7")
    assert delivery.max_attempts is None, "as its destination says, or 8"
    assert delivery.request == {"method": "PUT", "url": "http://shop/7", "headers": {"X-A": "1"}, "body": {"n": 1.5}}
    assert run.open == ["a"]
    assert run.new("element_entered", "delivery_created", "element_left")[2:5] == [
        "element_entered s",
        "delivery_created s",
        "element_left s",
    ]


def test_a_mail_has_a_receiver_a_subject_and_a_text() -> None:
    inputs = {"to": "${who}", "subject": "Order ${id}", "text": "Dear ${who}"}
    run = World(model("start -> s -> end", s=service("mail.send", work="deliver", inputs=inputs))).start(who="ada@example.org", id=7)
    (delivery,) = run.deliveries
    assert (delivery.kind, delivery.destination) == ("mail", "ada@example.org")
    assert delivery.request == {"to": "ada@example.org", "subject": "Order 7", "text": "Dear ada@example.org"}
    assert run.ended == "completed"


def test_a_delivery_to_nowhere_is_an_incident_and_no_delivery() -> None:
    run = World(model("start -> s -> end", s=service("http.deliver", work="deliver", inputs={"url": "${url}"}))).start(url="")
    (incident,) = run.incidents
    assert "input url" in incident.message
    assert run.deliveries == []


def test_a_message_end_puts_the_variables_into_the_outbox() -> None:
    run = World(model("start -> told", told=message_end("ORDERED", "${shop}/events"))).start(shop="http://shop", n=1)
    (delivery,) = run.last.deliveries
    assert delivery.destination == "http://shop/events"
    assert delivery.request == {
        "method": "POST",
        "url": "http://shop/events",
        "headers": {"X-Message-Name": "ORDERED"},
        "body": {"shop": "http://shop", "n": 1},
    }
    assert run.ended == "completed"


def test_a_message_end_may_say_what_it_sends() -> None:
    run = World(model("start -> told", told=message_end("ORDERED", "http://shop", "${order.lines}"))).start(order={"lines": [1, 2]})
    assert run.deliveries[0].request["body"] == [1, 2]
