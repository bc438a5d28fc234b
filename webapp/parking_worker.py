"""gunicorn's threaded worker, with connections that are parked: they wait in its poller beside those that are kept alive.

A parked connection has no thread. The poller watches it, so a client that has gone is noticed when it goes. It leans on
gunicorn's own steps of a connection (`handle`, `handle_request`, `finish_request`), which pyproject.toml pins to one release.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from webapp.parking import PARKS, TICKET, Parked, Ticket

_PARKED: Any = object()  # what the steps of a connection answer for one that waits


@dataclass(frozen=True, slots=True)
class Held:
    """A request that waits, as gunicorn read it, and what it waits for."""

    request: Any
    ticket: Ticket


class ParkingWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """`conn.held`: what waits on a connection."""

    wsgi: Any

    def init_process(self) -> None:
        self._here = threading.local()  # the request that this thread runs: may it be parked, was it
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi = self._offering(self.wsgi)

    def handle(self, conn: Any) -> Any:
        """In a thread of the pool: a new request, or one that waited."""
        held: Held | None = getattr(conn, "held", None)
        if held is None:
            return super().handle(conn)
        ended: Any = False
        try:
            conn.sock.setblocking(True)
            ended = self._keepalive_after(conn, self.handle_request(held.request, conn))
        except (OSError, StopIteration) as gone:
            self.log.debug("A client that waited has gone: %r", gone)
        except Exception as error:
            self.handle_error(held.request, conn.sock, conn.client, error)
        finally:
            if ended is not _PARKED:
                held.ticket.end()
        return ended

    def handle_request(self, req: Any, conn: Any) -> Any:
        held: Held | None = getattr(conn, "held", None)
        conn.held = None
        self._here.parks, self._here.ticket = self.alive, held and held.ticket  # who comes while we stop is answered
        try:
            return super().handle_request(req, conn)
        except Parked as parked:
            conn.held = Held(req, parked.ticket)
            return _PARKED
        finally:
            self._here.parks = self._here.ticket = None

    def _keepalive_after(self, conn: Any, keepalive: Any) -> Any:
        return _PARKED if keepalive is _PARKED else super()._keepalive_after(conn, keepalive)

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """In the main thread, which alone touches the poller."""
        if not fs.cancelled() and fs.exception() is None and fs.result() is _PARKED:
            self._park(conn)
        else:
            super().finish_request(conn, fs)

    def _park(self, conn: Any) -> None:
        conn.sock.setblocking(False)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_parked_readable, conn))
        conn.held.ticket.start(partial(self.method_queue.defer, self._resume, conn))

    def _on_parked_readable(self, conn: Any, client: socket.socket) -> None:
        """The client has gone, or has sent its next request already, which then waits for the answer to this one."""
        try:
            seen = client.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            seen = b""
        self._unwatch(conn)
        if not seen and conn.held.ticket.give_up():
            self.nr_conns -= 1
            conn.close()

    def _resume(self, conn: Any) -> None:
        self._unwatch(conn)
        self.enqueue_req(conn)

    def _unwatch(self, conn: Any) -> None:
        if conn.sock in self.poller.get_map():
            self.poller.unregister(conn.sock)

    def _offering(self, app: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
        """The application, told that it may park, and with its ticket where it did."""

        def run(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if getattr(self._here, "parks", None):
                environ[PARKS] = True
            if getattr(self._here, "ticket", None) is not None:
                environ[TICKET] = self._here.ticket
            answer: Iterable[bytes] = app(environ, start_response)
            return answer

        return run
