"""`baton check`: what it says of files, folders and standard input, and with which exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import baton
from tests.bpmn.models import around
from tests.commands.test_forms import process, titled

MODEL = Path(__file__).parents[2] / "cli" / "samples" / "invoice-approval.bpmn"
DOCS = str(MODEL.parents[2] / "docs")
ORDER_OF_DISHES = MODEL.parents[2] / "tests" / "models" / "what_to_cook.dmn"
NOBODYS = around('<userTask id="x" name="Sign"/>')
BROKEN = around('<userTask id="x" name="Sign" camunda:assignee="${who"/>')


def check(*arguments: str | Path, typed: bytes | None = None) -> Result:
    return CliRunner().invoke(baton, ["check", *map(str, arguments)], input=typed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "nobodys.bpmn").write_bytes(NOBODYS)
    (tmp_path / "broken.bpmn").write_bytes(BROKEN.replace(b'id="p"', b'id="q"'))
    (tmp_path / "notes.txt").write_text("no model")
    return tmp_path


def test_a_model_without_a_fault_is_said_to_be_deployable():
    result = check(MODEL, "--strict")
    assert (result.exit_code, result.output) == (0, "invoice-approval: may be deployed\n")


def test_a_warning_names_file_line_element_and_rule_and_counts_only_if_strict(folder: Path):
    path = folder / "deep" / "nobodys.bpmn"
    result = check(path)
    assert result.exit_code == 0
    assert result.stderr == (
        f"{path}:4: warning: x: the user task 'Sign' has neither an assignee nor candidates;"
        " expected people: else only operators see and assign it [task-without-people]\n"
    )
    assert check(path, "--strict").exit_code == 1
    assert check(path, "--strict", "--without", "task-without-people").exit_code == 0


def test_a_folder_is_every_model_below_it_and_a_problem_is_an_error(folder: Path):
    result = check(folder)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{folder / 'broken.bpmn'}:4: error: x: ")
    assert result.stdout.endswith("[deployment]\n")
    assert "nobodys.bpmn:4: warning" in result.stderr


def test_json_has_every_finding_with_its_severity(folder: Path):
    told = json.loads(check(folder, "--json").stdout)
    ((problem,), (warning,)) = told["problems"], told["warnings"]
    assert (problem["severity"], problem["rule"], problem["element_id"], problem["line"]) == ("error", "deployment", "x", 4)
    assert (warning["severity"], warning["rule"], warning["file"]) == (
        "warning",
        "task-without-people",
        str(folder / "deep" / "nobodys.bpmn"),
    )


def test_standard_input_is_a_file(folder: Path):
    assert check("-", typed=NOBODYS).stderr.startswith("-:4: warning: x: ")
    assert check("-", typed=b"no model at all").exit_code == 1


def test_files_are_one_deployment_unless_they_are_apart(folder: Path):
    again = folder / "again.bpmn"
    again.write_bytes(NOBODYS)
    both = [again, folder / "deep" / "nobodys.bpmn"]
    assert "2 processes have the id 'p'" in check(*both).stdout
    assert check(*both, "--apart").exit_code == 0


def test_a_handler_that_no_worker_has_is_a_warning(folder: Path):
    path = folder / "bound.bpmn"
    path.write_bytes(around('<serviceTask id="x" baton:handler="stock.reserve"/>'))
    assert check(path, "--strict").exit_code == 0
    assert check(path, "--strict", "--handler", "stock.reserve").exit_code == 0
    assert "which no worker knows" in check(path, "--handler", "mail").stderr


@pytest.mark.parametrize("arguments", [(), ("nowhere.bpmn",), (DOCS,), ("--without", "no-such-rule", "x")])
def test_wrong_usage_and_what_is_not_there_is_2(arguments: tuple[str, ...]):
    assert check(*arguments).exit_code == 2


def test_decisions_are_checked_beside_the_processes_that_call_them():
    models = ORDER_OF_DISHES.with_suffix(".bpmn"), ORDER_OF_DISHES
    assert check(*models).stdout == "what_to_cook: may be deployed\ndish: may be deployed\nseason: may be deployed\n"
    assert check(ORDER_OF_DISHES).exit_code == 0


def test_a_decision_that_may_not_be_deployed_is_an_error(tmp_path: Path):
    broken = tmp_path / "broken.dmn"
    broken.write_text(ORDER_OF_DISHES.read_text().replace('"Winter" else', '"Winter" otherwise'))
    result = check(broken)
    assert result.exit_code == 1
    assert re.match(rf"{broken}:\d+: error: ", result.stdout)


def test_what_else_is_needed_is_listed_instead_with_who_wants_it(tmp_path: Path):
    work = '<serviceTask id="x" camunda:delegateExpression="${chargeCard}"/>'
    call = '<callActivity id="x" calledElement="survey"/>'
    (tmp_path / "pay.bpmn").write_bytes(around(work))
    (tmp_path / "again.bpmn").write_bytes(around(work).replace(b'id="p"', b'id="again"'))
    (tmp_path / "ask.bpmn").write_bytes(around(call).replace(b'id="p"', b'id="r"'))
    (tmp_path / "ship.bpmn").write_bytes(
        around('<serviceTask id="x" camunda:type="external" camunda:topic="ship"/>').replace(b'"p"', b'"q"')
    )
    result = check(tmp_path, "--needs")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output == "needs handler chargeCard: again x, p x\nneeds topic ship: q x\nneeds process survey: r x\n"
    assert "chargeCard" not in check(tmp_path, "--needs", "--handler", "chargeCard").output
    told = json.loads(check(tmp_path, "--json").output)["needs"]
    assert told[0] == {"kind": "handler", "name": "chargeCard", "wanted_by": ["again x", "p x"]}
    survey = around('<manualTask id="x"/>').replace(b'id="p"', b'id="survey"')
    (tmp_path / "survey.bpmn").write_bytes(survey)
    assert "needs process" not in check(tmp_path, "--needs", "--apart").output


def test_a_file_that_may_not_be_deployed_says_so_among_what_is_needed(folder: Path):
    result = check(folder, "--needs")
    assert result.exit_code == 1
    assert "broken.bpmn:4: error: x: " in result.output


def test_a_form_that_is_referred_to_is_needed_until_it_comes_with_the_model(tmp_path: Path) -> None:
    (tmp_path / "buying.bpmn").write_bytes(process('camunda:formRef="order"'))
    assert "needs form order: buying fill" in check(tmp_path, "--needs").output
    (tmp_path / "order.form").write_bytes(titled("What"))
    assert "needs form" not in check(tmp_path, "--needs").output
    (tmp_path / "order.form").write_bytes(titled("=what"))
    assert check(tmp_path).exit_code == 1
