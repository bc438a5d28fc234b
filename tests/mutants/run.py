"""Put one mutant after another into a copy of the tree, and run the tests that should notice.

The tests that killed a mutant last time run first (killers.json); only if they pass, all of them run, those first that
killed other mutants of the same file, and the short fault tests (FAULTS) last. The first failure ends a run. A run that
takes too long counts as killed: a lock that nobody lets go of is noticed, too.

A workshop migrates one database; every run copies it, with the mutant's functions installed anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg

from tests.databases import in_database
from tests.mutants.find import ROOT, Mutant

HERE = Path(__file__).parent
KILLERS = HERE / "killers.json"
TESTS = ("tests/commands", "tests/races", "tests/db", "tests/scenarios_db")
# Real processes that die, stall and are held up; slow, so only for what the others let live.
FAULTS = tuple(
    f"tests/faults/test_processes.py::{name}"
    for name in (
        "test_R6_a_worker_killed_while_its_statement_waits_in_the_server_has_caused_one_transition",
        "test_R2_a_replica_held_before_its_acquisition_commits_holds_up_nobody",
        "test_R4_a_worker_stopped_past_its_lease_and_continued_changes_nothing_of_what_moved_on[effect.after]",
        "test_R4_a_worker_stopped_past_its_lease_and_continued_changes_nothing_of_what_moved_on[command.before_commit]",
        "test_R6_kill_9_at_every_fail_point_loses_nothing_and_does_nothing_twice",
    )
)
APART = ("tests/races/test_fifty_users.py",)  # a whole gunicorn: too slow for every mutant
COPIED = ("engine", "migrations", "worker", "webapp", "cli", "templates", "static", "tests", "pyproject.toml")
SECONDS = {"killers": 120, "all": 1800}
TIME = "time"  # "killed by": no test, the run did not end
# Where to look first, by the beginning of a mutant's path; only the order of files, so it may be wrong.
LIKELY = {
    "engine/db/acquire.py": ("commands/test_acquire", "races/test_leaf_races", "races/test_waits", "commands/test_leases"),
    "engine/db/lo": ("db/test_guards_of_every_member", "races/test_waits", "db/test_batches", "commands/test_stale_numbers"),
    "engine/db/statements.py": ("db/test_guards_of_every_member", "races/test_waits"),
    "engine/db/sql/baton_cancel": ("commands/test_cancel_bounded", "races/test_cancelling"),
    "engine/db/sql/baton_hold": ("races/test_holding", "commands/test_pause", "races/test_suspending", "commands/test_suspend_definition"),
    "engine/db/sql/baton_free": ("races/test_holding", "commands/test_pause", "commands/test_suspend"),
    "engine/db/sql/baton_take_turn": ("commands/test_exclusive", "races/test_exclusive"),
    "engine/db/sql": ("races/test_waits", "races/test_case_races", "db/test_batches", "commands/test_deliver_message"),
    "engine/db": ("db/test_batches", "commands/test_upkeep"),
    "engine/commands/de": ("commands/test_stale_numbers", "races/test_waits"),
    "engine/commands/step.py": ("races/test_waits", "races/test_case_races"),
    "engine/commands/suspend": ("commands/test_suspend_guards", "commands/test_suspend_definition", "races/test_suspending"),
    "engine/commands/reception.py": ("commands/test_suspend_guards", "commands/test_signals", "races/test_receptions"),
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
class Outcome:
    """Of one run of pytest. `word`: killed | survived | invalid. `by`: the tests that failed, or "time"."""

    word: str
    by: tuple[str, ...] = ()
    output: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant. `word`: killed | survived | invalid. `by`: the test that noticed, or "time"."""

    mutant: Mutant
    word: str
    by: str
    seconds: float
    output: str = ""


