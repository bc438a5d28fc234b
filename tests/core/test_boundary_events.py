"""Boundary events on timers and messages, interrupting and not (13.5.3)."""

from datetime import timedelta

from engine.core.effects import NewJob, NewSubscription
from tests.core.models import boundary, end, model, service, start
from tests.core.world import NOW, World


def test_an_interrupting_timer_cancels_the_task_and_every_other_leaf() -> None:
    run = World(
        model(
            "start -> u -> end",
            "late -> v -> end2",
            late=boundary("u", after="PT1H"),
            halt=boundary("u", on="HALT"),
            nag=boundary("u", after="R/PT5M", interrupting=False),
        )
    ).start()
    assert run.open == ["halt", "late", "nag", "u"]
    (before,) = run.tokens
    run.fire("late")
    assert run.open == ["v"]
    assert run.last.gone_tokens == [before], "a fresh token, so that the cascade takes the leaves"
    assert len(run.last.cancelled_tasks) == 1
    assert run.new() == [
        "timer_fired late",
        "task_cancelled u",
        "element_left u",
        "element_entered late",
        "element_left late",
        "flow_taken late>v",
        "element_entered v",
        "task_created v",
    ]
    assert run.complete("v").ended == "completed"


def test_an_interrupting_event_on_a_task_needs_to_know_the_task() -> None:
    run = World(model("start -> u -> end", "late -> end2", late=boundary("u", after="PT1H"))).start().fire("late")
    assert run.asked_whole == 1


def test_an_interrupting_message_cancels_a_service_job_by_cascade_on_a_narrow_snapshot() -> None:
    run = World(model("start -> s -> end", "halt -> v -> end2", s=service(), halt=boundary("s", on="HALT")), business_key="k-1").start()
    subscription = run.leaf("halt", NewSubscription)
    assert isinstance(subscription, NewSubscription)
    assert subscription.correlation_key == "k-1"
    run.receive("halt", why="stop")
    assert run.open == ["v"]
    assert run.variables == {"why": "stop"}
    assert run.asked_whole == 0


def test_completing_the_activity_withdraws_its_boundary_events() -> None:
    run = World(model("start -> u -> v -> end", "late -> end2", late=boundary("u", after="PT1H"))).start()
    (before,) = run.tokens
    run.complete("u")
    assert run.open == ["v"]
    assert run.last.gone_tokens == [before]
    assert not run.last.moved_tokens
    assert not run.last.cancelled_tasks


def test_without_other_leaves_the_token_keeps_its_row() -> None:
    run = World(model("start -> u -> v -> end")).start()
    (before,) = run.tokens
    run.complete("u")
    assert [moved.id for moved in run.last.moved_tokens] == [before]
    assert not run.last.gone_tokens


def test_an_error_boundary_alone_is_no_leaf() -> None:
    run = World(model("start -> s -> v -> end", "oops -> end2", s=service(), oops=boundary("s", error="E"))).start()
    assert run.open == ["s"]
    run.complete("s")
    assert len(run.last.moved_tokens) == 1


def test_a_timer_that_does_not_interrupt_spawns_a_second_token_and_leaves_the_task_alone() -> None:
    run = World(model("start -> u -> end", "nag -> n -> end2", nag=boundary("u", after="PT1H", interrupting=False))).start()
    (task,) = run.last.tasks
    run.fire("nag")
    assert run.open == ["n", "u"]
    assert run.leaf("u").id == task.id
    assert not (run.last.gone_tokens or run.last.moved_tokens or run.last.cancelled_tasks)
    assert run.asked_whole == 0
    run.complete("u")
    assert run.ended is None, "the spawned token is still there"
    assert run.complete("n").ended == "completed"


def test_a_cycle_that_does_not_interrupt_comes_back_until_its_repetitions_are_used_up() -> None:
    run = World(model("start -> u -> end", "nag -> n -> end2", nag=boundary("u", after="R3/PT10M", interrupting=False))).start()
    for number in (1, 2, 3):
        assert run.open == ["n"] * (number - 1) + ["nag", "u"]
        run.now += timedelta(minutes=10)
        run.fire("nag")
    assert run.open == ["n", "n", "n", "u"]
    assert run.happened.count("timer_fired nag") == 3


def test_a_cycle_keeps_its_grid_when_it_is_served_late() -> None:
    run = World(model("start -> u -> end", "nag -> n -> end2", nag=boundary("u", after="R/PT10M", interrupting=False))).start()
    timer = run.leaf("nag", NewJob)
    assert isinstance(timer, NewJob)
    timer.due_at = NOW + timedelta(minutes=10)
    run.now = NOW + timedelta(minutes=65)
    run.fire("nag")
    (following,) = run.last.jobs
    assert following.due_at == NOW + timedelta(minutes=70), "one catch-up, then the next one on the grid"
    assert following.token_id == timer.token_id


def test_a_message_that_does_not_interrupt_may_come_again() -> None:
    run = World(model("start -> u -> end", "note -> n -> end2", note=boundary("u", on="NOTE", interrupting=False))).start()
    first = run.leaf("note", NewSubscription)
    run.receive("note").receive("note")
    assert run.open == ["n", "n", "note", "u"]
    assert run.leaf("note", NewSubscription).id != first.id
    run.complete("u").complete("n").complete("n")
    assert run.ended == "completed"


def test_an_interrupting_timer_on_a_subprocess_cancels_everything_inside() -> None:
    nested = model(
        "start -> sub -> end",
        "late -> v -> end2",
        "s -> par -> a -> par_join -> e",
        "par -> b -> par_join",
        "par -> c -> par_join",
        s=start(),
        c=service(),
        e=end(),
        late=boundary("sub", after="P1D"),
        late_a=boundary("a", after="PT1H"),
        inside={"sub": "s par a b c par_join e late_a"},
    )
    run = World(nested).start()
    run.complete("b")
    assert run.open == ["a", "c", "late", "late_a"]
    run.fire("late")
    assert run.open == ["v"]
    assert run.asked_whole == 1
    assert run.new("task_cancelled", "element_left") == [
        "task_cancelled a",
        "element_left a",
        "element_left c",
        "element_left sub",
        "element_left late",
    ]
    assert run.complete("v").ended == "completed"


def test_a_timer_on_a_subprocess_that_does_not_interrupt_lets_it_run() -> None:
    nested = model(
        "start -> sub -> end",
        "nag -> n -> end2",
        "s -> a -> e",
        s=start(),
        e=end(),
        nag=boundary("sub", after="PT1H", interrupting=False),
        inside={"sub": "s a e"},
    )
    run = World(nested).start().fire("nag")
    assert run.open == ["a", "n"]
    assert run.asked_whole == 0
    run.complete("a").complete("n")
    assert run.ended == "completed"


def test_a_boundary_event_whose_timer_cannot_be_read_leaves_an_incident_and_no_task() -> None:
    run = World(model("start -> u -> end", "late -> end2", late=boundary("u", after="P${days}D"))).start(days="x")
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("u", "expression")
    assert run.open == ["u"]
    assert run.new("task_created", "job_created") == [], "what could not be finished leaves no row and no event"


def test_a_boundary_message_whose_key_is_gone_rests_the_second_token_at_an_incident() -> None:
    note = boundary("u", on="${name}", interrupting=False)
    run = World(model("start -> u -> end", "note -> n -> end2", note=note)).start(name="NOTE")
    run.receive("note", name="")
    (incident,) = run.incidents
    assert incident.element_id == "note"
    assert run.open == ["note", "u"]
    run.retry("note")
    assert run.open == ["n", "u"], "a retry leaves the event"
