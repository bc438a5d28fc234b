"""Put one mutant after another into a copy of the tree, and run the tests that should notice.

The tests that killed a mutant last time run first (killers.json); only if they pass, all of them run, those first that
killed other mutants of the same file. The first failure ends a run. A run that takes too long counts as killed: a lock
that nobody lets go of is noticed, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.mutants.find import ROOT, Mutant

HERE = Path(__file__).parent
KILLERS = HERE / "killers.json"
TESTS = ("tests/commands", "tests/races", "tests/db", "tests/scenarios_db")
APART = ("tests/races/test_fifty_users.py",)  # a whole gunicorn: too slow for every mutant
COPIED = ("engine", "migrations", "worker", "webapp", "cli", "templates", "static", "tests", "pyproject.toml")
SECONDS = {"killers": 120, "all": 900}
# Where to look first, by the beginning of a mutant's path; only the order of files, so it may be wrong.
LIKELY = {
    "engine/db/acquire.py": ("commands/test_acquire", "races/test_leaf_races", "races/test_waits", "commands/test_leases"),
    "engine/db/lo": ("db/test_guards_of_every_member", "races/test_waits", "db/test_batches", "commands/test_stale_numbers"),
    "engine/db/statements.py": ("db/test_guards_of_every_member", "races/test_waits"),
    "engine/db/sql/baton_cancel": ("commands/test_cancel_bounded", "races/test_cancelling"),
    "engine/db/sql": ("races/test_waits", "races/test_case_races", "db/test_batches", "commands/test_deliver_message"),
    "engine/db": ("db/test_batches", "commands/test_upkeep"),
    "engine/commands/de": ("commands/test_stale_numbers", "races/test_waits"),
    "engine/commands/step.py": ("races/test_waits", "races/test_case_races"),
    "engine/commands/tasks.py": ("commands/test_tasks", "races/test_leaf_races"),
    "engine/commands/upkeep.py": ("db/test_batches",),
    "engine/commands": ("db/test_batches", "races/test_waits", "races/test_leaf_races"),
}
# A failure of this kind says that the mutant is no valid SQL or Python, not that a test noticed it.
INVALID = re.compile(
    r"errors\.(?:SyntaxError|Undefined\w+|Ambiguous\w+|DatatypeMismatch|IndeterminateDatatype|GroupingError|InvalidColumnReference)"
    r"|ModuleNotFoundError|ImportError|IndentationError"
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::\S.*?)?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant. `word`: killed | survived | invalid. `by`: the test that noticed, or "time"."""

    mutant: Mutant
    word: str
    by: str
    seconds: float
    output: str = ""


class Proofs:
    """Which tests kill rightly: those that pass without any mutant. The others are broken, and judge nothing more."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.broken: set[str] = set()

    def sound(self, test: str, run: Callable[[Sequence[str], float], tuple[str, str, str]]) -> bool:
        """Whether it passes now, without a mutant; asked once for each test."""
        if test not in self.passed and test not in self.broken:
            word, _, _ = run([test], SECONDS["killers"])
            (self.passed if word == "survived" else self.broken).add(test)
        return test in self.passed


class Workshop:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, folder: Path, server: str, proofs: Proofs) -> None:
        self.folder, self.server, self.proofs = folder, server, proofs
        self.times = count(int(time.time()) - 10_000_000)
        skipped = shutil.ignore_patterns("__pycache__", "*.pyc", ".*cache")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=skipped)
            else:
                shutil.copy(ROOT / name, folder / name)

    def judge(self, mutant: Mutant, killers: dict[str, list[str]]) -> Verdict:
        """Try it, until it survives or is killed by a test that passes without it."""
        began = time.monotonic()
        while True:
            word, by, output = self._try(mutant, killers)
            if word != "killed" or by == "time" or self.proofs.sound(by, self.run):
                return Verdict(mutant, word, by, time.monotonic() - began, output)

    def _try(self, mutant: Mutant, killers: dict[str, list[str]]) -> tuple[str, str, str]:
        """Its killers first, then everything."""
        path = self.folder / mutant.path
        original = path.read_text(encoding="utf-8")
        self._write(path, mutant.applied(original))
        try:
            known = self._still_there(killers.get(mutant.name, ()))
            outcome = self.run(known, SECONDS["killers"]) if known else None
            if outcome is None or outcome[0] == "survived":
                outcome = self.run(ordered(self.folder, mutant, killers), SECONDS["all"])
        finally:
            self._write(path, original)
        return outcome

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        moment = next(self.times)  # a time of its own each: bytecode is told from its source by time and size
        os.utime(path, (moment, moment))

    def _still_there(self, tests: Iterable[str]) -> list[str]:
        """Known killers whose test is still in its file."""
        found = []
        for test in tests:
            file, _, name = test.partition("::")
            path = self.folder / file
            if path.exists() and f"def {name.split('[')[0]}(" in path.read_text(encoding="utf-8"):
                found.append(test)
        return found

    def run(self, tests: Sequence[str], seconds: float) -> tuple[str, str, str]:
        """(word, by, output) of one run of pytest."""
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rfE", "-o", "addopts=", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.patience", "-x", *(f"--ignore={each}" for each in APART)]
        command += [*(f"--deselect={each}" for each in self.proofs.broken), *tests]
        told = os.environ | {"BATON_TEST_SERVER": self.server}
        process = subprocess.Popen(command, cwd=self.folder, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "killed", "time", f"not done within {seconds} s"
        failed = _FAILED.findall(output)
        if process.returncode == 0:
            return "survived", "", output
        if process.returncode != 1 or not failed or INVALID.search(output):
            return "invalid", "", output
        return "killed", failed[0], output


def ordered(folder: Path, mutant: Mutant, killers: dict[str, list[str]]) -> list[str]:
    """All test files, the likely ones first: what is named like the mutant's file, LIKELY, what killed its neighbours."""
    neighbours = Counter(test.split("::")[0] for name, tests in killers.items() if name.split("::")[0] == mutant.path for test in tests)
    likely = next((files for path, files in LIKELY.items() if mutant.path.startswith(path)), ())
    places = {f"tests/{name}.py": place for place, name in enumerate(likely)}
    files = [path.relative_to(folder).as_posix() for tests in TESTS for path in sorted((folder / tests).glob("test_*.py"))]
    stem = f"test_{Path(mutant.path).stem}."

    def rank(file: str) -> tuple[bool, int, int]:
        return stem not in file, places.get(file, len(places)), -neighbours[file]

    return sorted((file for file in files if file not in APART), key=rank)


def read_killers() -> dict[str, list[str]]:
    return json.loads(KILLERS.read_text(encoding="utf-8")) if KILLERS.exists() else {}


def write_killers(killers: dict[str, list[str]]) -> None:
    KILLERS.write_text(json.dumps(killers, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
