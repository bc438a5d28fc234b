"""Requests that wait without a thread: the application asks its server to keep the connection, and to run the request again later.

A view that has to wait raises `Parked` with a ticket. A server that can park (webapp/parking_worker.py; it says so in the
environ) keeps the socket among those that it watches, gives the thread back, and runs the same request again when the
ticket calls for it; then the ticket stands in the environ. Nothing of the first run is kept but what the ticket holds, and
no database connection. A client that closes its connection meanwhile ends its ticket at once.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any, Protocol

PARKS = "baton.parks"
"""In the environ of a server that can park."""

TICKET = "baton.ticket"
"""In the environ of a request that was parked and is run again."""


class Ticket(Protocol):
    """What waits. All are called by the server."""

    def start(self, resume: Callable[[], None]) -> None:
        """The connection is parked: from now on `resume` may be called, once, by any thread."""

    def give_up(self) -> bool:
        """The client has gone. Whether that ends the waiting; False: it is being resumed already."""

    def end(self) -> None:
        """Its request was run again and has ended, in whatever way: it waits no more."""


class Parked(BaseException):
    """Not an error, so no handler of errors shall see it: the request waits."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__("the request waits")
        self.ticket = ticket


def has_gone(environ: Mapping[str, Any]) -> bool:
    """Whether the client has closed its connection: who is to be given something of which there is one must be there."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
