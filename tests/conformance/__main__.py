"""python -m tests.conformance FOLDER [--json FILE] [--seed N] [--kill] [--only PATTERN…]"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from engine.config import Settings
from tests.conformance.cases import Case, Run, read_cases
from tests.conformance.judge import Verdict
from tests.conformance.run import play
from tests.conformance.stage import stage

WORDS = ("passed", "failed", "contested")


def main(arguments: list[str]) -> int:
    """0: every uncontested case passed; 1: one failed; 2: the folder or an argument is not usable."""
    asked = _asked(arguments)
    try:
        cases = read_cases(asked.folder, asked.only)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
    begun = time.monotonic()
    verdicts: dict[str, list[tuple[Run, Verdict]]] = defaultdict(list)
    with stage(_settings(), kill=asked.kill) as theatre:
        for case, run, verdict in play(theatre, cases, seed=seed):
            verdicts[case.name].append((run, verdict))
            _tell(case, run, verdict)
        killed = theatre.killed
    told = [_case(case, verdicts[case.name]) for case in cases if case.name in verdicts]
    totals = _totals(told)
    for group, counted in totals.items():
        print(f"{group:20} " + "  ".join(f"{counted[word]:4} {word}" for word in WORDS))
    print(f"{len(told)} cases in {time.monotonic() - begun:.0f} s, RENAME_SEED={seed}, {killed} workers killed")
    if asked.json is not None:
        report = {"folder": str(asked.folder), "seed": seed, "kill": asked.kill, "workers_killed": killed, "totals": totals, "cases": told}
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if totals["all"]["failed"] else 0


def _asked(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with cases.json")
    parser.add_argument("--json", type=Path, help="write every verdict there")
    parser.add_argument("--seed", type=int, help="the ids of an earlier run again")
    parser.add_argument("--kill", action="store_true", help="kill the workers between wait states")
    parser.add_argument("--only", nargs="*", default=[], metavar="PATTERN", help="names of cases")
    return parser.parse_args(arguments)


def _settings() -> Settings:
    """The server: BATON_TEST_SERVER, as for the tests, else DATABASE_URL, else one of its own."""
    import os

    given = os.environ.get("BATON_TEST_SERVER")
    return Settings.from_env({**os.environ, "DATABASE_URL": given} if given else None)


def _tell(case: Case, run: Run, verdict: Verdict) -> None:
    if verdict.word == "passed":
        return
    number = f" ({run.number})" if len(case.runs) > 1 else ""
    print(f"{verdict.word}: {case.group} {case.name}{number}: expected {list(verdict.expected)}, found {list(verdict.found)}")
    for problem in verdict.problems[:5]:
        print(f"    {problem if isinstance(problem, str) else _problem(problem)}")
    sys.stdout.flush()


def _problem(problem: Any) -> str:
    return f"{problem['element']} (line {problem['line']}): {problem['what']}; expected {problem['why']}"


def _case(case: Case, runs: list[tuple[Run, Verdict]]) -> dict[str, Any]:
    """One case; `expected` and `found` have a list for each of its runs. A case has failed if one of them has."""
    words = {verdict.word for _, verdict in runs}
    found: dict[str, Any] = {
        "name": case.name,
        "group": case.group,
        "file": case.file,
        "verdict": next(word for word in ("contested", "failed", "passed") if word in words),
        "expected": [list(verdict.expected) for _, verdict in runs],
        "found": [list(verdict.found) for _, verdict in runs],
        "problems": [problem for _, verdict in runs for problem in verdict.problems],
    }
    if case.contested is not None:
        standard = case.by_the_standard
        found["contested_because"] = case.contested
        found["by_the_standard"] = list(standard) if standard is not None else None
    return found


def _totals(told: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for case in told:
        for group in (case["group"], "all"):
            counted[group][case["verdict"]] += 1
    counted["all"] += Counter()
    return {group: {word: counted[group][word] for word in WORDS} for group in [*sorted(set(counted) - {"all"}), "all"]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
