"""Messages between a worker and the process of a handler, over a socket pair: four bytes of length, then so many bytes.

One thread at a time on each side. `multiprocessing` has such pipes; theirs makes a selector for each look and a pickler for
each message, which costs more than a short handler.
"""

from __future__ import annotations

import select
import socket
import struct

LENGTH = struct.Struct("!I")
CHUNK = 65536


class Pipe:
    """One end. Raises EOFError when the other end is closed, OSError when it is gone."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)
        self._pending = b""  # read already, of the next message

    def send(self, message: bytes) -> None:
        self._end.sendall(LENGTH.pack(len(message)) + message)

    def ready(self, seconds: float) -> bool:
        """Whether something is there to be received, or the end is, at the latest after so many seconds."""
        return bool(self._pending or self._poll.poll(seconds * 1000))

    def receive(self, limit: int | None = None) -> bytes:
        """The next message. Raises ValueError if it is longer than `limit`."""
        length = LENGTH.unpack(self._exactly(LENGTH.size))[0]
        if limit is not None and length > limit:
            raise ValueError(f"expected at most {limit} bytes, found {length}")
        return self._exactly(length)

    def close(self) -> None:
        self._end.close()

    def _exactly(self, count: int) -> bytes:
        if len(self._pending) < count:
            parts, missing = [self._pending], count - len(self._pending)
            while missing > 0:
                part = self._end.recv(max(CHUNK, min(missing, 16 * CHUNK)))
                if not part:
                    raise EOFError
                parts.append(part)
                missing -= len(part)
            self._pending = b"".join(parts)
        found, self._pending = self._pending[:count], self._pending[count:]
        return found
