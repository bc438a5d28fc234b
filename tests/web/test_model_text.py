"""A process in words."""

from __future__ import annotations

from pathlib import Path

from engine.bpmn.reader import read_files
from webapp.operations.model_text import outline

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
