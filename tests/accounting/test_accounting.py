"""The count over our own models; `make corpus ACCOUNT=1` makes it over a folder. And that the count can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.bpmn import unread, vocabulary
from tests.accounting.__main__ import main
from tests.accounting.count import count
from tests.accounting.probe import read_and_without_effect, unknown_that_goes_unnoticed
from tests.bpmn.models import MODELS, around, file_of

SAMPLES = Path(__file__).parents[2] / "cli" / "samples"
OURS = [*sorted(MODELS.glob("*.bpmn")), *sorted(SAMPLES.glob("*.bpmn"))]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_everything_in_our_models_is_used_drawn_or_reported(path: Path) -> None:
    counted = count(path.name, path.read_bytes())
    assert counted.left == []
    assert counted.used > 0


REFUSED = [
    b"",
    b"<definitions",
    b"<a/>",
    b"<!DOCTYPE a><a/>",
    around('<gateway id="x" name="n"/>'),
    file_of('<nobodys id="n"><task id="t"/></nobodys>'),
]


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_refused_is_reported_and_so_is_what_lies_in_it(data: bytes) -> None:
    counted = count("model.bpmn", data)
    assert counted.left == [] and counted.reported > 0


def test_what_the_reader_passes_over_in_silence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "_own", lambda *_, **__: None)
    assert count("m.bpmn", around('<userTask id="x" nobodys="1"/>')).left == ["line 4, userTask x: nobodys"]
    assert count("m.bpmn", around('<userTask id="x">text</userTask>')).left == ["line 4, userTask x: its text"]


def test_a_reader_that_calls_too_much_drawing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "FOR_PEOPLE", vocabulary.FOR_PEOPLE | {"timerEventDefinition"})
    data = around('<task id="x"/>', root='<timerEventDefinition id="t"><timeDate>2026-12-01</timeDate></timerEventDefinition>')
    assert count("m.bpmn", data).left == [
        "line 2, timerEventDefinition t: the element itself",
        "line 2, timeDate t: the element itself",
        "line 2, timeDate t: its text",
    ]


@pytest.mark.parametrize("name", ["every_element", "several_offers", "data_through_a_call"])
def test_what_nobody_knows_is_reported_wherever_it_stands(name: str) -> None:
    assert list(unknown_that_goes_unnoticed((MODELS / f"{name}.bpmn").read_bytes())) == []


def test_an_attribute_that_is_read_and_changes_nothing_is_found() -> None:
    data = around('<userTask id="x" camunda:assignee="ada" implementation="##unspecified"/>')
    assert read_and_without_effect([data]) == {"userTask implementation": 1}


def test_a_folder_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.bpmn").write_bytes(around('<userTask id="x" nobodys="1"/>'))
    (tmp_path / "b.bpmn").write_bytes(around('<serviceTask id="x"/>'))
    report = tmp_path / "out.json"
    assert main([str(tmp_path), "--unknown", "--effect", "--json", str(report)]) == 0
    said = capsys.readouterr().out
    assert "all: 2 files: " in said and "1 reported, 0 unaccounted" in said
    assert report.read_text().count('"file"') == 2


def test_a_folder_without_models_is_said_to_have_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "found none" in capsys.readouterr().err
