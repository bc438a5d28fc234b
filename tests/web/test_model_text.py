"""A process in words."""

from __future__ import annotations

from pathlib import Path

from engine.bpmn.reader import read_files
from webapp.operations.model_text import Step, outline

MODELS = Path(__file__).parents[1] / "models"


def test_a_handler_is_told_as_what_undoes_its_activity() -> None:
    ((_, model),) = read_files([("c.bpmn", (MODELS / "compensation.bpmn").read_bytes())]).definitions
    told = {step.id: step for step in outline(model)}
    assert told["hotel_undo"].leads_to == (("to undo it", "Cancel the hotel"),)
    assert told["hotel_undo"].attached_to == "Book the hotel"
    assert told["no_hotel"].kind == "User task, only to undo"
    assert told["trip"].kind == "Transaction"


def test_the_inside_of_every_kind_of_subprocess_is_told_below_it() -> None:
    text = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
      <message id="m" name="STOP"/>
      <process id="p" isExecutable="true">
        <startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="sub"/>
        <subProcess id="sub" name="Pack"><startEvent id="i"/><sequenceFlow id="f2" sourceRef="i" targetRef="t"/>
          <manualTask id="t" name="Wrap it"/><sequenceFlow id="f3" sourceRef="t" targetRef="x"/><endEvent id="x"/></subProcess>
        <sequenceFlow id="f4" sourceRef="sub" targetRef="e"/><endEvent id="e"/>
        <subProcess id="ev" name="When stopped" triggeredByEvent="true">
          <startEvent id="es"><messageEventDefinition messageRef="m"/></startEvent><sequenceFlow id="f5" sourceRef="es" targetRef="et"/>
          <manualTask id="et" name="Undo"/><sequenceFlow id="f6" sourceRef="et" targetRef="ee"/><endEvent id="ee"/></subProcess>
      </process></definitions>"""
    read = read_files([("p.bpmn", text.encode())])
    assert read.problems == ()
    ((_, model),) = read.definitions
    told = {step.name: (step.depth, step.kind) for step in outline(model)}
    assert told["Wrap it"] == (1, "Step outside the system")
    assert told["Undo"] == (1, "Step outside the system")
    assert told["When stopped"] == (0, "Starts by itself on its event")


def told_of(name: str, process: str) -> dict[str, Step]:
    read = read_files([(f"{name}.bpmn", (MODELS / f"{name}.bpmn").read_bytes())])
    (model,) = [model for _, model in read.definitions if model.key == process]
    return {step.id: step for step in outline(model)}


def test_an_event_is_told_by_what_it_waits_for_or_throws() -> None:
    alarm = told_of("an_alarm_for_everybody", "an_alarm_for_everybody")
    assert (alarm["alarm"].kind, alarm["clear"].kind) == ("Throws signal ALARM", "End with signal ALL CLEAR ${building}")
    assert told_of("an_alarm_for_everybody", "evacuation")["on_alarm"].kind == "Start on signal ALARM"
    assert told_of("an_alarm_for_everybody", "guard")["quiet"].kind == "Waits for timer PT8H"
    stop = told_of("an_alarm_for_everybody", "party")["stop"]
    assert (stop.kind, stop.attached_to, stop.event) == ("Event at the border", "Dance", "signal ALARM")
    condition = told_of("when_it_becomes_true", "when_it_becomes_true")
    assert condition["paid"].kind == "Waits for condition ${paid}"
    trip = told_of("compensation", "compensation")
    assert trip["undo_all"].kind == "Throws compensation of Reserve a seat"
    assert trip["called_off"].kind == "End with cancellation of the transaction"
    assert (trip["hazard"].kind, trip["failed"].event, trip["hotel_undo"].event) == ("End with error FULL", "error FULL", "compensation")
    assert told_of("an_order_calls_a_check", "order")["tax"].kind == "Calls add_tax"


def test_every_part_of_a_multiple_event_and_both_ends_of_a_link_are_told() -> None:
    several = told_of("several_at_once", "several_at_once")
    assert several["asked"].kind == "Start on message MAIL or message CALL"
    assert " and " in several["ready"].kind and several["ready"].kind.startswith("Waits for ")
    more = told_of("more_elements", "more_elements")
    assert any(step.kind.startswith("Goes to link ") and step.leads_to for step in more.values())
    assert any(step.kind.startswith("Goes on from link ") for step in more.values())


def test_a_gateway_that_starts_an_instance_is_told_before_its_events() -> None:
    steps = list(told_of("whichever_comes_first", "whichever_comes_first"))
    assert steps[:2] == ["begins", "by_letter"]
