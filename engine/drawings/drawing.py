"""Asking for a drawing: the library works in a process of its own, which is ended when it takes too long."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from engine.drawings.layout import NO_LAYOUT, not_drawn

SECONDS = 10.0  # a hundred steps take a tenth of one
_ROOT = Path(__file__).parents[2]
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Drawing:
    """`xml`: the model with a drawing, None if there is none. `note`: what is not in it, or why there is none. `final`: so every time."""

    xml: bytes | None
    note: str
    final: bool = True


def draw(content: bytes, key: str, *, seconds: float = SECONDS) -> Drawing:
    """Lay out the process `key` of a file that was deployed. Never raises for what the file or the library does."""
    if not _one_at_a_time.acquire(timeout=seconds):
        return Drawing(None, "another model is being laid out, which takes long; try again", final=False)
    try:
        done = _in_a_process(content, key, seconds)
    except subprocess.TimeoutExpired:
        return Drawing(None, f"laying it out took more than {seconds:g} seconds", final=False)
    finally:
        _one_at_a_time.release()
    match done.returncode:
        case 0:
            left_out = not_drawn(content, key)
            also = f" Not in it: {', '.join(left_out)}." if left_out else ""
            return Drawing(done.stdout, f"The model has no drawing of its own; this one was laid out by Baton.{also}")
        case code if code == NO_LAYOUT:
            return Drawing(None, f"the model has none, and none was laid out: {done.stderr.decode(errors='replace').strip()}")
        case code if code > 0:
            return Drawing(None, f"the model has none, and it could not be laid out: {_last_line(done.stderr)}")
    return Drawing(None, "the model has none, and laying it out was stopped by the system", final=False)


def _in_a_process(content: bytes, key: str, seconds: float) -> subprocess.CompletedProcess[bytes]:
    path = os.pathsep.join([str(_ROOT), *(each for each in sys.path if each)])
    command = [sys.executable, "-m", "engine.drawings.layout", key]
    return subprocess.run(command, input=content, capture_output=True, timeout=seconds, check=False, env={"PYTHONPATH": path})


def _last_line(error: bytes) -> str:
    lines = error.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "no reason was given"
