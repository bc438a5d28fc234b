"""Sixteen bytes that a worker and a handler's process share: until when the lease holds, and whether to stop.

The deadline is a moment of CLOCK_MONOTONIC, which is one clock for every process of a machine. Each value is eight
aligned bytes, written by the worker alone.
"""

from __future__ import annotations

import mmap
import os
import struct

SIZE = 16
_BOTH = struct.Struct("dQ")


class LeaseCell:
    """The lease of what runs now, in memory of its own or over a shared file."""

    def __init__(self, fd: int | None = None) -> None:
        self._memory = bytearray(SIZE) if fd is None else mmap.mmap(fd, SIZE)

    def tell(self, deadline: float, cancelled: bool) -> None:
        """Both at once, before a handler that reads them begins."""
        _BOTH.pack_into(self._memory, 0, deadline, cancelled)

    @property
    def deadline(self) -> float:
        return float(struct.unpack_from("d", self._memory, 0)[0])

    @deadline.setter
    def deadline(self, moment: float) -> None:
        struct.pack_into("d", self._memory, 0, moment)

    @property
    def cancelled(self) -> bool:
        return bool(struct.unpack_from("Q", self._memory, 8)[0])

    @cancelled.setter
    def cancelled(self, yes: bool) -> None:
        struct.pack_into("Q", self._memory, 8, int(yes))


def shared_file() -> int:
    """A file descriptor over fresh shared memory, to be passed to one child."""
    fd = os.memfd_create("baton-lease")
    os.ftruncate(fd, SIZE)
    return fd
