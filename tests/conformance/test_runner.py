"""The runner itself, on a folder of small cases of our own, some of which must fail."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.cases import read_cases
from tests.conformance.rewriting import rewrite, spelled

HERE = Path(__file__).parent
TINY = HERE / "tiny"
ROOT = HERE.parent.parent


@pytest.fixture(scope="module", params=[False, True], ids=["", "KILL=1"])
def report(request, server_url, tmp_path_factory):
    """What a run of the small cases says, with and without killed workers."""
    out = tmp_path_factory.mktemp("conformance") / "out.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BATON_TEST_SERVER", server_url)
        code = main([str(TINY), "--json", str(out), "--seed", "7", *(["--kill"] if request.param else [])])
    said = json.loads(out.read_text())
    assert code == 1, "cases that must fail are among them"
    assert (said["workers_killed"] > 0) == request.param
    return said


def test_every_small_case_gets_the_verdict_that_it_should(report):
    assert {case["name"]: case["verdict"] for case in report["cases"]} == {
        "OneLine": "passed",
        "InTime": "passed",
        "Uncaught": "passed",
        "ExpectsAnotherLine": "failed",
        "ExpectsNothingAndDoesNotStart": "failed",
        "UnknownToken": "failed",
        "Disputed": "contested",
        "NoTarget": "passed",
        "BreaksNoRule": "failed",
    }
    assert report["totals"]["all"] == {"passed": 4, "failed": 4, "contested": 1}
    assert report["totals"]["must_fail"] == {"passed": 0, "failed": 3, "contested": 0}


def test_what_was_found_and_why_stands_in_the_report_in_the_words_of_the_file(report):
    cases = {case["name"]: case for case in report["cases"]}
    assert cases["OneLine"]["found"] == [["INCREMENT", "SCRIPT_task1"], [], ["ERROR_runtime"], ["ERROR"]]
    assert cases["InTime"]["found"] == [["EXECUTION_parallel", "MARKER_exists"], ["EXECUTION_parallel"]]
    (problem,) = cases["NoTarget"]["problems"]
    assert (problem["element"], problem["line"]) == ("into_nothing", 5)
    assert "'nowhere'" in problem["what"]
    assert cases["ExpectsNothingAndDoesNotStart"]["found"] == [["ERROR_runtime"]]
    assert cases["UnknownToken"]["problems"][0] == "the script 'SCRIPT_task1' is not in the case's table of tokens"
    assert cases["Disputed"]["contested_because"] == "expects a task that the file lacks"


def test_ids_are_random_their_references_follow_and_a_seed_gives_the_same_again():
    case = next(case for case in read_cases(TINY) if case.name == "OneLine")
    one, again, other = (rewrite(case, random.Random(seed)) for seed in (1, 1, 2))
    assert one.xml == again.xml != other.xml
    text = one.xml.decode()
    assert not re.search(r'="(OneLine|start|choice|task|to_\w+)"', text)
    for reference in re.findall(r'(?:sourceRef|targetRef|default)="(\w+)"', text):
        assert f'id="{reference}"' in text
    assert one.old_id(one.new_ids["to_task"]) == "to_task"
    assert set(one.scripts.values()) == {"SCRIPT_task1", "INCREMENT_INTEGER_VARIABLE_AND_LOG", "CREATE_LOG_FILE"}
    assert "${test.contains(" in text


@pytest.mark.parametrize(
    ("tag", "text", "formal", "ours"),
    [
        ("conditionExpression", 'test.contains("a")', True, '${test.contains("a")}'),
        ("condition", 'test.contains("a")>', True, '${test.contains("a")}'),
        ("loopCardinality", "3", True, "3"),
        ("loopCardinality", "${integerVariable}", True, "${integerVariable}"),
        ("loopCardinality", "a few", True, "1"),
        ("timeCycle", "R4/PT1S", True, "R4/PT1S"),
        ("conditionExpression", "i > 1", False, "${i > 1}"),
        ("completionCondition", "when enough is done", True, "${true}"),
        ("condition", "when it is late", False, "when it is late"),
    ],
)
def test_expressions_of_the_suite_are_spelled_as_ours(tag, text, formal, ours):
    assert spelled(tag, text, formal=formal) == ours


def test_a_folder_without_cases_is_named(tmp_path):
    command = [sys.executable, "-m", "tests.conformance", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "expected cases.json" in done.stderr
