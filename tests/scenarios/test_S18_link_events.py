"""S18: several throws of a link, one catch; the variations are refused at deployment, naming the element."""

import pytest

from engine.bpmn.definition import ProcessDefinition
from tests.bpmn.models import file_of, read
from tests.core.world import World

BODY = """
<startEvent id="start"/><exclusiveGateway id="which" default="d3"/><sequenceFlow id="d" sourceRef="start" targetRef="which"/>
<sequenceFlow id="d1" sourceRef="which" targetRef="t1"><conditionExpression>${way == 1}</conditionExpression></sequenceFlow>
<sequenceFlow id="d2" sourceRef="which" targetRef="t2"><conditionExpression>${way == 2}</conditionExpression></sequenceFlow>
<sequenceFlow id="d3" sourceRef="which" targetRef="t3"/>
<intermediateThrowEvent id="t1"><linkEventDefinition name="TO_CHECK"/></intermediateThrowEvent>
<intermediateThrowEvent id="t2"><linkEventDefinition name="TO_CHECK"/></intermediateThrowEvent>
<intermediateThrowEvent id="t3"><linkEventDefinition name="TO_CHECK"/></intermediateThrowEvent>
"""
CATCH = '<intermediateCatchEvent id="{}"><linkEventDefinition name="TO_CHECK"/></intermediateCatchEvent>'
AFTER = """<sequenceFlow id="c1" sourceRef="c" targetRef="check"/><userTask id="check"/>
<sequenceFlow id="c2" sourceRef="check" targetRef="end"/><endEvent id="end"/>"""


@pytest.fixture(scope="module")
def definition() -> ProcessDefinition:
    result = read(file_of(BODY + CATCH.format("c") + AFTER))
    assert result.problems == ()
    assert result.warnings == (), "every element is reached, over the link"
    return result.definitions[0][1]


@pytest.mark.parametrize("way", [1, 2, 3])
def test_S18_each_throw_goes_on_at_the_one_catch(definition: ProcessDefinition, way: int) -> None:
    run = World(definition).start("start", way=way)
    assert run.new()[-7:] == [
        f"element_entered t{way}",
        f"element_left t{way}",
        "element_entered c",
        "element_left c",
        "flow_taken c1",
        "element_entered check",
        "task_created check",
    ]
    assert run.complete("check").ended == "completed"


@pytest.mark.parametrize(
    ("catches", "elements", "said"),
    [
        (CATCH.format("c") + CATCH.format("c9"), {"c9"}, "catches the link 'TO_CHECK' like 'c'"),
        ('<userTask id="c"/>', {"t1", "t2", "t3"}, "which nothing catches in its scope"),
        (
            f'<subProcess id="c"><startEvent id="i"/>{CATCH.format("c9")}</subProcess>',
            {"t1", "t2", "t3", "c9"},
            "in its scope",
        ),
    ],
)
def test_S18_two_catches_no_catch_and_a_catch_elsewhere_are_refused(catches: str, elements: set[str], said: str) -> None:
    problems = read(file_of(BODY + catches + AFTER)).problems
    assert {problem.element_id for problem in problems} == elements
    assert all(said in problem.what for problem in problems)


def test_a_loop_over_links_that_never_waits_is_an_incident() -> None:
    loop = file_of(
        '<startEvent id="start"/><sequenceFlow id="f" sourceRef="start" targetRef="t"/>'
        '<intermediateThrowEvent id="t"><linkEventDefinition name="TO_CHECK"/></intermediateThrowEvent>'
        + CATCH.format("c")
        + '<sequenceFlow id="g" sourceRef="c" targetRef="t"/>'
    )
    run = World(read(loop).definitions[0][1]).start("start")
    assert [incident.kind for incident in run.incidents] == ["endless_loop"]
