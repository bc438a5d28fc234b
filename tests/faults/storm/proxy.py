"""TCP between two programs, through us: forwarded, silent (half open: neither side hears of it), slow, or cut.

All links live in one thread of their own. Whoever connects to a link's port is led to where its target is at that moment,
so a link outlives what it leads to: after a promotion it leads to the other server.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

PIECE = 65536


class Proxies:
    """The thread, and every link in it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()
        self.links: list[Link] = []

    def link(self, target: Callable[[], int]) -> Link:
        """A new link to 127.0.0.1 at the port that `target` names at each connection."""
        made = Link(self, target)
        self.call(made.listen())
        self.links.append(made)
        return made

    def call(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    def stop(self) -> None:
        self.call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class _Pair:
    """One connection: what came in from the client and what leads on to the server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.heard = asyncio.Event()  # cleared: nothing is forwarded any more, not even an end
        self.heard.set()

    def abort(self) -> None:
        for side in (self.client, self.server):
            if (raw := side.get_extra_info("socket")) is not None:
                with suppress(OSError):  # a reset instead of an orderly end
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            side.transport.abort()


class Link:
    """One port. `seconds`: how long every piece is kept back, for a slow line."""

    def __init__(self, proxies: Proxies, target: Callable[[], int]) -> None:
        self._proxies, self._target = proxies, target
        self._pairs: set[_Pair] = set()
        self.port = 0
        self.seconds = 0.0

    async def listen(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def silence(self) -> int:
        """Every connection of now is half open from now on, for ever. New ones work. Returns how many."""
        found = len(self._pairs)
        self._proxies.call(self._silence())
        return found

    def cut(self) -> None:
        """Reset every connection, silent ones included."""
        self._proxies.call(self._cut())

    async def _silence(self) -> None:
        for pair in self._pairs:
            pair.heard.clear()

    async def _cut(self) -> None:
        for pair in list(self._pairs):
            pair.abort()
            pair.heard.set()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            to_client.transport.abort()
            return
        pair = _Pair(to_client, to_server)
        self._pairs.add(pair)
        try:
            await asyncio.gather(self._pump(from_client, to_server, pair), self._pump(from_server, to_client, pair))
        except asyncio.CancelledError:
            return  # the storm is over
        finally:
            self._pairs.discard(pair)
            pair.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, pair: _Pair) -> None:
        with suppress(OSError):
            while piece := await source.read(PIECE):
                await pair.heard.wait()
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                sink.write(piece)
                await sink.drain()
        await pair.heard.wait()
        sink.close()
