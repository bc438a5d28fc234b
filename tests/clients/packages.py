"""The packages, their versions, and the ways of working that each of them has; the process of each of these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MADE = HERE.parents[1] / ".clients"  # by scripts/clients

# What a task goes through. `poll`: it comes while the client waits. `killed`: it comes after its client was killed in mid-poll.
WAYS = ("complete", "failure", "error", "extend", "unlock", "incident", "poll", "killed")
AT_ONCE = WAYS[:-2]  # all of these run together


@dataclass(frozen=True, slots=True)
class Package:
    """`ways`: those that the package has calls for. `waits`: it waits in the server for work, else it asks again and again."""

    name: str
    version: str
    driver: str
    arguments: tuple[str, ...]
    ways: tuple[str, ...]
    waits: bool = True

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    def definition_key(self, way: str) -> str:
        return f"{self.key}_{way}"

    def topic(self, way: str) -> str:
        return f"{self.name}.{way}"

    def command(self, script: str) -> list[str]:
        program = "node" if self.driver.endswith(".mjs") else str(MADE / "python" / "bin" / "python")
        return [program, str(HERE / "drivers" / self.driver), script, *self.arguments]


PACKAGES = (
    Package(
        "camunda-external-task-client-js",
        "3.1.0",
        "drive.mjs",
        (),
        ("complete", "failure", "error", "extend", "unlock", "poll", "killed"),
    ),
    Package(
        "camunda-external-task-client-python3",
        "4.5.0",
        "drive_camunda.py",
        ("camunda",),
        ("complete", "failure", "error", "poll", "killed"),  # it can neither extend a lock nor unlock
    ),
    Package(
        "operaton-external-task-client-python3",
        "1.0.4",
        "drive_camunda.py",
        ("operaton",),
        ("complete", "failure", "error", "poll", "killed"),
    ),
    Package("pycamunda", "0.6.1", "drive_pycamunda.py", (), WAYS),
    Package(
        "fastbpmn",
        "0.5.0",
        "drive_fastbpmn.py",
        (),
        ("complete", "failure", "error", "extend", "poll", "killed"),  # it cannot unlock
        waits=False,
    ),
)


def model(package: Package, way: str) -> bytes:
    """One external task, whose error LATE is caught."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
  targetNamespace="urn:baton:clients">
<error id="late" errorCode="LATE"/>
<process id="{package.definition_key(way)}" name="{package.name} {way}" isExecutable="true">
  <startEvent id="start"/>
  <sequenceFlow id="to_work" sourceRef="start" targetRef="work"/>
  <serviceTask id="work" camunda:type="external" camunda:topic="{package.topic(way)}"/>
  <boundaryEvent id="caught" attachedToRef="work"><errorEventDefinition errorRef="late"/></boundaryEvent>
  <sequenceFlow id="to_done" sourceRef="work" targetRef="done"/>
  <sequenceFlow id="to_late" sourceRef="caught" targetRef="ended_late"/>
  <endEvent id="done"/>
  <endEvent id="ended_late"/>
</process>
</definitions>""".encode()
