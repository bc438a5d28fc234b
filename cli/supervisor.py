"""Keeps child processes running: starts them, starts those again that end, stops them all in order.

A child leads a session of its own, so that Ctrl-C reaches only the supervisor, and so that its whole group can be ended.
It dies with the supervisor (PR_SET_PDEATHSIG). What survives a supervisor that was killed all the same, the children's
own children for example, is recognised by a mark in its environment and ended by the next start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.processes import alive, dying_with_parent

MARK = "BATON_UP"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 30.0  # who ran as long as this starts again after the first pause
LOG_LIMIT = 10_000_000

Say = Callable[[str], None]


@dataclass
class Child:
    """One process to keep running. `last_signal`: what it gets when the supervisor is gone."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    last_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    pause: float = FIRST_PAUSE
    due_at: float = field(default=0.0)  # monotonic; when to start it (again)

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_LIMIT:
                self.log.replace(self.log.with_suffix(".log.old"))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.command),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dying_with_parent(self.last_signal),
            )
        self.started_at = time.monotonic()

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        with suppress(FileNotFoundError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


class Supervisor:
    """The children, in the order in which they are started; they are stopped the other way round."""

    def __init__(self, say: Say) -> None:
        self.children: list[Child] = []
        self._say = say

    def start(self, child: Child) -> None:
        child.start()
        self.children.append(child)

    def check(self) -> None:
        """Start again what has ended, after a pause that doubles while it keeps ending."""
        now = time.monotonic()
        for child in self.children:
            if child.process is not None and child.process.poll() is not None:
                self._schedule(child, now)
            if child.process is None and now >= child.due_at:
                child.start()

    def _schedule(self, child: Child, now: float) -> None:
        assert child.process is not None
        code = child.process.returncode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        end_group(child.process.pid)  # what it left behind holds its port or its leases
        if now - child.started_at > STEADY_SECONDS:
            child.pause = FIRST_PAUSE
        self._say(f"{child.name} has ended ({how}); it starts again in {child.pause:g} s. Its log: {child.log}")
        child.process, child.due_at = None, now + child.pause
        child.pause = min(child.pause * 2, LONGEST_PAUSE)

    def stop(self, *, hurry: Callable[[], bool]) -> None:
        """Stop all, last started first, each within its grace; at once when `hurry` says so."""
        for child in reversed(self.children):
            child.signal(signal.SIGTERM)
            end = time.monotonic() + child.grace_seconds
            while child.process is not None and child.process.poll() is None:
                if hurry() or time.monotonic() > end:
                    self._say(f"{child.name} did not stop in time and is killed")
                    break
                time.sleep(0.02)
            if child.process is not None:
                end_group(child.process.pid)
                child.process.wait()


def end_group(group: int) -> None:
    """SIGKILL to what is left of a process group; nothing if nothing is."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_leftovers(mark: str, *, say: Say, grace_seconds: float = 3.0) -> None:
    """End every process that an earlier supervisor with this mark left behind. Whoever calls holds its lock."""
    found = _marked(mark)
    if not found:
        return
    say(f"ending {len(found)} processes that an earlier start left behind")
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + grace_seconds
    while time.monotonic() < end and any(alive(pid) for pid in found):
        time.sleep(0.02)
    for pid in _marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is another account's
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return [pid for pid in found if alive(pid)]
