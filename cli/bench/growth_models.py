"""The models of `baton bench growth`, drawn in code because their size is a parameter."""

from __future__ import annotations

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
    ' xmlns:baton="urn:baton:bpmn" id="growth" targetNamespace="urn:baton:bench">'
)


def process(key: str, inside: str) -> bytes:
    """A file with one executable process."""
    return f'{HEAD}<process id="{key}" isExecutable="true">{inside}</process></definitions>'.encode()


def flow(number: int | str, source: str, target: str) -> str:
    return f'<sequenceFlow id="f{number}" sourceRef="{source}" targetRef="{target}"/>'


def many_instances() -> bytes:
    """A service task for each item of the collection `items`, all at once."""
    return process(
        "many",
        '<startEvent id="start"/>' + flow(1, "start", "work") + '<serviceTask id="work" baton:handler="bench.work">'
        '<multiInstanceLoopCharacteristics camunda:collection="items" camunda:elementVariable="item"/></serviceTask>'
        + flow(2, "work", "end")
        + '<endEvent id="end"/>',
    )


def many_tokens(number: int) -> bytes:
    """A fork of so many flows to one service task, and a join of all its tokens behind it: one scope."""
    branches = "".join(
        f'{flow(f"a{n}", "fork", f"work{n}")}<serviceTask id="work{n}" baton:handler="bench.work"/>{flow(f"b{n}", f"work{n}", "join")}'
        for n in range(number)
    )
    return process(
        "tokens",
        '<startEvent id="start"/>' + flow(1, "start", "fork") + f'<parallelGateway id="fork"/>{branches}<parallelGateway id="join"/>'
        + flow(2, "join", "end")
        + '<endEvent id="end"/>',
    )  # fmt: skip


def large_model(elements: int) -> bytes:
    """A row of so many tasks and gateways, and the flows between them besides."""
    parts = ['<startEvent id="n0"/>']
    for number in range(1, elements - 1):
        name, before = f"n{number}", f"n{number - 1}"
        match number % 4:
            case 0:
                parts.append(f'<exclusiveGateway id="{name}" default="f{number + 1}"/>')
            case 1:
                parts.append(f'<userTask id="{name}" name="Step {number}" camunda:candidateGroups="bench"/>')
            case 2:
                parts.append(f'<serviceTask id="{name}" baton:handler="bench.work"/>')
            case _:
                parts.append(f'<scriptTask id="{name}" camunda:resultVariable="x"><script>${{{number} + 1}}</script></scriptTask>')
        parts.append(flow(number, before, name))
    parts.append(f'<endEvent id="end"/>{flow("end", f"n{elements - 2}", "end")}')
    return process("large", "".join(parts))


def call_tree() -> bytes:
    """A process that calls another `wide` times at once, which calls a third one: there a job and a task wait."""
    root = (
        '<startEvent id="start"/>' + flow(1, "start", "each") + '<callActivity id="each" calledElement="middle">'
        "<multiInstanceLoopCharacteristics><loopCardinality>${wide}</loopCardinality></multiInstanceLoopCharacteristics></callActivity>"
        + flow(2, "each", "end")
        + '<endEvent id="end"/>'
    )  # fmt: skip
    middle = (
        '<startEvent id="m_start"/>' + flow("m1", "m_start", "call") + '<callActivity id="call" calledElement="innermost"/>'
        + flow("m2", "call", "m_end")
        + '<endEvent id="m_end"/>'
    )  # fmt: skip
    innermost = (
        '<startEvent id="i_start"/>' + flow("i1", "i_start", "fork") + '<parallelGateway id="fork"/>'
        + flow("i2", "fork", "work")
        + flow("i3", "fork", "check")
        + '<serviceTask id="work" baton:handler="bench.tree"/><userTask id="check" camunda:assignee="bench"/>'
    )  # fmt: skip
    parts = (("tree", root), ("middle", middle), ("innermost", innermost))
    processes = "".join(f'<process id="{key}" isExecutable="true">{inside}</process>' for key, inside in parts)
    return f"{HEAD}{processes}</definitions>".encode()
