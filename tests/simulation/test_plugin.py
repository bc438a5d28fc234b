"""The plugin in a project of its own: the example of the documentation runs, and nothing is loaded that was not asked for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing-processes.md").read_text()


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "engine.simulation.plugin", "-p", "no:cacheprovider", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def example(after: str) -> str:
    """The first block of code behind this heading of the page."""
    found = re.search(r"```\w*\n(.*?)```", PAGE.split(after, 1)[1], re.DOTALL)
    assert found, after
    return found[1]


def test_the_example_of_the_documentation_passes(tmp_path: Path):
    (tmp_path / "order.bpmn").write_bytes((Path(__file__).parent / "order.bpmn").read_bytes())
    (tmp_path / "test_order.py").write_text(example("## Testing a process: the pytest plugin"))
    result = pytest_in(tmp_path)
    assert result.returncode == 0, result.stdout
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed and int(passed[1]) >= 3


def test_a_test_that_is_wrong_fails_and_says_what_was_open(tmp_path: Path):
    (tmp_path / "order.bpmn").write_bytes((Path(__file__).parent / "order.bpmn").read_bytes())
    (tmp_path / "test_order.py").write_text('def test_it(process):\n    process("order.bpmn").start(amount=5).task("approve")\n')
    result = pytest_in(tmp_path)
    assert result.returncode == 1
    assert "expected an open task 'approve', found nothing" in result.stdout


def test_nothing_of_the_engine_is_loaded_until_the_fixture_is_asked_for(tmp_path: Path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    assert not [name for name in sys.modules if name.startswith(('engine.core', 'engine.bpmn', 'lxml'))]\n"
    )
    result = pytest_in(tmp_path)
    assert result.returncode == 0, result.stdout


def test_the_package_announces_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"baton": "engine.simulation.plugin"}
