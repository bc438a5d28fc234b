"""The worker's side of the handler processes: a few children, each with a pipe of its own, started when needed.

Why no library's pool: docs/decisions, "Handler processes of our own". A child is used by one thread at a time; it is
killed at the hard deadline of its job, or when its lease was lost and it does not stop; a dead one is replaced at its
next use.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from engine.config import Settings
from worker.calling import LARGEST_RESULT, Call, Failed, Outcome, from_json, to_pickle
from worker.cell import LeaseCell, shared_file
from worker.child import READY
from worker.held import Held
from worker.pipe import Pipe
from worker.reports import Tell

START_SECONDS = 60.0
LOOK_SECONDS = 0.1  # how soon a lost lease or a deadline is noticed
STOP_SECONDS = 3.0  # what a handler gets between being told to stop and being killed

NOT_FOR_HANDLERS = ("DATABASE_URL", "BATON_SECRET_KEY", "BATON_MAIL_PASSWORD", "BATON_METRICS_TOKEN", "BATON_TEST_SERVER")

BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from worker.child import main; main(*map(int, sys.argv[2:]))"


class Children:
    """`count` children, else `settings.handler_processes`. No more threads may `run` at once, and they live as long as the children."""

    def __init__(self, settings: Settings, *, count: int | None = None) -> None:
        # What a handler could read in its own process is what it is meant to see.
        self._settings = replace(settings, database_url=None, secret_key=None, mail_password=None, metrics_token=None)
        # The one used last is used first: no more processes are started than run at once.
        self._all = [Child(self._settings) for _ in range(settings.handler_processes if count is None else count)]
        self._idle = deque(self._all)

    def run(self, call: Call, held: Held, *, seconds: float, tell: Tell) -> Outcome:
        """Run one handler in a child and wait for its outcome; never raises for anything that the handler does.

        `tell` gets what the handler says meanwhile.
        """
        child = self._idle.pop()
        try:
            return child.run(call, held, seconds=seconds, tell=tell)
        finally:
            self._idle.append(child)

    def kill(self) -> None:
        """End every process; the threads that wait for them find out by themselves."""
        for child in self._all:
            child.end()


class Child:
    """One process, or none yet."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Pipe | None = None
        self._cell = LeaseCell()

    def run(self, call: Call, held: Held, *, seconds: float, tell: Tell) -> Outcome:
        problem = self._ensure_started()
        if problem is not None:
            return Failed(problem)
        assert self._pipe is not None
        held.share(self._cell)
        try:
            self._pipe.send(to_pickle(call))
            return self._wait(self._pipe, held, seconds, tell)
        except (EOFError, OSError):
            return Failed(f"the handler's process ended while it ran {call.topic}: {self._ending()}")
        finally:
            held.unshare()

    def _wait(self, pipe: Pipe, held: Held, seconds: float, tell: Tell) -> Outcome:
        end = time.monotonic() + seconds
        told_at: float | None = None
        while True:
            if pipe.ready(LOOK_SECONDS) and (outcome := self._receive(pipe, tell)) is not None:
                return outcome
            now = time.monotonic()
            if now >= end:
                self.kill()
                return Failed(f"the handler ran longer than its deadline of {seconds:g} s and was killed")
            if held.cancelled:
                told_at = told_at or now
                if now >= told_at + STOP_SECONDS:
                    self.kill()
                    return Failed("the handler was told to stop and did not; it was killed", retry_in=0.0)

    def _receive(self, pipe: Pipe, tell: Tell) -> Outcome | None:
        """The outcome, or None for what the handler says before it."""
        try:
            received = from_json(pipe.receive(LARGEST_RESULT * 2))
            if not isinstance(received, Mapping):
                return received
            tell(received)
        except (ValueError, KeyError, TypeError) as problem:
            self.kill()  # what else comes out of this pipe cannot be trusted
            return Failed(f"the handler's process answered something unreadable: {problem}")
        return None

    def _ensure_started(self) -> str | None:
        """None, or why there is no process."""
        if self._alive():
            return None
        self.kill()
        self._start()
        assert self._pipe is not None
        try:
            self._pipe.send(pickle.dumps(self._settings))
            if not self._pipe.ready(START_SECONDS):
                self.kill()
                return f"the handler's process was not ready after {START_SECONDS:g} s"
            answer = self._pipe.receive()
        except (EOFError, OSError):
            return f"the handler's process ended while it started: {self._ending()}"
        if answer != READY:
            self.kill()
            return answer.decode()
        return None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        memory = shared_file()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, json.dumps(sys.path), str(theirs.fileno()), str(memory), str(os.getpid())],
                pass_fds=(theirs.fileno(), memory),
                stdin=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name not in NOT_FOR_HANDLERS},
                start_new_session=True,  # an interrupt at the terminal is for the worker; a kill reaches its own children
            )
            self._cell = LeaseCell(memory)
            self._pipe = Pipe(ours)
        finally:
            theirs.close()
            os.close(memory)

    def _ending(self) -> str:
        """Reap the process and say how it ended."""
        process = self._process
        if process is None:
            return "killed by the worker"
        self.kill()
        code = process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _alive(self) -> bool:
        # Looked at without being reaped: until then nobody else can have its number, and `end` may use it.
        return self._process is not None and os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def end(self) -> None:
        """Send SIGKILL to the process, unless it was reaped, and to whatever it started. Safe from any thread."""
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process and reap it. Only by the thread that uses this child."""
        self.end()
        process, self._process = self._process, None
        if process is not None:
            process.wait()
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
