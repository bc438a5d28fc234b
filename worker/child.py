"""The child process that runs handlers, one at a time. Started by worker.children; it never sees the database.

It dies with the worker even while a handler holds the interpreter lock: the kernel kills it (PR_SET_PDEATHSIG). Idle, it
sees the end of the pipe. Interrupts and SIGTERM of the whole group are the worker's business and are ignored here.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

from engine.config import ConfigurationError
from worker.calling import Failed, call, from_pickle, said_as_json, to_json
from worker.cell import LeaseCell
from worker.handlers import load_handlers
from worker.pipe import Pipe

PR_SET_PDEATHSIG = 1
READY = b"ready"


def main(pipe: int, cell: int, parent: int) -> None:
    """Say that the handlers are loaded, or why not; then run what comes until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with(parent)
    connection, lease = Pipe(socket.socket(fileno=pipe)), LeaseCell(cell)
    settings = pickle.loads(connection.receive())  # noqa: S301 - from the worker, which started us
    try:
        handlers = load_handlers(settings.handlers)
    except ConfigurationError as problem:
        connection.send(str(problem).encode())
        return
    connection.send(READY)

    def tell(said: Mapping[str, Any]) -> None:
        connection.send(said_as_json(said))

    while True:
        try:
            work = from_pickle(connection.receive())
        except EOFError:
            return
        known = handlers.get(work.topic)
        outcome = call(known, work, lease, settings, tell) if known else Failed(f"handler {work.topic!r} is not known here")
        connection.send(to_json(outcome))


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the worker's thread that started it ends, or exit if it already has."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed; handlers need Linux")
    if os.getppid() != parent:  # it died between our start and the call above
        sys.exit(0)
