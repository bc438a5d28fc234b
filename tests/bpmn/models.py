"""Small files made from a few lines, for tests that change one thing."""

from __future__ import annotations

from pathlib import Path

from engine.bpmn.definition import Problem, ProcessDefinition
from engine.bpmn.reader import ReadResult, read_files

MODELS = Path(__file__).parent.parent / "models"
HEADER = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
    ' xmlns:flowable="http://flowable.org/bpmn" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:baton="urn:baton:bpmn"'
    ' xmlns:other="urn:other" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="urn:test">\n'
)


def file_of(body: str, *, root: str = "", attributes: str = 'isExecutable="true"') -> bytes:
    """A file with one process `p`; its body begins in line 3 (later, if `root` has lines)."""
    return f'{HEADER}{root}<process id="p" {attributes}>\n{body}\n</process></definitions>'.encode()


def around(node: str, *, root: str = "", more: str = "") -> bytes:
    """start -> the node, whose id is `x` -> end."""
    return file_of(
        f'<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="x"/>\n{node}\n'
        f'<sequenceFlow id="f2" sourceRef="x" targetRef="e"/><endEvent id="e"/>{more}',
        root=root,
    )


def read(data: bytes, name: str = "model.bpmn") -> ReadResult:
    return read_files([(name, data)])


def definition(data: bytes) -> ProcessDefinition:
    """The one process of a file that must have no problems."""
    result = read(data)
    assert result.problems == ()
    ((_, found),) = result.definitions
    return found


def model(name: str) -> bytes:
    return (MODELS / f"{name}.bpmn").read_bytes()


def only_problem(data: bytes) -> Problem:
    (problem,) = read(data).problems
    return problem
