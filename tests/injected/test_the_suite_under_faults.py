"""A chosen part of the engine's suite under each kind of fault; all of it, under a seed of choice, is `make injected SEED=1`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from sqlalchemy.engine import make_url

from tests.architecture.sources import ROOT
from tests.injected.apart import APART
from tests.injected.faults import KINDS

CHOSEN = ("test_tasks.py", "test_jobs.py", "test_external_tasks.py")


def run(server_url: str, template_url: str, kind: str, *files: str) -> subprocess.CompletedProcess[str]:
    there = {"BATON_TEST_SERVER": server_url, "BATON_TEST_TEMPLATE": make_url(template_url).database or ""}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.injected.plugin"]
        + [f"tests/commands/{name}" for name in files],
        env={**os.environ, **there, "BATON_INJECT": "1", "BATON_INJECT_KINDS": kind},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_commands_answer_as_ever_when_they_are_asked_again_after(kind: str, server_url: str, template_url: str) -> None:
    done = run(server_url, template_url, kind, *CHOSEN)
    assert done.returncode == 0, done.stdout[-5000:]
    found = re.search(rf"^ +(\d+) {kind}$", done.stdout, re.MULTILINE)
    assert found is not None and int(found[1]) > 20, done.stdout[-1000:]


def test_a_run_in_which_a_kind_of_fault_never_happened_has_failed(server_url: str, template_url: str) -> None:
    done = run(server_url, template_url, "lost after commit", "test_may.py")
    assert (done.returncode, "failed" in done.stdout) == (1, False), done.stdout[-2000:]


def test_whoever_is_let_off_is_there() -> None:
    for test in APART:
        file, _, name = test.partition("::")
        assert name in (ROOT / file).read_text(encoding="utf-8"), test
