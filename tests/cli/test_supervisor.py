"""The supervisor: starts again what ends, stops everything, leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli import supervisor as module
from cli.processes import alive
from cli.supervisor import MARK, Child, Supervisor, end_leftovers

HERE = Path(__file__).parents[2]
SLEEPS = [sys.executable, "-c", "import time; print('began', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('began', flush=True); time.sleep(600)",
]
WITH_A_CHILD = [
    sys.executable,
    "-c",
    "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)",
]


def until(true: Callable[[], object], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true())


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def boss(said) -> Iterator[Supervisor]:
    made = Supervisor(said.append)
    yield made
    made.stop(hurry=lambda: True)


def child(tmp_path: Path, command: list[str], name: str = "one", **more) -> Child:
    return Child(name, command, dict(os.environ), tmp_path / f"{name}.log", **more)


def log_of(child: Child) -> str:
    return child.log.read_text() if child.log.exists() else ""


def test_a_dead_child_starts_again_after_a_pause_that_doubles(boss, said, tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    one = child(tmp_path, [sys.executable, "-c", "raise SystemExit(3)"])
    boss.start(one)
    for pause in (0.5, 1.0, 2.0):
        one.process.wait()
        boss.check()
        assert one.process is None
        assert f"(exit code 3); it starts again in {pause:g} s" in said[-1]
        now[0] += pause - 0.01
        boss.check()
        assert one.process is None
        now[0] += 0.02
        boss.check()
        assert one.process is not None
    one.process.wait()


def test_a_child_that_ran_steadily_starts_again_after_the_first_pause(boss, said, tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    one = child(tmp_path, SLEEPS, pause=8.0)
    boss.start(one)
    now[0] += module.STEADY_SECONDS + 1
    one.process.kill()
    one.process.wait()
    boss.check()
    assert "(killed by SIGKILL); it starts again in 0.5 s" in said[-1]


def test_what_a_dead_child_left_behind_is_ended_before_it_starts_again(boss, tmp_path):
    one = child(tmp_path, WITH_A_CHILD)
    boss.start(one)
    assert until(lambda: log_of(one).strip())
    grandchild = int(log_of(one))
    one.process.kill()
    one.process.wait()
    boss.check()
    assert until(lambda: not alive(grandchild))


def test_stop_ends_everything_in_reverse_and_the_stubborn_after_their_grace(tmp_path, said):
    boss = Supervisor(said.append)
    gentle, stubborn = child(tmp_path, SLEEPS, "gentle"), child(tmp_path, STUBBORN, "stubborn", grace_seconds=0.3)
    for each in (gentle, stubborn):
        boss.start(each)
        assert until(lambda each=each: "began" in log_of(each))
    boss.stop(hurry=lambda: False)
    assert gentle.process.returncode == -signal.SIGTERM
    assert stubborn.process.returncode == -signal.SIGKILL
    assert said == ["stubborn did not stop in time and is killed"]


PARENT = """
import os, sys, time
from pathlib import Path
from cli.supervisor import Child, Supervisor
boss = Supervisor(print)
one = Child("one", eval(sys.argv[1]), dict(os.environ), Path(sys.argv[2]))
boss.start(one)
print(one.process.pid, flush=True)
time.sleep(600)
"""


def killed_parent(command: list[str], log: Path, **environment: str) -> int:
    """A supervisor in a process of its own, killed once its child has begun; the child's pid."""
    arguments = [sys.executable, "-c", PARENT, repr(command), str(log)]
    with subprocess.Popen(arguments, cwd=HERE, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert until(lambda: log.exists() and log.read_text().strip())
        parent.kill()
    return pid


def test_a_child_dies_with_its_killed_supervisor(tmp_path):
    pid = killed_parent(SLEEPS, tmp_path / "log")
    assert until(lambda: not alive(pid))


def test_what_survives_a_killed_supervisor_is_ended_by_the_next_one(tmp_path, said):
    mark = str(tmp_path / "home")
    pid = killed_parent(STUBBORN, tmp_path / "log", **{MARK: mark})
    assert alive(pid)
    end_leftovers(mark, say=said.append, grace_seconds=0.2)
    assert until(lambda: not alive(pid))
    assert said == ["ending 1 processes that an earlier start left behind"]
    end_leftovers(str(tmp_path), say=said.append)  # another home's are nobody's business
    assert len(said) == 1
