"""Named places where a test may make this process die, stop, wait or fail. Off, a fail-point costs one truth test.

BATON_FAILPOINTS="effect.after=kill,acquire.before_commit=hold:/tmp/fifo" arms them for one process:
  name=kill        the process kills itself (SIGKILL)
  name=stop        the process stops itself (SIGSTOP); SIGCONT goes on
  name=hold:/path  waits at a FIFO: whoever opens it for writing knows that the process arrived, and lets it go by closing
  name=raise       raises FailPointRaised
`name#3=…` acts at the third passage and at every later one; `…:once` acts once in this process.
Settings refuses the variable in production.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "acquire.before_commit": "rows are leased in a transaction that has not committed",
        "acquire.after_commit": "the leases are committed, the worker knows them, nothing has begun",
        "effect.before": "an item is about to run: handler, delivery, timer",
        "effect.after": "the effect has happened, its outcome is not reported",
        "command.before_commit": "a command has written everything and has not committed",
        "command.after_commit": "a command has committed, its caller does not know",
        "renew.before": "a renewal is about to be sent",
        "recover.before_commit": "expired leases are taken back in a transaction that has not committed",
    }
)


class FailPointRaised(Exception):
    """What `raise` raises."""


@dataclass(slots=True)
class _FailPoint:
    action: str
    path: str = ""
    once: bool = False
    from_passage: int = 1
    passages: int = 0


_armed: dict[str, _FailPoint] = {}
_counting = threading.Lock()


def failpoint(name: str) -> None:
    """Do here what `name` is armed to do; nothing when it is not."""
    if _armed:
        _reach(name)


def commit_point(conn: Any, name: str) -> AbstractContextManager[None]:
    """Around one autocommitted statement: while `name` is armed it runs as BEGIN, statement, fail-point, COMMIT.

    `conn` is an idle psycopg connection in autocommit. Off, the statement commits by itself as ever.
    """
    return _commits_there(conn, name) if name in _armed else _COMMITS_BY_ITSELF


_COMMITS_BY_ITSELF = nullcontext()


@contextmanager
def _commits_there(conn: Any, name: str) -> Iterator[None]:
    with conn.transaction():
        yield
        failpoint(name)


def install(text: str) -> None:
    """Arm exactly what `text` names (the value of BATON_FAILPOINTS). Raises ValueError for what it cannot read."""
    points = dict(_parse(part.strip()) for part in text.split(",") if part.strip())
    _armed.clear()
    _armed.update(points)


def _parse(text: str) -> tuple[str, _FailPoint]:
    found = re.fullmatch(r"(?P<name>[a-z._]+)(#(?P<n>\d+))?=(?P<action>kill|stop|raise|hold:(?P<path>[^:]+))(?P<once>:once)?", text)
    if not found:
        raise ValueError(f"fail-point {text!r}: expected name[#n]=kill|stop|raise|hold:/path[:once]")
    if found["name"] not in NAMES:
        raise ValueError(f"fail-point {found['name']!r}: expected one of {', '.join(NAMES)}")
    action = found["action"].split(":")[0]
    return found["name"], _FailPoint(action, found["path"] or "", bool(found["once"]), int(found["n"] or 1))


def _reach(name: str) -> None:
    with _counting:
        point = _armed.get(name)
        if point is None:
            return
        point.passages += 1
        if point.passages < point.from_passage:
            return
        if point.once:
            del _armed[name]
    match point.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            raise FailPointRaised(f"fail-point {name}")
        case "hold":
            # Opening blocks until the test opens the other end; reading ends when the test closes it.
            with open(point.path, "rb") as gate:
                gate.read()
