"""`baton simulate`: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import baton

ROOT = Path(__file__).parents[2]
ORDER = ROOT / "tests" / "simulation" / "order.bpmn"
PAGE = (ROOT / "docs" / "testing-processes.md").read_text()


def simulate(script: str, *options: str, model: Path = ORDER) -> Result:
    return CliRunner().invoke(baton, ["simulate", str(model), "--script", "-", *options], input=script)


def test_it_prints_each_step_and_what_happened_after_it():
    result = simulate("start amount=5\njob charge returns receipt=7\nexpect completed\n")
    assert result.exit_code == 0
    lines = [re.sub(r"^  [\d-]+ [\d:]+", "  WHEN", line) for line in result.stdout.splitlines()]
    assert lines[0] == "> start amount=5"
    assert '  WHEN  order 1  instance started placed "Order placed" what=none' in lines
    assert '  WHEN  order 1  job completed charge "Charge the card"' in lines
    assert '  WHEN  order 1  variables set charge "Charge the card" receipt=7' in lines
    assert lines[-1] == "> expect completed"
    assert "flow taken" not in result.stdout
    assert "flow taken f1" in simulate("start amount=5\n", "--all").stdout


def test_json_has_every_event_and_how_each_case_ended():
    told = json.loads(simulate("start as o-1 amount=5.5\n", "--json").stdout)
    (case,) = told["cases"]
    assert case == {
        "process": "order",
        "business_key": "o-1",
        "status": "running",
        "waiting": ["charge"],
        "incidents": {},
        "variables": {"amount": 5.5},
    }
    assert told["failed"] is None
    assert {"flow_taken", "job_created"} <= {event["kind"] for event in told["trace"]}
    assert {(event["at"], event["step"], event["instance"]) for event in told["trace"]} == {("2026-01-05T09:00:00+00:00", 1, 1)}


def test_an_expectation_that_fails_is_1_and_says_what_was_expected_and_found():
    result = simulate("start amount=5\nexpect completed\n")
    assert result.exit_code == 1
    assert result.stderr == "-:2: expect completed\n  expected completed, found running, waiting at charge\n"
    assert json.loads(simulate("start amount=5\nexpect completed\n", "--json").stdout)["failed"].startswith("-:2: ")


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("begin\n", 2, "-:1: expected one of clock, handler"),
        ("lease charge\n", 2, "-:1: lease cannot be simulated: a simulation has no workers"),
        ("start amount=5\ncomplete\n", 2, "-:2: expected complete TASK"),
        ("complete approve\n", 1, "-:1: complete approve\n  expected an open task 'approve', found nothing"),
        ("start nothing\n", 1, "expected one of the processes order, found 'nothing'"),
    ],
)
def test_the_exit_code_tells_a_wrong_script_from_one_that_does_not_hold(script: str, code: int, told: str):
    result = simulate(script)
    assert result.exit_code == code
    assert told in result.stderr


def test_a_model_that_may_not_be_deployed_is_1_with_its_problems():
    result = simulate("start\n", model=ROOT / "tests" / "models" / "s48_faults.bpmn")
    assert result.exit_code == 1
    assert "s48_faults.bpmn:8: f9: sequenceFlow 'f9' has no targetRef" in result.stderr


def test_the_script_of_the_documentation_holds():
    text = re.search(r"```\n(.*?)```", PAGE.split("## Playing a process: `baton simulate`", 1)[1].split("A script", 1)[1], re.DOTALL)
    assert text is not None
    result = simulate(text[1])
    assert result.exit_code == 0, result.stderr
