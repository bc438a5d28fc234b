"""Catch events: when their timers are due, which messages they wait for (10.5.4, 10.5.5, 13.5.2)."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from engine.bpmn.definition import CatchConfig, Node, TimerConfig
from engine.core.effects import InvariantBroken, NewJob, NewSubscription
from engine.core.snapshot import EventOccurred
from engine.expressions import parse
from tests.core.models import boundary, catch, first_event, model, user
from tests.core.world import NOW, World


def waiting(text: str, **variables: object) -> NewJob:
    run = World(model("start -> wait -> end", wait=catch(after=text))).start(**variables)
    assert not run.incidents, run.incidents[0].message
    (job,) = run.last.jobs
    return job


def timer_at(kind: str, text: str, zone: str = "UTC") -> Node:
    return Node("", "intermediate_catch_event", config=CatchConfig(timer=TimerConfig(kind, parse(text), zone)))


def test_a_duration_is_left_to_the_databases_clock() -> None:
    job = waiting("PT1H30M")
    assert (job.kind, job.due_at, job.due_in_seconds, job.payload) == ("timer", None, 5400.0, {})


def test_months_are_those_of_the_calendar_from_now_on() -> None:
    assert datetime(2026, 11, 29, 12, tzinfo=UTC) == NOW
    job = waiting("P1M")
    assert (job.due_at, job.due_in_seconds) == (NOW + timedelta(days=30), None)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (datetime(2026, 3, 28, 9, tzinfo=UTC), datetime(2026, 3, 29, 8, tzinfo=UTC)),  # 23 hours: the clocks go forward
        (datetime(2026, 10, 24, 8, tzinfo=UTC), datetime(2026, 10, 25, 9, tzinfo=UTC)),  # 25 hours: they go back
    ],
)
def test_a_day_of_a_timer_with_a_zone_ends_at_the_same_time_of_day_there(now: datetime, due: datetime) -> None:
    run = World(model("start -> wait -> end", wait=timer_at("duration", "P1D", "Europe/Berlin")))
    run.now = now
    run.start()
    assert (run.last.jobs[0].due_at, run.last.jobs[0].due_in_seconds) == (due, None)


@pytest.mark.parametrize(
    "value", ["2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z", datetime(2026, 12, 24, 17, tzinfo=UTC), "2026-12-24T17:00:00"]
)
def test_a_date_is_an_instant(value: object) -> None:
    job = waiting("${when}", when=value)
    assert (job.due_at, job.due_in_seconds) == (datetime(2026, 12, 24, 17, tzinfo=UTC), None)


def test_a_date_that_is_past_stays_as_it_is_and_so_is_due_at_once() -> None:
    assert waiting("2020-01-01T00:00:00Z").due_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_date_without_a_zone_is_in_the_timers_own() -> None:
    run = World(model("start -> wait -> end", wait=timer_at("date", "${day}", "Europe/Berlin"))).start(day=date(2026, 12, 24))
    assert run.last.jobs[0].due_at == datetime(2026, 12, 23, 23, tzinfo=UTC)


def test_a_timer_that_fires_is_followed_by_what_comes_after_it() -> None:
    run = World(model("start -> wait -> a -> end", wait=catch(after="PT1H"))).start().fire("wait")
    assert run.new() == ["timer_fired wait", "element_left wait", "flow_taken wait>a", "element_entered a", "task_created a"]
    assert run.complete("a").ended == "completed"


@pytest.mark.parametrize("text", ["soon", "${nothing}", "P1X", "${number}"])
def test_a_timer_that_cannot_be_read_is_an_incident(text: str) -> None:
    wait = timer_at("duration", text)
    run = World(model("start -> wait -> end", wait=wait)).start(nothing=None, number=5)
    (incident,) = run.incidents
    assert (incident.kind, incident.element_id) == ("expression", "wait")
    assert run.last.jobs == []


def test_a_cycle_carries_what_its_next_occurrence_needs() -> None:
    nag = boundary("u", after="R3/PT10M", interrupting=False)
    run = World(model("start -> u -> end", "nag -> n -> end2", nag=nag)).start()
    job = run.leaf("nag", NewJob)
    assert isinstance(job, NewJob)
    assert job.due_at == NOW + timedelta(minutes=10)
    assert job.payload == {"schedule": str(job.id), "cycle": "R3/PT10M", "anchor": NOW.isoformat(), "number": 1}


def test_a_cycle_given_by_a_variable_goes_on_as_it_began() -> None:
    nag = boundary("u", after="R/PT1M", interrupting=False)
    nag = replace(nag, config=replace(nag.config, timer=TimerConfig("cycle", parse("${every}"))))
    run = World(model("start -> u -> end", "nag -> n -> end2", nag=nag)).start(every="R/PT10M")
    run.now = NOW + timedelta(minutes=11)
    run.fire("nag")
    assert run.last.jobs[0].due_at == NOW + timedelta(minutes=20)
    assert run.last.jobs[0].payload["cycle"] == "R/PT10M"


def test_a_boundary_cycle_that_is_over_never_occurs_and_a_catch_event_says_so() -> None:
    over = "R2/2020-01-01T00:00:00Z/PT1H"
    run = World(model("start -> u -> end", "nag -> end2", nag=boundary("u", after=over, interrupting=False))).start()
    assert run.open == ["u"]
    (incident,) = World(model("start -> wait -> end", wait=catch(after=over))).start().incidents
    assert "over" in incident.message


def test_cron_is_a_cycle_too() -> None:
    run = World(model("start -> wait -> end", wait=timer_at("cycle", "0 0 9 ? * MON-FRI", "Europe/Berlin"))).start()
    assert run.last.jobs[0].due_at == datetime(2026, 11, 30, 8, tzinfo=UTC)


def test_a_message_waits_under_its_name_and_key() -> None:
    run = World(model("start -> wait -> a -> end", wait=catch(on="${kind}_PAID", key="${order.id}"))).start(kind="X", order={"id": 33.0})
    subscription = run.leaf("wait", NewSubscription)
    assert isinstance(subscription, NewSubscription)
    assert (subscription.message_name, subscription.correlation_key) == ("X_PAID", "33")
    assert run.new("subscription_opened") == ["subscription_opened wait"]
    run.receive("wait", amount=5)
    assert run.new("message_correlated", "variables_set") == ["message_correlated wait", "variables_set wait"]
    assert run.variables["amount"] == 5


def test_without_a_key_the_business_key_is_the_key() -> None:
    for business_key, key in (("k-1", "k-1"), (None, "")):
        run = World(model("start -> wait -> end", wait=catch(on="PAID")), business_key=business_key).start()
        assert run.last.subscriptions[0].correlation_key == key


@pytest.mark.parametrize("key", ["${none}", "${blank}", "${missing}"])
def test_a_key_without_a_value_is_an_incident(key: str) -> None:
    run = World(model("start -> wait -> end", wait=catch(on="PAID", key=key))).start(none=None, blank="")
    assert [incident.element_id for incident in run.incidents] == ["wait"]
    assert run.last.subscriptions == []


def test_an_event_gateway_whose_second_event_cannot_wait_waits_for_none() -> None:
    run = World(
        model(
            "start -> which -> a -> end", "which -> b -> end", which=first_event(), a=catch(after="PT1H"), b=catch(on="X", key="${missing}")
        )
    ).start()
    assert run.open == ["which"]
    assert run.new("job_created", "subscription_opened") == []
    (incident,) = run.incidents
    assert incident.element_id == "which"


def test_expressions_may_name_the_time_the_business_key_and_the_initiator() -> None:
    told = model("start -> a -> end", a=user("A", name=parse("${businessKey} ${initiator} ${now}")))
    run = World(told, business_key="k-1", started_by="ada").start()
    assert run.last.tasks[0].name == f"k-1 ada {NOW.isoformat()}"
    run = World(told, business_key="k-1", started_by="ada").start(now="later", businessKey="mine")
    assert run.last.tasks[0].name == "mine ada later", "a variable hides them"


def test_R11_the_time_of_an_expression_is_that_of_the_engines_command_and_no_variable_hides_it() -> None:
    about = "${now()} ${execution.processBusinessKey} ${execution.processDefinitionKey} ${execution.getVariable('gone') == null}"
    told = model("start -> a -> end", a=user("A", name=parse(about), due=parse("${dateTime().plusDays(2).toDate()}")))
    run = World(told, business_key="k-1").start(now="later", businessKey="mine", execution="hidden")
    assert run.last.tasks[0].name == f"{NOW.isoformat()} k-1 {told.key} true"
    assert run.last.tasks[0].due_at == NOW + timedelta(days=2)


def test_a_condition_that_asks_whether_a_variable_is_there_is_looked_at_when_it_comes() -> None:
    told = model("start -> par -> wait -> there -> end", "par -> a -> end2", wait=catch(when="${execution.hasVariable('total')}"))
    run = World(told).start()
    assert run.tasks == ["a"]
    assert run.complete("a", total=1).tasks == ["there"]


def test_an_event_for_a_token_that_is_elsewhere_is_a_bug() -> None:
    late = boundary("u", after="PT1H")
    run = World(model("start -> par -> u -> end", "par -> v -> end", "late -> end", late=late)).start()
    at_v = next(token.id for token in run.tokens.values() if token.element_id == "v")
    with pytest.raises(InvariantBroken, match="expected it at u for late, found it at v"):
        run.happen(EventOccurred(at_v, "late", "timer"))
    with pytest.raises(InvariantBroken, match="expected token"):
        run.happen(EventOccurred(UUID(int=9999), "late", "timer"))


def test_a_cycle_with_a_count_sends_a_token_at_each_occurrence() -> None:
    run = World(model("start -> wait -> a -> end", wait=catch(after="R3/PT1S"))).start()
    assert run.fire("wait").open == ["a", "wait"]
    assert run.fire("wait").open == ["a", "a", "wait"]
    assert run.fire("wait").open == ["a", "a", "a"]
    assert run.complete("a").complete("a").complete("a").ended == "completed"
    assert run.happened.count("element_entered wait") == run.happened.count("element_left wait") == 3


def test_a_cycle_without_a_count_occurs_once_and_so_does_one_behind_a_gateway() -> None:
    assert World(model("start -> wait -> a -> end", wait=catch(after="R/PT1S"))).start().fire("wait").open == ["a"]
    chosen = model("start -> g -> wait -> a -> end", "g -> paid -> end1", g=first_event(), wait=catch(after="R3/PT1S"), paid=catch(on="P"))
    assert World(chosen).start().fire("wait").open == ["a"]
