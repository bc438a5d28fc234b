"""The server that a measurement runs on: the one named, or an embedded one for this run, with fsync as in production."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.embedded import EmbeddedPostgres
from engine.db.session import plain_url


@contextmanager
def a_server(given: str | None) -> Iterator[str]:
    """A URL on which databases may be made."""
    url = given or os.environ.get("DATABASE_URL")
    if url:
        yield plain_url(url)
        return
    home = Path(tempfile.mkdtemp(prefix="baton-bench-"))
    home.chmod(0o755)
    server = EmbeddedPostgres(home)
    try:
        yield plain_url(server.start())
    finally:
        server.stop()
        shutil.rmtree(server.place, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def worker_environment(url: str, *, handlers: str, **settings: str) -> dict[str, str]:
    """What a worker of a bench is told: the defaults, but for its database, its handlers and `settings` (by variable)."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
    return {**others, "DATABASE_URL": url, "BATON_HANDLERS": handlers, **settings}
