"""gunicorn's settings for `baton web`: threads, so that an open live stream costs a thread and nothing else.

docs/decisions/ says why threads. Streams are capped below the number of threads (webapp/live.py), so pages are answered
however many streams are open.
"""

from __future__ import annotations

import gc
import resource
import signal
import threading
from types import FrameType
from typing import Any

from engine.config import Settings
from webapp.engine_rest.waiting import close_polls
from webapp.live import close_streams

_settings = Settings.from_env()

bind = str(_settings.listen)
workers = _settings.web_processes
worker_class = "webapp.parking_worker.ParkingWorker"  # threads, and connections that wait without one
threads = _settings.web_threads
worker_connections = 1000 + _settings.long_polls
backlog = 1024
timeout = 60
graceful_timeout = 20
# Longer than whoever is in front keeps an idle connection (proxies a minute, HTTP clients less): the side that closes first
# must be theirs. When it is ours, a press that is on its way just then is lost with a reset, and nobody may repeat a POST.
keepalive = 75
max_requests = 0
forwarded_allow_ips = "*" if _settings.trusted_proxies else "127.0.0.1"  # the application believes only so many proxies itself
loglevel = _settings.log_level
accesslog = None
errorlog = "-"
limit_request_line = 8190
limit_request_field_size = 16380
proc_name = "baton-web"


def _let_go() -> None:
    close_streams()
    close_polls()


def _allow_connections() -> None:
    """As many open files as this user may have: each connection that waits is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def post_worker_init(worker: Any) -> None:
    """On SIGTERM end the live streams and long polls at once: a stop then waits for requests, not for who listens or waits."""
    # What was loaded stays for good: full collections need not look through it again.
    gc.collect()
    gc.freeze()
    _allow_connections()
    before = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        # In a thread of its own: the handler may have interrupted one that holds the streams' lock.
        threading.Thread(target=_let_go, daemon=True).start()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, stop)
