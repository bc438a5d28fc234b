"""Signals to everybody who waits, and messages between our own processes, from files, through commands and a worker's steps."""

from __future__ import annotations

from tests import rows
from tests.scenarios_db.stage import Stage, done

ALARM = "an_alarm_for_everybody"


def test_a_signal_reaches_every_case_that_waits_and_starts_what_starts_by_it(stage: Stage) -> None:
    detector = stage.begin(ALARM, building="A", floor=3)
    parties, guard = [stage.start("party", building="A"), stage.start("party", building="B")], stage.start("guard")
    detector.complete("detect")
    assert detector.tasks == ["check"] and [party.tasks for party in parties] == [["dance"], ["dance"]], "others have it by jobs"

    assert done(stage.work())
    assert [party.tasks for party in parties] == [["leave"], ["leave"]]
    assert guard.open == ["call"]
    (evacuation,) = stage.runs("evacuation")
    assert evacuation.variables == {"floor": 3}
    assert evacuation.told("instance_started", "signal_caught") == ["signal_caught on_alarm", "instance_started on_alarm"]
    assert parties[0].variables == {"building": "A", "floor": 3}

    detector.complete("check")
    assert detector.status == "completed" and detector.leftovers == 0
    assert done(stage.work())
    assert [party.tasks for party in parties] == [["come_back", "leave"], ["leave"]], "the name is an expression"
    assert rows.one(stage.conn, "SELECT count(*) FROM job WHERE kind IN ('throw', 'signal')") == 0


def test_who_begins_to_wait_after_the_throw_has_nothing_of_it_and_who_waited_before_has_it_once(stage: Stage) -> None:
    stage.deploy(ALARM)
    early = stage.start("party", building="A")
    stage.signal("ALARM")
    late = stage.start("party", building="A")
    assert done(stage.work())
    assert (early.tasks, late.tasks) == (["leave"], ["dance"])
    assert stage.work() == []


def test_a_signal_for_nobody_is_nothing(stage: Stage) -> None:
    stage.signal("ALARM")
    assert done(stage.work())
    stage.deploy(ALARM)
    assert stage.work() == [] and stage.runs("evacuation") == []


def test_a_version_that_replaces_another_before_the_job_runs_does_not_take_the_signal_from_it(stage: Stage) -> None:
    stage.deploy(ALARM)
    stage.signal("ALARM")
    stage.deploy("s17_on_new_alarm")
    assert done(stage.work())
    (one,) = stage.runs("evacuation")
    assert rows.one(stage.conn, "SELECT d.version FROM process_instance i JOIN process_definition d ON d.id = i.definition_id") == 1
    stage.signal("ALARM")
    assert done(stage.work())
    assert [run.id for run in stage.runs("evacuation")] == [one.id], "the newest version starts by another signal"


def test_a_message_between_processes_starts_one_and_comes_back_to_the_other(stage: Stage) -> None:
    customers = [stage.begin("a_customer_and_a_shop", number=1), stage.start("a_customer_and_a_shop", number=2)]
    assert [customer.open for customer in customers] == [["arrival"], ["arrival"]]
    assert done(stage.work())
    shops = stage.runs("shop")
    assert sorted(shop.variables["number"] for shop in shops) == [1, 2] and len(shops) == 2

    second = next(shop for shop in shops if shop.variables["number"] == 2)
    second.complete("pack", parcel={"weight": 5})
    assert second.status == "completed", "the message outlives the case that threw it"
    assert done(stage.work())
    assert [customer.status for customer in customers] == ["running", "completed"]
    assert customers[1].variables == {"number": 2, "weight": 5}
    assert customers[1].leftovers == 0


def test_a_thrown_message_that_nobody_waits_for_is_kept_for_its_time_to_live_or_dropped(stage: Stage) -> None:
    stage.deploy("a_customer_and_a_shop")
    assert stage.publish("ORDER", number=7)
    (shop,) = stage.runs("shop")
    shop.complete("pack", parcel={})
    assert done(stage.work())
    assert rows.one(stage.conn, "SELECT correlation_key FROM message WHERE name = 'SHIPPED'") == "7"
    customer = stage.start("a_customer_and_a_shop", number=7)
    assert done(stage.work())
    assert customer.status == "completed", "the message was there first"
    assert rows.one(stage.conn, "SELECT count(*) FROM message") == 0, "THANKS has no time to live"
    dropped = "SELECT data->>'outcome' FROM history WHERE kind = 'job_completed' AND data->>'message' = 'THANKS'"
    assert rows.one(stage.conn, dropped).startswith("dropped")


def test_a_signal_reaches_the_caller_in_the_step_that_throws_it_and_the_called_by_a_job(stage: Stage) -> None:
    caller = stage.begin("a_signal_through_a_call")
    other = stage.start("a_signal_through_a_call")
    (called, others) = stage.runs("called_by_it")
    caller.complete("allow")
    assert called.open == ["allowed"]
    assert done(stage.work())
    assert called.tasks == others.tasks == ["work"]
    called.complete("work")
    assert (called.status, caller.tasks) == ("cancelled", ["clean_up"]), "the caller's border cancels whoever threw"
    assert called.told("signal_caught") == ["signal_caught allowed"] and caller.told("signal_caught") == ["signal_caught stopped"]
    caller.complete("clean_up")
    assert (caller.status, caller.leftovers, called.leftovers) == ("completed", 0, 0)
    assert done(stage.work())
    assert others.status == "cancelled" and other.tasks == ["allow", "clean_up"], "another case has it by its job"


def test_a_signal_start_may_call_and_be_answered(stage: Stage) -> None:
    stage.begin("a_signal_through_a_call")
    (called,) = stage.runs("called_by_it")
    stage.signal("GO")
    assert done(stage.work())
    assert called.tasks == ["work"]
    stage.signal("STOP")
    assert done(stage.work())
    assert called.status == "cancelled"
