"""S58: cases and definitions are suspended and resumed, on a clock that the test moves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from engine.commands.complete_task import complete_task
from engine.commands.outcome import (
    DefinitionResumed,
    DefinitionSuspended,
    InstanceResumed,
    InstanceSuspended,
    ItemDone,
    Refusal,
    Rejected,
)
from engine.commands.start import start_instance
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.suspend_definition import resume_definition, suspend_definition
from tests import rows
from tests.cast import ADA, OP
from tests.conftest import Clock
from tests.scenarios_db.stage import Stage, done

NAGGING = b"""<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
  targetNamespace="urn:test">
  <message id="paid" name="PAID" />
  <process id="nagging" name="Nagging" isExecutable="true">
    <startEvent id="start" />
    <startEvent id="tick"><timerEventDefinition><timeCycle>R/PT10M</timeCycle></timerEventDefinition></startEvent>
    <userTask id="check" name="Check" camunda:assignee="ada" />
    <boundaryEvent id="nag" attachedToRef="check" cancelActivity="false">
      <timerEventDefinition><timeCycle>R/PT10M</timeCycle></timerEventDefinition></boundaryEvent>
    <boundaryEvent id="heard" attachedToRef="check" cancelActivity="false"><messageEventDefinition messageRef="paid" /></boundaryEvent>
    <endEvent id="end" />
    <endEvent id="nagged" />
    <endEvent id="told" />
    <sequenceFlow id="start_check" sourceRef="start" targetRef="check" />
    <sequenceFlow id="tick_check" sourceRef="tick" targetRef="check" />
    <sequenceFlow id="check_end" sourceRef="check" targetRef="end" />
    <sequenceFlow id="nag_nagged" sourceRef="nag" targetRef="nagged" />
    <sequenceFlow id="heard_told" sourceRef="heard" targetRef="told" />
  </process>
</definitions>"""


def refusal(outcome: Any) -> tuple[Refusal, str | None, str]:
    assert isinstance(outcome, Rejected), outcome
    assert outcome.at is not None, "it says when"
    return outcome.refusal, outcome.by_name, outcome.detail


def next_nag(stage: Stage) -> datetime:
    return rows.one(stage.conn, "SELECT due_at FROM job WHERE kind = 'timer'")  # type: ignore[no-any-return]


def test_S58_a_case_suspended_for_65_minutes_catches_up_once_and_its_next_timer_lies_ahead_on_the_grid(stage: Stage, clock: Clock) -> None:
    stage.deploy_files([("nagging.bpmn", NAGGING)])
    stage.conn.execute("DELETE FROM job WHERE kind = 'start_timer'")
    run = stage.start("nagging", business_key="7")
    first = next_nag(stage)
    assert suspend_instance(stage.conn, run.id, actor=OP, reason="the auditors are here") == InstanceSuspended(run.id)

    for _ in range(13):
        clock.advance(minutes=5)
        assert stage.take() == [], "nothing is acquired, so nothing loops"
    assert (run.told("timer_fired"), next_nag(stage)) == ([], first)
    why = (Refusal.INSTANCE_SUSPENDED, "Op Erator", "the auditors are here")
    assert refusal(complete_task(stage.conn, run.task("check"), actor=ADA, variables={}, request_id=None)) == why
    assert refusal(stage.publish("PAID", "7")) == why
    assert refusal(stage.publish("PAID", "7", live=3600)) == why

    assert resume_instance(stage.conn, run.id, actor=OP) == InstanceResumed(run.id)
    assert done(stage.work())
    assert run.told("timer_fired") == ["timer_fired nag"], "one catch-up"
    assert next_nag(stage) == first + timedelta(minutes=60), "the next one is on the grid, and ahead"
    assert next_nag(stage) > rows.one(stage.conn, "SELECT baton_now()")
    assert stage.work() == []
    clock.advance(minutes=6)
    assert done(stage.work())
    assert run.told("timer_fired") == ["timer_fired nag"] * 2
    assert stage.publish("PAID", "7").instance_id == run.id  # type: ignore[union-attr]
    run.complete("check", ADA)
    assert (run.status, run.leftovers) == ("completed", 0)


def start_timer(stage: Stage) -> datetime:
    return rows.one(stage.conn, "SELECT due_at FROM job WHERE kind = 'start_timer'")  # type: ignore[no-any-return]


def test_S58_a_suspended_definition_starts_nothing_and_catches_up_once_when_it_is_resumed(stage: Stage, clock: Clock) -> None:
    version = stage.deploy_files([("nagging.bpmn", NAGGING)]).definitions[0].id
    mine, other = stage.start("nagging", business_key="7"), stage.start("nagging", business_key="8")
    suspend_instance(stage.conn, other.id, actor=OP, reason="for itself")
    first = start_timer(stage)
    outcome = suspend_definition(stage.conn, version, actor=OP, reason="the auditors are here", with_cases=True)
    assert outcome == DefinitionSuspended(version, "nagging", 1, with_cases=True)
    assert done(stage.work()), "the job that suspends the cases"

    for _ in range(13):
        clock.advance(minutes=5)
        assert stage.take() == [], "nothing is acquired, so nothing loops"
    assert (len(stage.runs("nagging")), mine.told("timer_fired"), start_timer(stage)) == (2, [], first)
    assert refusal(start_instance(stage.conn, "nagging", actor=ADA, variables={})) == (
        Refusal.DEFINITION_SUSPENDED, "Op Erator", "the auditors are here",
    )  # fmt: skip
    why = (Refusal.INSTANCE_SUSPENDED, "Op Erator", "the auditors are here")
    assert refusal(complete_task(stage.conn, mine.task("check"), actor=ADA, variables={}, request_id=None)) == why
    assert refusal(stage.publish("PAID", "7")) == why

    assert resume_definition(stage.conn, version, actor=OP) == DefinitionResumed(version, "nagging", 1, with_cases=True)
    assert done(stage.work())
    clock.advance(seconds=2)
    assert all(isinstance(each, ItemDone) for each in stage.work())
    assert len(stage.runs("nagging")) == 3, "one catch-up of the start timer"
    assert start_timer(stage) == first + timedelta(minutes=60) > rows.one(stage.conn, "SELECT baton_now()")
    assert mine.told("timer_fired") == ["timer_fired nag"], "and one of the case's own"
    assert (mine.told("instance_suspended", "instance_resumed"), other.told("timer_fired")) == (
        ["instance_suspended", "instance_resumed"],
        [],
    )
    assert refusal(stage.publish("PAID", "8")) == (Refusal.INSTANCE_SUSPENDED, "Op Erator", "for itself"), "it was not taken along"
    clock.advance(minutes=6)
    assert done(stage.work())
    assert len(stage.runs("nagging")) == 4
