"""What nothing reads is reported by name, wherever it stands: never silently dropped (issue 4)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from engine.bpmn.names import BPMN
from tests.bpmn.models import MODELS, around, model, read

SAMPLES = Path(__file__).parents[2] / "cli" / "samples"
ACCEPTED = [path for path in (*sorted(MODELS.glob("*.bpmn")), *sorted(SAMPLES.glob("*.bpmn"))) if not read(path.read_bytes()).problems]
UNKNOWN = pytest.mark.parametrize("space", ["", "{urn:of-nobody}", f"{{{BPMN}}}", "{http://camunda.org/schema/1.0/bpmn}"])


def reported(data: bytes) -> list[str]:
    result = read(data)
    assert result.problems == ()
    return re.findall(r"the attribute \S*?(nobodys\d*)(?: \(\S+\))? is not read", "\n".join(each.what for each in result.warnings))


@UNKNOWN
@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_an_unknown_attribute_of_each_element_of_our_models_is_reported_once(path: Path, space: str) -> None:
    root = etree.fromstring(path.read_bytes())
    elements = list(root.iter("*"))
    for number, element in enumerate(elements):
        element.set(f"{space}nobodys{number}", "1")
    assert sorted(set(reported(etree.tostring(root)))) == sorted(f"nobodys{number}" for number in range(len(elements)))


@UNKNOWN
def test_an_unknown_attribute_that_is_alone_is_reported(space: str) -> None:
    root = etree.fromstring(model("more_elements"))
    for element in root.iter("*"):
        element.set(f"{space}nobodys", "1")
        assert set(reported(etree.tostring(root))) == {"nobodys"}, element.tag
        del element.attrib[f"{space}nobodys"]


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_nothing_of_our_own_models_goes_unread(path: Path) -> None:
    assert [each.what for each in read(path.read_bytes()).warnings if "not read" in each.what] == []


@pytest.mark.parametrize(
    ("node", "what"),
    [
        ('<serviceTask id="x" baton:handler="h" operationRef="o"/>', "the attribute operationRef is not read"),
        ('<sendTask id="x" baton:handler="h" messageRef="m"/>', "the attribute messageRef is not read"),
        ('<scriptTask id="x" baton:handler="h"><script>a</script></scriptTask>', "the element script is not read"),
        (
            '<userTask id="x"><dataInputAssociation><sourceRef>d</sourceRef><targetRef>i</targetRef></dataInputAssociation></userTask>',
            "the element dataInputAssociation is not read",
        ),
        ('<userTask id="x" implementation="${ask}"/>', "the attribute implementation is not read"),
        (
            '<userTask id="x" camunda:assignee="a" flowable:assignee="b"/>',
            "the attribute flowable:assignee is not read",
        ),
        (
            '<callActivity id="x" calledElement="p"><extensionElements><camunda:in businessKey="b" source="a"/></extensionElements>'
            "</callActivity>",
            "the attribute source is not read",
        ),
    ],
)
def test_what_is_known_and_void_here_is_reported(node: str, what: str) -> None:
    """That it stands in the standard's tables is not enough: nothing asked for it on this element."""
    data = around(node, root='<message id="m" name="M"/>', more='<dataObject id="d"/><property id="i"/>')
    assert [each.what for each in read(data).warnings] == [what]


def test_text_that_nothing_reads_is_reported() -> None:
    warned = read(around('<userTask id="x">Check it</userTask>')).warnings
    assert [each.what for each in warned] == ["the text in userTask is not read"]


def test_an_event_definition_that_no_event_refers_to_is_reported_as_a_whole() -> None:
    beside = '<timerEventDefinition id="t"><timeDate>2026-12-01</timeDate></timerEventDefinition>'
    assert [each.what for each in read(around('<task id="x"/>', root=beside)).warnings] == ["the element timerEventDefinition is not read"]


def test_an_attribute_of_another_element_is_unknown() -> None:
    (warned,) = read(around('<userTask id="x" calledElement="p"/>')).warnings
    assert (warned.element_id, warned.what) == ("x", "the attribute calledElement is not read")


def test_what_lies_in_an_extension_element_that_is_not_read_is_reported_with_it() -> None:
    inside = '<extensionElements><other:thing><other:part a="1"/></other:thing></extensionElements>'
    (warned,) = read(around(f'<userTask id="x">{inside}</userTask>')).warnings
    assert warned.what == "the extension element thing (urn:other) is not read"


def test_what_is_said_beside_the_processes_is_told_with_the_first_of_them() -> None:
    result = read(around('<userTask id="x"/>', root='<message id="m" name="M" colour="red"/>'))
    assert [each.what for each in result.definitions[0][1].warnings] == ["the attribute colour is not read"]


def test_how_things_are_drawn_is_nothing_to_report() -> None:
    colours = 'xmlns:bioc="http://bpmn.io/schema/bpmn/biocolor/1.0" bioc:stroke="red"'
    drawn = f'<bpmndi:BPMNShape bpmnElement="x" {colours}/>'
    diagram = f'<bpmndi:BPMNDiagram xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI"><bpmndi:BPMNPlane>{drawn}</bpmndi:BPMNPlane></bpmndi:BPMNDiagram>'
    data = around('<userTask id="x"/>').replace(b"</definitions>", f"{diagram}</definitions>".encode())
    assert read(data).warnings == ()


def test_what_an_editor_remembers_is_nothing_to_report_but_what_is_added_to_it_is() -> None:
    told = '<s:signavioMetaData xmlns:s="http://www.signavio.com" metaKey="bgcolor" metaValue="#fff"{}</s:signavioMetaData>'
    data = [
        around(f'<task id="x"><extensionElements>{told.format(more)}</extensionElements></task>')
        for more in (">", ' nobodys="1"><other:part/>')
    ]
    assert read(data[0]).warnings == ()
    assert [each.what for each in read(data[1]).warnings] == [
        "the attribute nobodys is not read",
        "the extension element part (urn:other) is not read",
    ]


def test_the_language_of_a_global_script_is_read_under_its_own_name() -> None:
    script = '<globalScriptTask id="g" scriptLanguage="groovy"><script>a</script></globalScriptTask>'
    said = [each.what for each in read(around('<task id="x"/>', root=script)).warnings]
    assert said[0] == "scriptTask 'g' has a script in groovy, which is not run"
