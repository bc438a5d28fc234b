"""Drawings for models without one: complete, beside an unchanged model, and never more than a reason when it cannot be done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.bpmn.diagram import read_diagram
from engine.bpmn.names import BPMN
from engine.bpmn.reader import read_files
from engine.bpmn.xml import parse_xml
from engine.drawings import drawing
from engine.drawings.drawing import draw
from engine.drawings.layout import MAX_FLOWS, MAX_PARTS, NoLayout, has_drawing, laid_out, not_drawn
from tests.bpmn.models import MODELS, around, file_of, model

ROOT = Path(__file__).parents[2]
DEPLOYABLE = [path for path in sorted(MODELS.glob("*.bpmn")) if not read_files([(path.name, path.read_bytes())]).problems]


@pytest.mark.parametrize("path", DEPLOYABLE, ids=lambda path: path.stem)
def test_every_node_and_flow_of_a_process_is_drawn_and_nothing_lies_on_another(path: Path):
    content = path.read_bytes()
    for _, definition in read_files([(path.name, content)]).definitions:
        if definition.called_only or has_drawing(content, definition.key):
            continue
        drawn = laid_out(content, definition.key)
        assert has_drawing(drawn, definition.key)
        diagram = read_diagram(drawn)
        assert {shape.element_id for shape in diagram.shapes} == {key for key in definition.nodes if "#" not in key}
        (process,) = [each for each in parse_xml(drawn).iter(f"{{{BPMN}}}process") if each.get("id") == definition.key]
        flows = [edge.element_id for edge in diagram.edges if edge.tag == "sequenceFlow"]
        assert sorted(flows) == sorted(flow.get("id") for flow in process.iter(f"{{{BPMN}}}sequenceFlow"))
        tasks = [shape.bounds for shape in diagram.shapes if shape.tag.endswith("Task")]
        assert len({(box.x, box.y) for box in tasks}) == len(tasks)


def test_the_model_in_the_drawing_is_the_authors_and_only_the_drawing_is_new():
    content = model("compensation")
    ours, theirs = parse_xml(laid_out(content, "compensation")), parse_xml(content)
    (diagram,) = [child for child in ours if str(child.tag).endswith("BPMNDiagram")]
    ours.remove(diagram)
    assert [(e.tag, dict(e.attrib), (e.text or "").strip()) for e in ours.iter()] == [
        (e.tag, dict(e.attrib), (e.text or "").strip()) for e in theirs.iter()
    ]


def test_a_compensation_event_is_joined_with_its_handler():
    edges = {edge.element_id for edge in read_diagram(laid_out(model("compensation"), "compensation")).edges if edge.tag == "association"}
    assert edges == {"a1", "a2"}


def test_flows_without_an_id_are_drawn_under_the_name_that_the_reader_gives_them():
    content = file_of('<startEvent id="s"/><sequenceFlow sourceRef="s" targetRef="e"/><endEvent id="e"/>')
    ((_, definition),) = read_files([("a.bpmn", content)]).definitions
    assert {edge.element_id for edge in read_diagram(laid_out(content, "p")).edges} == set(definition.flows)


def test_what_a_layout_leaves_out_is_named():
    assert not_drawn(model("data_in_lanes"), "data_in_lanes") == ("lanes", "data objects")
    assert not_drawn(model("a_customer_and_a_shop"), "shop") == ("pools and message flows",)
    assert draw(model("data_in_lanes"), "data_in_lanes").note.endswith("Not in it: lanes, data objects.")
    assert draw(model("a_group_task"), "a_group_task").note.endswith("this one was laid out by Baton.")


def test_ids_that_are_not_ascii_or_like_those_of_the_copy_are_drawn_under_their_own_names():
    content = file_of(
        '<startEvent id="początek"/><userTask id="copied-part-0"/><endEvent id="結束"/>'
        '<sequenceFlow id="a-b.c" sourceRef="początek" targetRef="copied-part-0"/>'
        '<sequenceFlow id="ж" sourceRef="copied-part-0" targetRef="結束"/>'
    )
    diagram = read_diagram(laid_out(content, "p"))
    assert {shape.element_id for shape in diagram.shapes} == {"początek", "copied-part-0", "結束"}
    assert {edge.element_id for edge in diagram.edges} == {"a-b.c", "ж"}


def test_a_process_that_is_too_large_is_refused_with_a_reason():
    many = "".join(f'<task id="t{number}"/>' for number in range(MAX_PARTS + 1))
    with pytest.raises(NoLayout, match=f"more than {MAX_PARTS} steps"):
        laid_out(file_of(many), "p")
    refused = draw(file_of(many), "p")
    assert refused.xml is None and refused.final
    assert refused.note.startswith(f"the model has none, and none was laid out: it has more than {MAX_PARTS} steps")


def test_more_flows_than_a_picture_has_are_refused_for_good_and_not_tried_with_each_look():
    flows = "".join(f'<sequenceFlow id="f{number}" sourceRef="a" targetRef="b"/>' for number in range(MAX_FLOWS + 1))
    refused = draw(file_of(f'<task id="a"/><task id="b"/>{flows}'), "p")
    assert refused.final and f"more than {MAX_PARTS} steps or {MAX_FLOWS:,} flows" in refused.note


def test_a_layout_that_takes_too_long_is_ended_and_not_kept():
    late = draw(around('<userTask id="x"/>'), "p", seconds=0.001)
    assert (late.xml, late.final) == (None, False)
    assert late.note == "laying it out took more than 0.001 seconds"


def test_a_library_that_fails_leaves_a_reason(monkeypatch: pytest.MonkeyPatch):
    failed = subprocess.CompletedProcess([], 1, b"", b"Traceback\nbpmn_io.LayoutError: no grid\n")
    monkeypatch.setattr(drawing, "_in_a_process", lambda *_: failed)
    found = draw(around('<userTask id="x"/>'), "p")
    assert (found.xml, found.final) == (None, True)
    assert found.note == "the model has none, and it could not be laid out: bpmn_io.LayoutError: no grid"


@pytest.mark.parametrize("module", ["webapp.app", "worker.main", "cli.main", "engine.drawings.drawing"])
def test_the_library_is_loaded_by_no_process_but_that_which_lays_out(module: str):
    code = f"import {module}, sys; sys.exit(any(name.startswith('bpmn_io') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60).returncode == 0
