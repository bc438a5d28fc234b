"""docs/scenarios.md says which test proves which scenario: what it names is there, and nothing that was promised is missing."""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT, name, python_files

PROMISED = (2, 3, 5, 6, 8, 9, 11, 13, 17, 18, 20, 22, 23, 27, 28, 34, 37, 47, 48, 49, 55, 57, 59, 61, 63, 69, 71)
NUMBERED = re.compile(r"(?<=_)S0*(\d+)(?=_)")
DEFINED = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)


def listed() -> dict[int, set[tuple[str, str]]]:
    """scenario -> (file, test)s of docs/scenarios.md."""
    found: dict[int, set[tuple[str, str]]] = {}
    number, file = 0, ""
    for line in (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## S(\d+) ", line):
            number = int(heading[1])
            found[number] = set()
        elif path := re.fullmatch(r"`(tests/\S+\.py)`", line):
            file = path[1]
        elif test := re.fullmatch(r"- `(test_\w+)`", line):
            found[number].add((file, test[1]))
    return found


def test_every_test_that_is_listed_is_there_and_carries_the_number():
    written = {name(path): set(DEFINED.findall(path.read_text(encoding="utf-8"))) for path in python_files("tests")}
    wrong = [
        f"S{number}: {file}::{test}"
        for number, tests in listed().items()
        for file, test in tests
        if test not in written.get(file, ()) or f"_S{number}_" not in f"_{test.removeprefix('test_')}_".replace("_S0", "_S")
    ]
    assert not wrong


def test_every_promised_scenario_has_a_test():
    assert [number for number in PROMISED if not listed().get(number)] == []


def test_every_test_that_carries_a_number_is_listed():
    page = listed()
    missing = [
        f"S{number}: {name(path)}::{test}"
        for path in python_files("tests")
        for test in DEFINED.findall(path.read_text(encoding="utf-8"))
        for number in map(int, NUMBERED.findall(test))
        if (name(path), test) not in page.get(number, ())
    ]
    assert not missing, "expected them in docs/scenarios.md"
