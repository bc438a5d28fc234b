"""Models as other tools and engines write them: what runs, under which name, and what is said about the rest."""

from __future__ import annotations

from engine.bpmn.context import MAX_NAME
from tests.bpmn.models import definition, file_of, only_problem, read

# ---- flows without ids


def unnamed(*ends: tuple[str, str], more: str = "") -> bytes:
    flows = "".join(f'<sequenceFlow sourceRef="{source}" targetRef="{target}"/>' for source, target in ends)
    return file_of(f'<startEvent id="s"/><parallelGateway id="x"/><task id="t"/><endEvent id="e"/>{flows}{more}')


def test_a_flow_without_an_id_gets_one_of_its_ends() -> None:
    found = definition(unnamed(("s", "x"), ("x", "t"), ("t", "e"), ("x", "e")))
    assert list(found.flows) == ["s-to-x", "x-to-t", "t-to-e", "x-to-e"]
    assert found.nodes["x"].outgoing == ("x-to-t", "x-to-e")


def test_the_id_of_a_flow_is_the_same_wherever_it_stands_in_the_file() -> None:
    ends = [("s", "x"), ("x", "t"), ("t", "e"), ("x", "e")]
    assert set(definition(unnamed(*ends)).flows) == set(definition(unnamed(*reversed(ends))).flows)


def test_two_flows_between_the_same_elements_are_two_and_no_id_is_taken_twice() -> None:
    named = '<sequenceFlow id="x-to-e-2" sourceRef="x" targetRef="e"/><sequenceFlow id="x-to-t" sourceRef="x" targetRef="e"/>'
    found = definition(unnamed(("s", "x"), ("x", "t"), ("t", "e"), ("x", "e"), ("x", "e"), more=named))
    assert set(found.flows) == {"s-to-x", "x-to-t", "x-to-t-2", "t-to-e", "x-to-e", "x-to-e-2", "x-to-e-3"}


def test_ends_with_long_ids_make_an_id_that_fits() -> None:
    long = "a" * MAX_NAME
    found = definition(file_of(f'<startEvent id="s"/><task id="{long}"/><sequenceFlow sourceRef="s" targetRef="{long}"/>'))
    (flow,) = found.flows
    assert flow.startswith("flow-") and len(flow) <= MAX_NAME


def test_a_flow_without_an_id_is_judged_as_any_other() -> None:
    problem = only_problem(file_of('<startEvent id="s"/><sequenceFlow sourceRef="s" targetRef="gone"/>'))
    assert problem.what == "sequenceFlow 's-to-gone' has the targetRef 'gone', which does not exist"


def test_a_flow_node_without_an_id_stays_refused() -> None:
    assert [each.what for each in read(file_of('<startEvent id="s"/><task name="T"/>')).problems] == ["a task named 'T' has no id"]
