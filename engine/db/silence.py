"""Connections on which an answer is waited for that will not come: given up, so that whoever waits may ask elsewhere.

A server, a pooler or a firewall in between can be gone without a word. The driver then waits for ever, or for the hours that
TCP takes to notice; no setting of the server helps, since nothing of it arrives. What the kernel can notice it is told to
(KEEPALIVE); for the rest one thread of each process asks the kernel, once a second, how long nothing was sent and nothing
received on each watched connection that waits for an answer. Past its patience the socket is shut down, and the wait ends as
with any lost connection. Nothing stands between the driver and its statements. Linux only; elsewhere TCP's own limits hold.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from engine.logs import line

log = logging.getLogger(__name__)

EVERY = 1.0  # seconds between looks
MARGIN = 5.0  # after the server should have ended a statement: time for its answer to arrive
# The peer is gone: probes while all is quiet, and a limit in milliseconds for what is sent and never acknowledged.
KEEPALIVE: Mapping[str, str] = MappingProxyType(
    {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "25000"}
)
_SENT, _RECEIVED = 44, 52  # tcpi_last_data_sent, tcpi_last_data_recv of struct tcp_info: milliseconds ago

_patience: weakref.WeakKeyDictionary[psycopg.Connection[Any], float] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_watching_in = 0  # the process whose thread looks


def give_up_when_silent(conn: psycopg.Connection[Any], *, statement_seconds: float) -> None:
    """Watch `conn`, on which the server ends every statement after `statement_seconds`, until it is closed."""
    if sys.platform != "linux":
        return
    global _watching_in
    with _lock:
        if _watching_in != os.getpid():
            _watching_in = os.getpid()
            _patience.clear()  # a fork's: those of the parent are at work there, whatever their state was at the fork
            threading.Thread(target=_watch, name="silence", daemon=True).start()
        _patience[conn] = statement_seconds + min(MARGIN, max(1.0, statement_seconds))


def _watch() -> None:
    while True:
        time.sleep(EVERY)
        _look()


def _look() -> None:
    # A call of its own: what it has in hand would else be kept alive until the next look, and by that for ever.
    with _lock:
        watched = list(_patience.items())
    for conn, seconds in watched:
        if not conn.closed and _silent_for(conn) > seconds:
            _give_up(conn, seconds)


def _silent_for(conn: psycopg.Connection[Any]) -> float:
    """For how many seconds an answer has been waited for while nothing came or went; 0 when none is waited for."""
    try:
        if conn.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return 0.0
        with socket.socket(fileno=os.dup(conn.pgconn.socket)) as same:
            told = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED + 4)
    except (psycopg.Error, OSError):  # closed meanwhile; or a Unix socket, whose other end cannot vanish
        return 0.0
    (sent,), (received,) = struct.unpack_from("=I", told, _SENT), struct.unpack_from("=I", told, _RECEIVED)
    return float(min(sent, received)) / 1000


def _give_up(conn: psycopg.Connection[Any], seconds: float) -> None:
    try:
        log.warning(line("database_silent", seconds=seconds, backend=conn.info.backend_pid))
        with socket.socket(fileno=os.dup(conn.pgconn.socket)) as same:
            same.shutdown(socket.SHUT_RDWR)
    except (psycopg.Error, OSError):
        return  # it was closed meanwhile
