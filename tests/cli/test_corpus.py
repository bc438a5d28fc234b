"""`baton corpus FOLDER`, which is what `make corpus` runs, over a folder made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli import corpus
from cli.main import baton
from tests.bpmn.models import around, file_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file of each sort."""
    made = tmp_path / "models"
    (made / "deeper").mkdir(parents=True)
    drawn = file_of('<startEvent id="s"/>', attributes='isExecutable="false"')
    for name, content in {
        "fine.bpmn": around('<userTask id="x"/>'),
        "java.bpmn20.xml": around('<serviceTask id="x" camunda:class="a.B"/>'),
        "deeper/nothing.bpmn2": around('<callActivity id="x" camunda:caseRef="c"/>'),
        "deeper/Nothing_more.BPMN": around('<callActivity id="x" camunda:caseRef="c" name="What"/><task id="y" startQuantity="0"/>'),
        "drawn.bpmn": drawn,
        "no.bpmn": b"<definitions",
        "testInvalidTask.bpmn": around('<userTask id="x" startQuantity="0"/>'),
        "readme.txt": b"no model",
    }.items():
        (made / name).write_bytes(content)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(baton, ["corpus", *arguments], standalone_mode=False)


def test_every_file_is_counted_and_the_reasons_stand_beside_their_numbers(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "out.json"
    result = run(str(folder), "--json", str(report))
    assert (result.exception, result.return_value) == (None, 0)
    lines = result.output.splitlines()
    assert lines[0] == "7 files: 1 accepted, 1 accepted with warnings, 5 refused, 0 crashed"
    assert lines[1] == "executable and well-formed: 4, accepted 2 (50.0 %)"
    assert "    2 (2 executable)  callActivity … has the attribute caseRef" in lines
    told = json.loads(report.read_text())
    assert {each["file"]: (each["verdict"], each["counts"]) for each in told["files"]} == {
        "fine.bpmn": ("accepted", True),
        "java.bpmn20.xml": ("accepted with warnings", True),
        "deeper/nothing.bpmn2": ("refused", True),
        "deeper/Nothing_more.BPMN": ("refused", True),
        "drawn.bpmn": ("refused", False),
        "no.bpmn": ("refused", False),
        "testInvalidTask.bpmn": ("refused", False),
    }
    assert all(each["problems"] for each in told["files"] if each["verdict"] == "refused"), "a refusal has a reason"


def test_a_crash_of_the_reader_is_counted_and_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(files: list[tuple[str, bytes]]) -> None:
        raise KeyError(files[0][0])

    monkeypatch.setattr(corpus, "read_files", crash)
    result = run(str(folder))
    assert result.return_value == 1 and "7 crashed" in result.output and "crash: KeyError" in result.output


def test_a_file_that_takes_too_long_fails_and_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "SLOW", 0.0)
    result = run(str(folder))
    assert result.return_value == 1 and "over 0 s: fine.bpmn" in result.output


def test_a_folder_without_models_is_said_to_have_none(tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert result.exception is not None and "found none" in str(result.exception)
