"""Data objects, inputs and outputs, associations (10.4), and lanes that assign (10.7): what the reader makes of them."""

from __future__ import annotations

import pytest

from engine.bpmn.definition import ServiceTaskConfig, UserTaskConfig
from engine.bpmn.reader import read_files
from tests.bpmn.models import around, model


def test_associations_become_inputs_and_data_outputs_and_data_objects_of_a_subprocess_its_own_variables() -> None:
    read = read_files([("m", model("data_in_lanes"))])
    assert (read.problems, read.warnings) == ((), ())
    ((_, definition),) = read.definitions
    check = definition.nodes["check"]
    assert isinstance(check.config, ServiceTaskConfig)
    inputs = [(name, expression.text) for name, expression in check.config.inputs]
    assert inputs == [
        ("cents", "${`order sum` * 100}"),
        ("most", "${limit + 1}"),
    ]
    (answer,) = check.data_outputs
    assert (answer.sources, answer.target) == (("answer",), "verdict")
    (entered,) = definition.nodes["enter"].data_outputs
    assert (entered.sources, entered.target) == (("amount",), "order sum")
    assert definition.nodes["apart"].locals == ("note",)


def test_a_lane_that_assigns_is_the_group_of_tasks_without_candidates_of_their_own() -> None:
    ((_, definition),) = read_files([("m", model("data_in_lanes"))]).definitions
    enter, sign = definition.nodes["enter"].config, definition.nodes["sign"].config
    assert isinstance(enter, UserTaskConfig)
    assert [group.evaluate({}) for group in enter.candidate_groups] == ["billing"], "of the innermost lane"
    assert isinstance(sign, UserTaskConfig)
    assert (sign.candidate_groups, sign.assignee is not None) == ((), True)


def test_lanes_assign_only_where_the_author_asks_for_it() -> None:
    text = model("data_in_lanes").replace(b' baton:assignment="lane"', b"")
    ((_, definition),) = read_files([("m", text)]).definitions
    assert definition.nodes["enter"].config.candidate_groups == ()


IO = (
    '<ioSpecification><dataInput id="i"/><dataOutput id="o"/><inputSet><dataInputRefs>i</dataInputRefs></inputSet>'
    "<outputSet><dataOutputRefs>o</dataOutputRefs></outputSet></ioSpecification>"
)
OUT = '<dataOutputAssociation id="a"><sourceRef>o</sourceRef><targetRef>d</targetRef>{}</dataOutputAssociation>'
IN = '<dataInputAssociation id="a"><sourceRef>d</sourceRef><targetRef>i</targetRef>{}</dataInputAssociation>'
OBJECT = '<dataObject id="d"/>'
TASK = '<serviceTask id="x" baton:handler="h">'
PARAMETER = '<baton:inputParameter name="i">1</baton:inputParameter>'
WRONG = {
    "an output of a subprocess": (
        f'<subProcess id="x">{IO}{OUT.format("")}<startEvent id="s"/></subProcess>{OBJECT}',
        "a",
        "has a data output",
    ),
    "an output that an event transforms": (
        '<intermediateCatchEvent id="x"><dataOutput id="o"/>'
        + OUT.format("<transformation>${o}</transformation>")
        + f"<timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition></intermediateCatchEvent>{OBJECT}",
        "a",
        "that is transformed",
    ),
    "an assignment to something else": (
        f"{TASK}{IO}{IN.format('<assignment><from>${d}</from><to>other</to></assignment>')}</serviceTask>{OBJECT}",
        "a",
        "assigns to 'other'",
    ),
    "two assignments": (
        f"{TASK}{IO}" + IN.format("<assignment><from>${d}</from><to>i</to></assignment>" * 2) + f"</serviceTask>{OBJECT}",
        "a",
        "several assignments",
    ),
    "an assignment of nothing": (
        f"{TASK}{IO}{IN.format('<assignment><from/><to>i</to></assignment>')}</serviceTask>{OBJECT}",
        "a",
        "assigns nothing",
    ),
    "a name that no expression reaches": (
        f'{TASK}{IO}{IN.format("")}</serviceTask><dataObject id="d" name="a`b"/>',
        "d",
        "has no good name",
    ),
    "an input twice": (
        f'{TASK}<extensionElements><baton:inputOutput><baton:inputParameter name="i">1</baton:inputParameter>'
        f"</baton:inputOutput></extensionElements>{IO}{IN.format('')}</serviceTask>{OBJECT}",
        "x",
        "two inputs named 'i'",
    ),
    "lanes that assign otherwise": (
        '<task id="x"/><laneSet id="ls" baton:assignment="round robin"/>',
        "ls",
        "baton:assignment 'round robin'",
    ),
    "a lane without a name": (
        '<userTask id="x"/><laneSet id="ls" baton:assignment="lane"><lane id="l"><flowNodeRef>x</flowNodeRef></lane></laneSet>',
        "l",
        "has no name",
    ),
}


@pytest.mark.parametrize(("body", "element", "what"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_named(body: str, element: str, what: str) -> None:
    found = [(each.element_id, each.what) for each in read_files([("m", around(body))]).problems]
    assert [text for key, text in found if key == element and what in text], found


def test_a_task_that_gives_nothing_may_have_an_output() -> None:
    read = read_files([("m", around(f'<task id="x">{IO}{OUT.format("")}</task>{OBJECT}'))])
    assert read.problems == ()
    assert read.definitions[0][1].nodes["x"].data_outputs == ()


def test_what_modelers_draw_as_associations_to_activities_is_drawn_only() -> None:
    drawn = (
        '<userTask id="x"><property id="pp" name="__targetRef_placeholder"/><dataInputAssociation id="a"><sourceRef>d</sourceRef>'
        "<targetRef>pp</targetRef></dataInputAssociation>"
        '<dataOutputAssociation id="b"><targetRef>d</targetRef></dataOutputAssociation></userTask>'
    )
    read = read_files([("m", around(drawn + OBJECT))])
    assert (read.problems, read.warnings) == ((), ())
