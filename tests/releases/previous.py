"""The release before this one: the commit that tests/previous-release names, unpacked, with a Python that has what it needs.

A clone without that commit (a shallow one) fetches it; where that fails, so do the tests, and say what to run.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.processes import clean_environment

ROOT = Path(__file__).parents[2]
NAMED = ROOT / "tests" / "previous-release"
PIN = re.compile(r"^([A-Za-z0-9._-]+(?:\[[^\]]*\])?==\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """A tree to run processes from. `python`: an interpreter with its requirements."""

    folder: Path
    python: str

    def baton(self, *arguments: str, typed: str = "", **environment: str) -> str:
        """What `baton …` of this release prints; it must succeed."""
        return self.runs("-m", "cli.main", *arguments, typed=typed, **environment)

    def says(self, expression: str, module: str) -> Any:
        """The value of an expression over one of its modules, as JSON has it."""
        return json.loads(self.runs("-c", f"import json; from {module} import *; print(json.dumps({expression}))"))

    def runs(self, *arguments: str, typed: str = "", **environment: str) -> str:
        """What its Python prints in its tree; it must succeed."""
        told = clean_environment(**environment)
        done = subprocess.run(
            [self.python, *arguments], cwd=self.folder, env=told, input=typed, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{arguments[:3]} of {self.folder.name}: {done.stdout[-5000:]}\n{done.stderr[-5000:]}"
        return done.stdout


THIS = Release(ROOT, sys.executable)


def named() -> str:
    """The commit's full name."""
    [commit] = [line.strip() for line in NAMED.read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert re.fullmatch(r"[0-9a-f]{40}", commit), f"{NAMED}: expected the 40 digits of a commit, found {commit!r}"
    return commit


def unpack(folder: Path) -> Release:
    """Its tree, made in `folder`; in an environment of its own if this one lacks a version that it pins."""
    commit = named()
    _be_sure_of(commit)
    with zipfile.ZipFile(io.BytesIO(_git("archive", "--format=zip", commit))) as tree:
        tree.extractall(folder)
    if _pins(folder) <= _pins(ROOT):
        return Release(folder, sys.executable)
    made = subprocess.run(["sh", "scripts/environment", "dev"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert made.returncode == 0, f"the environment of the previous release: {made.stdout}\n{made.stderr}"
    return Release(folder, str(folder / ".venv" / "bin" / "python"))


def _be_sure_of(commit: str) -> None:
    if subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True).returncode != 0:
        fetched = subprocess.run(["git", "fetch", "--quiet", "--depth=1", "origin", commit], cwd=ROOT, capture_output=True, text=True)
        assert fetched.returncode == 0, (
            f"{NAMED} names {commit}, which is not in this clone, and fetching it failed: {fetched.stderr.strip()}\n"
            f"Run: git fetch --depth=1 origin {commit}   (or: git fetch --unshallow)"
        )
    elif _git("rev-parse", "--is-shallow-repository").strip() == b"false":
        ancestor = subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], cwd=ROOT, capture_output=True)
        assert ancestor.returncode == 0, f"{NAMED} names {commit}: expected an ancestor of this tree, found another line of history"


def _pins(folder: Path) -> set[str]:
    return set(PIN.findall((folder / "requirements" / "runtime.txt").read_text()))


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.decode()}"
    return done.stdout
