"""Child processes that do not outlive their parent, and what /proc tells about others."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1

# Loaded before any fork: loading a library in the child of a process with threads may hang.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def dying_with_parent(number: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn` after which the child gets `number` when this process is gone, however it went. Linux only.

    The kernel ties it to the thread that forks, so children are started from the main thread. It runs after the
    change of user, which would clear the setting.
    """
    parent = os.getpid()

    def ask() -> None:
        if _libc is None:
            return
        _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl
            os.kill(os.getpid(), number)

    return ask


def alive(pid: int) -> bool:
    """Whether a process with this id exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()  # no /proc here: trust the signal; else it went meanwhile


def children_of(pid: int) -> Iterator[int]:
    """The processes that this one started and that are still there."""
    for task in Path(f"/proc/{pid}/task").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the thread ended
            yield from map(int, (task / "children").read_text().split())


def working_in(folder: Path) -> Iterator[int]:
    """The processes whose working directory is `folder`, as far as this account may know."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended, or is another account's
            if Path(os.readlink(entry / "cwd")) == folder:
                yield int(entry.name)
