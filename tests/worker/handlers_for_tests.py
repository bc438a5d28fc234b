"""Handlers that the tests of the worker run in real child processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from worker.handlers import BpmnError, Context, GiveUp, RetryLater, handler


@handler("test.echo")
def echo(context: Context) -> dict[str, Any]:
    return {"echo": dict(context.variables), "key": context.idempotency_key, "attempt": context.attempt, "pid": os.getpid()}


@handler("test.bpmn_error")
def bpmn_error(context: Context) -> None:
    raise BpmnError("TOO_HIGH", "the limit is 10,000", {"limit": 10_000})


@handler("test.fails")
def fails(context: Context) -> None:
    raise LookupError("nothing on the shelf")


@handler("test.later")
def later(context: Context) -> None:
    raise RetryLater(42)


@handler("test.gives_up")
def gives_up(context: Context) -> None:
    raise GiveUp("the customer is gone")


@handler("test.says")
def says(context: Context) -> None:
    for number in range(int(context.inputs["lines"])):
        context.log(f"{number} {context.inputs['text']}", "warning")
    for number in range(1_000):
        context.progress(number / 1_000, "counting")
    context.progress(1, "done")


@handler("test.says_wrongly")
def says_wrongly(context: Context) -> None:
    if "progress" in context.inputs:
        context.progress(context.inputs["progress"])
    context.log("well", context.inputs["level"])


LATER: list[threading.Thread] = []


@handler("test.says_later")
def says_later(context: Context) -> None:
    returned = threading.Event()

    def say() -> None:
        returned.wait()
        context.log("too late")
        context.progress(0.5)

    LATER.append(threading.Thread(target=say))
    LATER[-1].start()
    HAS_RETURNED.append(returned)


HAS_RETURNED: list[threading.Event] = []


@handler("test.hears_itself")
def hears_itself(context: Context) -> None:
    """The next job of the process: it lets the thread of the one before speak, and waits until it has."""
    HAS_RETURNED.pop().set()
    LATER.pop().join()


@handler("test.says_and_waits")
def says_and_waits(context: Context) -> None:
    context.log("begun")
    context.progress(0.25, "waiting")
    while not Path(str(context.inputs["gate"])).exists():
        time.sleep(0.01)
    context.log("gone on", "debug")
    raise LookupError("nothing on the shelf")


@handler("test.says_inline", inline=True)
def says_inline(context: Context) -> None:
    context.log("inline")
    raise LookupError("nothing on the shelf")


@handler("test.exits")
def exits(context: Context) -> None:
    sys.exit(3)


@handler("test.dies")
def dies(context: Context) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@handler("test.kills_its_worker")
def kills_its_worker(context: Context) -> None:
    with open(str(context.inputs["log"]), "a") as log:
        log.write(f"{context.idempotency_key} {context.attempt}\n")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)  # the kernel ends us with the worker


@handler("test.returns_nonsense")
def returns_nonsense(context: Context) -> Any:
    return {"file": open(os.devnull)}


@handler("test.backtracks")
def backtracks(context: Context) -> dict[str, Any]:
    """One regular expression that holds the interpreter lock for `seconds`, measured beforehand on short texts."""
    with open(str(context.inputs["log"]), "a") as log:
        log.write(f"{context.idempotency_key} {context.attempt}\n")
    length, took = 14, 0.0
    while took < 0.05:
        length += 1
        took = _backtrack(length)
    while took < float(context.inputs["seconds"]):
        length, took = length + 1, took * 2
    return {"held_the_lock_for": _backtrack(length)}


def _backtrack(length: int) -> float:
    begun = time.monotonic()
    assert re.fullmatch(r"(a|aa)+b|(a+)+b", "a" * length) is None
    return time.monotonic() - begun


@handler("test.waits")
def waits(context: Context) -> dict[str, Any]:
    """Says that it runs (a file with its pid), then waits until another file appears or it is told to stop."""
    folder = Path(str(context.inputs["folder"]))
    (folder / f"running-{context.idempotency_key}-{context.attempt}").write_text(str(os.getpid()))
    while not (folder / "go").exists():
        context.check()
        time.sleep(0.02)
    return {"waited": True}


@handler("test.never_stops")
def never_stops(context: Context) -> None:
    """Ignores being told to stop, and has a child of its own."""
    child = subprocess.Popen(["sleep", "600"])
    Path(str(context.inputs["started"])).write_text(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(1)


@handler("test.inline", inline=True)
def inline(context: Context) -> dict[str, Any]:
    return {"pid": os.getpid()}


@handler("test.environment")
def environment(context: Context) -> dict[str, Any]:
    return {"database": os.environ.get("DATABASE_URL"), "settings": context.settings.database_url, "kept": os.environ.get("SHOP_TOKEN")}


@handler("test.stubborn")
def stubborn(context: Context) -> dict[str, Any]:
    """Looks at no lease: waits for the file that lets this attempt go, and returns its number."""
    folder = Path(str(context.inputs["folder"]))
    (folder / f"running-{context.idempotency_key}-{context.attempt}").write_text(str(os.getpid()))
    while not (folder / f"go-{context.attempt}").exists():
        time.sleep(0.02)
    return {"by_attempt": context.attempt}


@handler("test.add", inline=True)
def add(context: Context) -> dict[str, Any]:
    return {"total": context.variables["a"] + context.variables["b"]}


@handler("test.inline_waits", inline=True, deadline_seconds=0.5)
def inline_waits(context: Context) -> dict[str, Any]:
    """In a thread of the worker, past its deadline: waits until its file is there, whatever it is told."""
    folder = Path(str(context.inputs["folder"]))
    (folder / f"inline-{context.attempt}").touch()
    while not (folder / f"go-{context.attempt}").exists():
        time.sleep(0.02)
    return {"by_attempt": context.attempt, "was_told": context.cancelled}


@handler("test.alone")
def alone(context: Context) -> None:
    """Leaves a mark while it runs, and a line in `seen`: whether somebody else's mark was there."""
    folder = Path(str(context.inputs["folder"]))
    mark = folder / "inside"
    try:
        mark.touch(exist_ok=False)
        met = "alone"
    except FileExistsError:
        met = "not alone"
    with (folder / "seen").open("a") as seen:
        seen.write(f"{met} {context.idempotency_key} {os.getppid()}\n")
    time.sleep(0.02)  # it takes a moment, in which others could come
    mark.unlink(missing_ok=True)
