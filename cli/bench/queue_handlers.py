"""Handlers of `baton bench queue`: they do nothing, or say when they were started."""

from __future__ import annotations

import os
import time
from typing import Any

from cli.processes import children_of
from worker.handlers import Context, handler


@handler("bench.nothing")
def nothing(context: Context) -> None:
    """In a child process, as handlers are by default."""


@handler("bench.waits")
def waits(context: Context) -> None:
    """Until every handler process of the worker has been started, each for a job like this one."""
    while sum(1 for _ in children_of(os.getppid())) < context.settings.handler_processes:
        context.check()
        time.sleep(0.01)


@handler("bench.nothing_inline", inline=True)
def nothing_inline(context: Context) -> None:
    """In a thread of the worker."""


@handler("bench.started")
def started(context: Context) -> dict[str, Any]:
    """Microseconds of this machine's clock, which is the server's too when both run on it."""
    return {"started_us": time.time_ns() // 1000}
