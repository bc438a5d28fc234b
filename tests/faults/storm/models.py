"""The processes of the storm, and what the history of one of their cases holds when nothing was lost and nothing doubled.

`order`: an effect of a handler, a timer and a handler side by side, a person, a called process with an external task, a
message, a delivery. `letter`: begun by a message, a handler writes it down. `race`: a person against a timer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
    ' xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:baton="urn:baton:bpmn" targetNamespace="urn:storm">'
)
PATIENT = "R60/PT0.5S"  # attempts enough for every fault: an item that runs out of them is for an operator, and none is here
TOPIC = "storm-pack"


def _inputs(**inputs: str) -> str:
    given = "".join(f'<camunda:inputParameter name="{name}">{escape(value)}</camunda:inputParameter>' for name, value in inputs.items())
    return f"<extensionElements><camunda:inputOutput>{given}</camunda:inputOutput></extensionElements>"


def _service(name: str, handler: str, **inputs: str) -> str:
    return f'<serviceTask id="{name}" baton:handler="{handler}" baton:retry="{PATIENT}">{_inputs(**inputs) if inputs else ""}</serviceTask>'


def _form(name: str) -> str:
    field = f'<camunda:formField id="{name}" label="Answer" type="string"/>'
    return f"<extensionElements><camunda:formData>{field}</camunda:formData></extensionElements>"


def _person(name: str, answer: str) -> str:
    return f'<userTask id="{name}" name="{name}" camunda:candidateGroups="storm">{_form(answer)}</userTask>'


def _timer(duration: str) -> str:
    return f"<timerEventDefinition><timeDuration>{duration}</timeDuration></timerEventDefinition>"


def _process(key: str, nodes: list[str], flows: str) -> str:
    lines = [
        f'<sequenceFlow id="{flow.replace(">", "_")}" sourceRef="{flow.split(">")[0]}" targetRef="{flow.split(">")[1]}"/>'
        for flow in flows.split()
    ]
    return f'<process id="{key}" name="{key}" isExecutable="true">{"".join(nodes)}{"".join(lines)}</process>'


ORDER_FLOWS = (
    "start>reserve reserve>fork fork>pause fork>note pause>join note>join join>approve approve>pack pack>paid paid>notify notify>end"
)
PARCEL_FLOWS = "opened>pack_it pack_it>closed"
LETTER_FLOWS = "arrived>file_it file_it>filed"
RACE_FLOWS = "begin>answer answer>answered late>missed"


def files() -> dict[str, bytes]:
    """File name -> model."""
    order = [
        '<startEvent id="start"/>',
        _service("reserve", "http.call", url="${receiver}/reserve/${businessKey}", method="POST"),
        '<parallelGateway id="fork"/>',
        f'<intermediateCatchEvent id="pause">{_timer("PT0.3S")}</intermediateCatchEvent>',
        _service("note", "storm.note", what="note/${businessKey}"),
        '<parallelGateway id="join"/>',
        _person("approve", "approval"),
        '<callActivity id="pack" calledElement="parcel"><extensionElements><camunda:in businessKey="#{businessKey}/parcel"/>'
        '<camunda:out source="packed" target="packed"/></extensionElements></callActivity>',
        '<intermediateCatchEvent id="paid"><messageEventDefinition messageRef="m_paid"/></intermediateCatchEvent>',
        _service("notify", "http.deliver", url="${receiver}/notify/${businessKey}"),
        '<endEvent id="end"/>',
    ]
    parcel = [
        '<startEvent id="opened"/>',
        f'<serviceTask id="pack_it" camunda:type="external" camunda:topic="{TOPIC}" baton:retry="{PATIENT}"/>',
        '<endEvent id="closed"/>',
    ]
    letter = [
        '<startEvent id="arrived"><messageEventDefinition messageRef="m_letter"/></startEvent>',
        _service("file_it", "storm.note", what="letter/${businessKey}"),
        '<endEvent id="filed"/>',
    ]
    race = [
        '<startEvent id="begin"/>',
        _person("answer", "reply"),
        f'<boundaryEvent id="late" attachedToRef="answer">{_timer("PT3S")}</boundaryEvent>',
        '<endEvent id="answered"/>',
        '<endEvent id="missed"/>',
    ]
    messages = '<message id="m_paid" name="paid"/><message id="m_letter" name="letter"/>'
    texts = {
        "order.bpmn": messages + _process("order", order, ORDER_FLOWS),
        "parcel.bpmn": _process("parcel", parcel, PARCEL_FLOWS),
        "letter.bpmn": messages + _process("letter", letter, LETTER_FLOWS),
        "race.bpmn": _process("race", race, RACE_FLOWS),
    }
    return {name: f"{HEAD}{text}</definitions>".encode() for name, text in texts.items()}


# ---- what the history of a case holds when all is well


@dataclass(frozen=True, slots=True)
class Way:
    """One way through a process: its elements, its flows, and the further events, as (kind, element)."""

    elements: str
    flows: str
    events: tuple[tuple[str, str], ...]

    def history(self) -> Counter[tuple[str, str]]:
        counted = Counter(self.events)
        counted.update(("flow_taken", flow.replace(">", "_")) for flow in self.flows.split())
        counted.update((kind, element) for element in self.elements.split() for kind in ("element_entered", "element_left"))
        counted["instance_completed", ""] += 1
        return counted


_ANSWERED = (("task_created", "answer"), ("task_completed", "answer"), ("variables_set", "answer"))
WAYS: Mapping[str, tuple[Way, ...]] = {
    "order": (
        Way(
            "start reserve fork pause note join approve pack paid notify end",
            ORDER_FLOWS,
            (
                ("instance_started", "start"),
                ("variables_set", "start"),
                *((kind, "reserve") for kind in ("job_created", "job_completed", "variables_set")),
                *((kind, "note") for kind in ("job_created", "job_completed", "variables_set")),
                *((kind, "pause") for kind in ("job_created", "timer_fired")),
                ("join_passed", "join"),
                *((kind, "approve") for kind in ("task_created", "task_completed", "variables_set")),
                ("variables_set", "pack"),
                *((kind, "paid") for kind in ("subscription_opened", "message_correlated")),
                *((kind, "notify") for kind in ("delivery_created", "delivery_completed")),
            ),
        ),
    ),
    "parcel": (
        Way(
            "opened pack_it closed",
            PARCEL_FLOWS,
            (
                ("instance_started", "opened"),
                *((kind, "pack_it") for kind in ("external_task_created", "external_task_completed", "variables_set")),
            ),
        ),
    ),
    "letter": (
        Way(
            "arrived file_it filed",
            LETTER_FLOWS,
            (
                ("instance_started", "arrived"),
                ("message_correlated", "arrived"),
                *((kind, "file_it") for kind in ("job_created", "job_completed", "variables_set")),
            ),
        ),
    ),
    "race": (
        Way("begin answer answered", "begin>answer answer>answered", (("instance_started", "begin"), ("job_created", "late"), *_ANSWERED)),
        Way(
            "begin answer late missed",
            "begin>answer late>missed",
            (
                ("instance_started", "begin"),
                *((kind, "late") for kind in ("job_created", "timer_fired")),
                *((kind, "answer") for kind in ("task_created", "task_cancelled")),
            ),
        ),
    ),
}
# What a fault or a person may add, any number of times, and the checker judges otherwise.
BY_FAULTS = (
    *("_failed", "_recovered", "_released", "_retried", "task_claimed", "task_unclaimed", "incident_opened", "incident_resolved"),
    *("instance_suspended", "instance_resumed"),
)