class Proofs:
    """Which tests kill rightly: those that pass without any mutant, every time. The others are broken, and judge nothing more."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.broken: set[str] = set()

    def prove(self, tests: Sequence[str], workshop: Workshop) -> None:
        """Run them all, without a mutant."""
        outcome = workshop.run(tests, SECONDS["all"], stop_at_first=False)
        if outcome.word == "survived":
            self.passed.update(tests)
        elif outcome.word == "killed" and outcome.by != (TIME,):
            self.broken.update(outcome.by)
            self.passed.update(set(tests) - set(outcome.by))

    def sound(self, test: str, workshop: Workshop) -> bool:
        """Whether it passes now, without a mutant; asked once for each test."""
        if test not in self.passed | self.broken:
            (self.passed if workshop.run([test], SECONDS["killers"]).word == "survived" else self.broken).add(test)
        return test in self.passed - self.broken


class Stopped(Exception):
    """Somebody has asked the whole run to end."""


class Workshop:
    """A copy of the tree in which mutants are tried. `template`: a migrated database on `server`, to be copied.

    `judges`: tests or files that are asked instead of all, if there are any.
    """

    def __init__(self, folder: Path, server: str, template: str, proofs: Proofs, *, judges: Sequence[str] = ()) -> None:
        self.folder, self.server, self.template, self.proofs, self.judges = folder, server, template, proofs, judges
        self.times = count(int(time.time()) - 10_000_000)
        self.stopped = False
        self.running: subprocess.Popen[str] | None = None
        folder.mkdir()
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
            known = self._still_there(killers.get(mutant.name, ()))
            outcome = self._try([mutant], known, SECONDS["killers"]) if known else Outcome("survived")
            if outcome.word != "killed":  # or a killer by that name and those parameters is no more
                outcome = self._confirmed(mutant, self._try([mutant], self.judges or ordered(self.folder, mutant, killers), SECONDS["all"]))
            if outcome.word != "killed" or outcome.by == (TIME,) or self.proofs.sound(outcome.by[0], self):
                return Verdict(mutant, outcome.word, outcome.by[0] if outcome.by else "", time.monotonic() - began, outcome.output)

    def _confirmed(self, mutant: Mutant, outcome: Outcome) -> Outcome:
        """What failed among all must fail alone, too; a test that does not is unsteady, and judges nothing more."""
        if outcome.word == "killed" and outcome.by != (TIME,) and self._try([mutant], outcome.by, SECONDS["killers"]).word == "survived":
            self.proofs.broken.update(outcome.by)
        return outcome

    def judge_together(self, several: Sequence[Mutant]) -> list[Verdict]:
        """Those of which each is thought to survive: all in one run, and in halves where that run does not pass.

        What notices one of them notices it beside the others: each takes something away.
        """
        if len(several) == 1:
            return [self.judge(several[0], {})]
        began = time.monotonic()
        while True:
            outcome = self._try(several, self.judges or ordered(self.folder, several[0], {}), SECONDS["all"])
            if outcome.word == "survived":
                return [Verdict(mutant, "survived", "", time.monotonic() - began) for mutant in several]
            if outcome.word != "killed" or outcome.by == (TIME,) or self.proofs.sound(outcome.by[0], self):
                break
        middle = len(several) // 2
        return self.judge_together(several[:middle]) + self.judge_together(several[middle:])

    def _try(self, several: Sequence[Mutant], tests: Sequence[str], seconds: float) -> Outcome:
        with self._applied(several), self._database(several) as template:
            return self.run(tests, seconds, template=template)

    @contextmanager
    def _applied(self, several: Sequence[Mutant]) -> Iterator[None]:
        """The mutants stand in the files of this copy."""
        originals = {self.folder / mutant.path: (self.folder / mutant.path).read_text(encoding="utf-8") for mutant in several}
        changed = dict(originals)
        for mutant in sorted(several, key=lambda each: each.begin, reverse=True):
            path = self.folder / mutant.path
            changed[path] = mutant.applied(changed[path])
        try:
            for path, text in changed.items():
                self._write(path, text)
            yield
        finally:
            for path, text in originals.items():
                self._write(path, text)

    @contextmanager
    def _database(self, several: Sequence[Mutant]) -> Iterator[str]:
        """The template, or for functions a copy of it in which they are installed anew."""
        functions = sorted({mutant.path for mutant in several if mutant.path.endswith(".sql")})
        if not functions:
            yield self.template
            return
        name = f"{self.template}_functions"
        with self._admin() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {self.template} STRATEGY file_copy".encode())
        try:
            with psycopg.connect(in_database(self.server, name), autocommit=True) as conn:
                for path in functions:
                    conn.execute((self.folder / path).read_bytes())
            yield name
        finally:
            with self._admin() as admin:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _admin(self) -> psycopg.Connection:
        return psycopg.connect(self.server, autocommit=True)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        moment = next(self.times)  # a time of its own each: bytecode is told from its source by time and size
        os.utime(path, (moment, moment))

    def _still_there(self, tests: Iterable[str]) -> list[str]:
        """Known killers whose test is still in its file."""
        return [test for test in tests if is_there(self.folder, test)]

    def run(self, tests: Sequence[str], seconds: float, *, template: str = "", stop_at_first: bool = True) -> Outcome:
        """One run of pytest."""
        if self.stopped:
            raise Stopped
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rfE", "-o", "addopts=", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.patience", *(f"--ignore={each}" for each in APART), *(["-x"] if stop_at_first else [])]
        command += [*(f"--deselect={each}" for each in self.proofs.broken), *tests]
        told = os.environ | {"BATON_TEST_SERVER": self.server, "BATON_TEST_TEMPLATE": template or self.template}
        self.running = process = subprocess.Popen(
            command, cwd=self.folder, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._clear_away(process)
            return Outcome("killed", (TIME,), f"not done within {seconds} s")
        if self.stopped:
            self._clear_away(process)
            raise Stopped
        failed = _FAILED.findall(output)
        if process.returncode == 0:
            return Outcome("survived", output=output)
        if process.returncode != 1 or not failed or INVALID.search(output):
            return Outcome("invalid", output=output)
        return Outcome("killed", tuple(dict.fromkeys(failed)), output)

    def stop(self) -> None:
        """End what is running and begin nothing more; called from another thread."""
        self.stopped = True
        if self.running is not None and self.running.poll() is None:
            os.killpg(self.running.pid, signal.SIGKILL)

    def _clear_away(self, process: subprocess.Popen[str]) -> None:
        """A run that is not waited for: its processes, and the databases that it made."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        with self._admin() as admin:
            for (name,) in admin.execute("SELECT datname FROM pg_database WHERE datname ^@ %s", (f"baton_test_{process.pid}_",)).fetchall():
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def is_there(folder: Path, test: str) -> bool:
    """Whether a test of that name is still in its file."""
    file, _, name = test.partition("::")
    path = folder / file
    return path.exists() and f"def {name.split('[')[0]}(" in path.read_text(encoding="utf-8")


def ordered(folder: Path, mutant: Mutant, killers: dict[str, list[str]]) -> list[str]:
    """All judges, the likely files first: what is named like the mutant's, LIKELY, what killed its neighbours."""
    neighbours = Counter(test.split("::")[0] for name, tests in killers.items() if name.split("::")[0] == mutant.path for test in tests)
    likely = next((files for path, files in LIKELY.items() if mutant.path.startswith(path)), ())
    places = {f"tests/{name}.py": place for place, name in enumerate(likely)}
    files = [path.relative_to(folder).as_posix() for tests in TESTS for path in sorted((folder / tests).glob("test_*.py"))]
    stem = f"test_{Path(mutant.path).stem}."

    def rank(file: str) -> tuple[bool, int, int]:
        return stem not in file, places.get(file, len(places)), -neighbours[file]

    return [*sorted((file for file in files if file not in APART), key=rank), *FAULTS]


def read_killers() -> dict[str, list[str]]:
    return json.loads(KILLERS.read_text(encoding="utf-8")) if KILLERS.exists() else {}


def write_killers(killers: dict[str, list[str]]) -> None:
    KILLERS.write_text(json.dumps(killers, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
