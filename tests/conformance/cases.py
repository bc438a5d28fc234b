"""The format of a folder of cases: `cases.json` beside the BPMN files that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

CONSTRAINTS = "bpmn_constraints"  # the group whose files must be refused, each for the rule that it breaks

# Cases that the suite's own documentation calls wrong, with the trace that the standard asks for (None: see its note).
CONTESTED: Mapping[str, tuple[str, ...] | None] = {
    "AdHocSubProcess_Sequential": ("SCRIPT_task1", "SCRIPT_task2", "SCRIPT_task1"),
    "AdHocSubProcess_Parallel": ("SCRIPT_task1", "SCRIPT_task2", "SCRIPT_task1"),
    "Conditional_StartEvent_EventSubProcess_NonInterrupting": None,
    "MultiInstance_NoneBehavior": None,
    "MultiInstance_OneBehavior": None,
    "MultiInstance_ComplexBehavior": None,
    "WCP09_*MultiInstance": None,
    "WCP12_*": None,
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a case: what is started with which variables, how long it takes, what it must leave behind."""

    number: int
    variables: Mapping[str, Any]
    start: tuple[str, ...]  # ids of processes, in order
    delay_seconds: float
    expected: tuple[str, ...]  # lines, as a multiset


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    group: str
    file: str
    xml: bytes
    tokens: tuple[str, ...]  # what its scripts may say
    expressions: tuple[tuple[str, str], ...]  # (tag, text)
    runs: tuple[Run, ...]
    note: str

    @property
    def contested(self) -> str | None:
        """Why the case does not count: what its note or the suite's list of defects says."""
        listed = next((pattern for pattern in CONTESTED if fnmatch(self.name, pattern)), None)
        if listed is not None:
            return self.note or "named among the suite's known defects"
        # A note about what a case needs of an engine is no defect.
        return self.note if self.note and not self.note.startswith("needs ") else None

    @property
    def by_the_standard(self) -> tuple[str, ...] | None:
        """What a contested case should expect, where that is known."""
        return next((trace for pattern, trace in CONTESTED.items() if fnmatch(self.name, pattern)), None)


def read_cases(folder: Path, only: Sequence[str] = ()) -> list[Case]:
    """Every case of the folder, or those whose names match one of the patterns. Raises ValueError where it is none."""
    try:
        data = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
        cases = [_case(folder, each) for each in data["cases"]]
    except (OSError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(
            f"{folder}: expected cases.json and the files that it names, found {type(problem).__name__}: {problem}"
        ) from problem
    return [case for case in cases if not only or any(fnmatch(case.name, pattern) for pattern in only)]


def _case(folder: Path, each: Mapping[str, Any]) -> Case:
    return Case(
        name=each["name"],
        group=each["group"],
        file=each["file"],
        xml=(folder / each["file"]).read_bytes(),
        tokens=tuple(each.get("script_tokens") or ()),
        expressions=tuple((tag, text) for tag, text in each.get("expressions") or ()),
        runs=tuple(_run(number, run) for number, run in enumerate(each["test_cases"], 1)),
        note=(each.get("note") or "").strip(),
    )


def _run(number: int, run: Mapping[str, Any]) -> Run:
    return Run(
        number=run.get("number", number),
        variables=run.get("variables") or {},
        start=tuple(run.get("start") or ()),
        delay_seconds=(run.get("delay_ms") or 0) / 1000,
        expected=tuple(sorted(run["expected_trace_multiset"])),
    )
