"""Expressions that mean harm are refused, by the right error, within bounded steps, time and memory (tests/expressions/attacks.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.expressions import limits
from tests.expressions.attacks import JUEL
from tests.expressions.feel_attacks import FEEL

WORKED = 24_000_000  # bytes that an attack may take; the longest text that an expression makes takes four


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """What they came to in a process that the kernel ends after so many seconds of work, and at so much memory."""
    run = subprocess.run([sys.executable, "-m", "tests.expressions.attacks"], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2_000:]
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize(("name", "error"), [(name, error) for name, _, error in JUEL])
def test_an_attack_on_juel_is_refused_within_bounded_steps_time_and_memory(outcomes: dict[str, Any], name: str, error: str) -> None:
    outcome = outcomes["juel"][name]
    assert outcome["error"] == error, outcome["message"]
    assert outcome["peak"] < WORKED
    assert outcome["steps"] <= limits.STEPS or error == "LimitExceeded"
    assert len(outcome["message"]) < 1_000


@pytest.mark.parametrize(("name", "expected"), [(name, expected) for name, _, expected in FEEL])
def test_an_attack_on_feel_is_refused_or_null_within_bounded_steps_time_and_memory(
    outcomes: dict[str, Any], name: str, expected: str
) -> None:
    outcome = outcomes["feel"][name]
    assert (outcome["error"] if outcome["error"] != "none" else outcome["value"]) == expected, outcome
    assert outcome["peak"] < WORKED
    assert outcome["steps"] <= limits.STEPS or expected == "LimitExceeded"
    assert len(outcome["message"]) < 1_000


def test_every_attack_has_a_name_of_its_own() -> None:
    for attacks in (JUEL, FEEL):
        assert len({name for name, _, _ in attacks}) == len(attacks) > 80
