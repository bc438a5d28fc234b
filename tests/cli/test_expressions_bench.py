"""`baton bench expressions` measures every case in both languages beside simpleeval; how fast that is, no test says."""

from __future__ import annotations

import json

from click.testing import CliRunner

from cli.bench.expressions import CASES
from cli.main import baton


def test_every_case_is_measured_in_both_languages_beside_simpleeval():
    result = CliRunner().invoke(baton, ["bench", "expressions", "--seconds", "0.001", "--rounds", "1", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert [case["name"] for case in figures["cases"]] == [name for name, *_ in CASES]
    sides = ("juel", "feel", "simpleeval", "read_juel", "read_feel", "read_simpleeval")
    assert all(len(case[side]) == 1 and case[side][0] > 0 for case in figures["cases"] for side in sides)
    assert all(figures[f"{side}_ratio_smallest"] <= figures[f"{side}_ratio"] for side in ("juel", "feel", "read_juel", "read_feel"))


def test_people_read_one_line_a_case():
    lines = CliRunner().invoke(baton, ["bench", "expressions", "--seconds", "0.001", "--rounds", "1"]).stdout.splitlines()
    assert len(lines) == len(CASES) + 2
