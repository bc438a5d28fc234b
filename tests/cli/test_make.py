"""The scripts behind the Makefile and CI: what they say when something is missing, and that a failure stays one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]


@pytest.fixture
def tools(tmp_path) -> Path:
    """A PATH with next to nothing on it."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("id", "dirname", "cat", "cut", "sha256sum", "rm", "chmod"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The scripts and the pins, without an environment."""
    for folder in ("scripts", "requirements", ".ci"):
        shutil.copytree(HERE / folder, tmp_path / "checkout" / folder)
    return tmp_path / "checkout"


def program(folder: Path, name: str, text: str) -> Path:
    made = folder / name
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return made


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(script), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=script.parent
    )


def test_chromium_is_taken_from_the_variable_or_the_path(tools):
    given = program(tools, "my-browser", "exit 0")
    assert run(HERE / "scripts/chromium", PATH=str(tools), BATON_CHROMIUM=str(given)).stdout.strip() == str(given)
    found = program(tools, "chromium", "exit 0")
    assert run(HERE / "scripts/chromium", PATH=str(tools)).stdout.strip() == str(found)


def test_without_chromium_the_one_line_to_run_is_said(tools):
    for environment in ({}, {"BATON_CHROMIUM": str(tools / "nothing")}):
        done = run(HERE / "scripts/chromium", PATH=str(tools), **environment)
        assert (done.returncode, done.stdout) == (1, "")
        assert "BATON_CHROMIUM" in done.stderr
    assert "apt-get install chromium" in run(HERE / "scripts/chromium", PATH=str(tools)).stderr


def test_a_missing_and_an_old_python_are_named(checkout, tools):
    missing = run(checkout / "scripts/environment", "runtime", PATH=str(tools))
    assert missing.returncode == 1
    assert "apt-get install python3 python3-venv" in missing.stderr
    old = program(tools, "old-python", 'case "$1" in -V) echo "Python 3.9.2";; *) exit 1;; esac')
    too_old = run(checkout / "scripts/environment", "runtime", PATH=str(tools), PYTHON=str(old))
    assert too_old.returncode == 1
    assert "expected 3.11 or later, found Python 3.9.2" in too_old.stderr
    assert not (checkout / ".venv").exists()


def test_an_environment_whose_pins_are_installed_is_left_alone(checkout, tools):
    (checkout / ".venv" / "bin").mkdir(parents=True)
    program(checkout / ".venv" / "bin", "python", "exit 0")
    pins = subprocess.run(["sha256sum", str(checkout / "requirements/dev.txt")], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]
    (checkout / ".venv" / "baton-dev").write_text(f"{pins}\n")
    for wanted in ("dev", "runtime"):  # what is for development holds what is needed to run
        done = run(checkout / "scripts/environment", wanted, PATH=str(tools))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_environment_of_a_checkout_has_the_command_that_the_readme_names(checkout, tools, tmp_path):
    (checkout / ".venv" / "bin").mkdir(parents=True)
    program(checkout / ".venv" / "bin", "python", 'test "$1" = -c || echo "$PYTHONPATH" "$@"')
    pins = subprocess.run(["sha256sum", str(checkout / "requirements/runtime.txt")], capture_output=True, text=True, check=True).stdout
    (checkout / ".venv" / "baton-runtime").write_text(f"{pins.split()[0]}\n")
    assert run(checkout / "scripts/environment", "runtime", PATH=str(tools)).returncode == 0
    said = subprocess.run(  # from anywhere, not from the checkout alone
        [checkout / ".venv/bin/baton", "config"], env={"PATH": str(tools)}, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert said.stdout.strip() == f"{checkout} -m cli.main config"


def test_ci_fails_with_the_exit_code_of_make(checkout, tools):
    program(tools, "make", 'echo "$@"; exit 7')
    (tools / "python3").symlink_to(sys.executable)
    done = run(checkout / ".ci/run", PATH=str(tools), LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""))
    assert (done.returncode, done.stdout.strip()) == (7, "check test")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("def test_it():\n    pass\n", 0),
        ("import pytest\n\ndef test_it():\n    pytest.skip('not today')\n", 1),
        ("import pytest\n\n@pytest.mark.skipif(True, reason='never')\ndef test_it():\n    pass\n", 1),
        ("import pytest\n\n@pytest.mark.xfail\ndef test_it():\n    assert False\n", 1),
        ("import pytest\n\npytest.skip('the whole file', allow_module_level=True)\n", 5),
        ("import pytest\n\npytest.importorskip('no_such_module')\n\ndef test_it():\n    pass\n", 5),
    ],
)
def test_a_run_with_a_test_that_was_not_run_has_failed(tmp_path, body, code):
    (tmp_path / "test_one.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.no_skips", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout
    assert ("not run, which counts as failed" in done.stdout) == (code != 0)


def test_a_skipped_file_beside_a_test_that_ran_fails_the_run(tmp_path):
    (tmp_path / "test_one.py").write_text("import pytest\n\npytest.importorskip('no_such_module')\n")
    (tmp_path / "test_two.py").write_text("def test_it():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.no_skips", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    assert subprocess.run(command, cwd=HERE, capture_output=True, timeout=60, check=False).returncode == 1


def test_pgbouncer_is_taken_from_the_variable_and_without_it_the_one_line_to_run_is_said(tools):
    given = program(tools, "pooler", "exit 0")
    assert run(HERE / "scripts/pgbouncer", PATH=str(tools), BATON_PGBOUNCER=str(given)).stdout.strip() == str(given)
    missing = run(HERE / "scripts/pgbouncer", PATH=str(tools), BATON_PGBOUNCER=str(tools / "nothing"))
    assert missing.returncode == 1 and "BATON_PGBOUNCER" in missing.stderr


def test_the_clients_of_other_makers_need_node_and_npm_and_are_left_alone_when_they_are_there(checkout, tools):
    for name in ("package.json", "package-lock.json"):
        (checkout / "tests" / "clients").mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "tests" / "clients" / name, checkout / "tests" / "clients" / name)
    missing = run(checkout / "scripts/clients", PATH=str(tools))
    assert missing.returncode == 1 and "apt-get install nodejs npm" in missing.stderr
    program(tools, "npm", "exit 0")
    program(tools, "node", 'case "$1" in --version) echo v16.1.0;; *) exit 1;; esac')
    old = run(checkout / "scripts/clients", PATH=str(tools))
    assert old.returncode == 1 and "expected 18 or later, found v16.1.0" in old.stderr
    program(tools, "node", "exit 0")
    pins = ("requirements/clients.txt", "tests/clients/package.json", "tests/clients/package-lock.json")
    content = b"".join((checkout / name).read_bytes() for name in pins)
    (checkout / ".clients").mkdir()
    (checkout / ".clients" / "pins").write_text(hashlib.sha256(content).hexdigest() + "\n")
    there = run(checkout / "scripts/clients", PATH=str(tools))
    assert (there.returncode, there.stdout, there.stderr) == (0, "", "")
