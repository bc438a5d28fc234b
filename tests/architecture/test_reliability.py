"""docs/reliability.md answers every failure mode: the tests that it names are there, and those that carry a number are named."""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT, python_files

ROW = re.compile(r"^\| F(\d+) \|[^|]+\|[^|]+\|([^|]+)\|$", re.MULTILINE)
DEFINED = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)
NUMBERED = re.compile(r"(?<=_)F(\d+)(?=_)")
MOST_IN_WORDS = 8
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def _answers() -> dict[int, str]:
    return {int(number): answer for number, answer in ROW.findall(PAGE)}


def _named(answer: str) -> set[str]:
    return set(re.findall(r"`(test_\w+)`", answer))


def _written() -> set[str]:
    return {test for path in python_files("tests") for test in DEFINED.findall(path.read_text(encoding="utf-8"))}


def test_every_failure_mode_has_a_row_in_order():
    assert [int(number) for number, _ in ROW.findall(PAGE)] == list(range(1, 53))


def test_every_row_names_a_test_or_says_that_it_is_open():
    assert [number for number, answer in _answers().items() if not _named(answer) and "**open**" not in answer] == []


def test_few_rows_are_answered_in_words():
    assert sum("in words" in answer for answer in _answers().values()) <= MOST_IN_WORDS


def test_every_test_that_is_named_is_there():
    assert {test for answer in _answers().values() for test in _named(answer)} - _written() == set()


def test_every_test_that_carries_a_number_is_named_in_its_row():
    answers = {number: _named(answer) for number, answer in _answers().items()}
    carried = [(int(number), test) for test in _written() for number in NUMBERED.findall(test)]
    assert len(carried) > 25
    assert [f"F{number}: {test}" for number, test in sorted(carried) if test not in answers.get(number, ())] == []
