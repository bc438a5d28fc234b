"""Where the processes of a storm begin: the product's own worker and web, sabotaged first if STORM_SABOTAGE says so.

python -m tests.faults.storm.entry worker
gunicorn … tests.faults.storm.entry:application()
"""

from __future__ import annotations

import os
import sys

from engine.config import Settings

SABOTAGE = "STORM_SABOTAGE"


def _sabotage() -> None:
    if number := os.environ.get(SABOTAGE):
        from tests.faults.storm.sabotage import in_a_process

        in_a_process(int(number))


def application() -> object:
    """The web application of one process of gunicorn."""
    _sabotage()
    from cli.web import application as ours

    return ours()


def worker() -> int:
    _sabotage()
    from worker.main import run

    return run(Settings.from_env())


if __name__ == "__main__":
    assert sys.argv[1:] == ["worker"], f"expected worker, found {sys.argv[1:]}"
    sys.exit(worker())
