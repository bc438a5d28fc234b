"""APScheduler as what it is good at here: a clock that ticks. Who acts, and when, is decided in the database."""

from __future__ import annotations

import logging

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from engine.commands.upkeep import Kept, upkeep
from engine.logs import line
from worker.database import UNREACHABLE, Database

logger = logging.getLogger("baton.worker")


class Upkeep:
    """Ticks every `seconds`, one tick at a time; a late one is not made up for."""

    def __init__(self, database: Database, kept: Kept, *, seconds: float) -> None:
        self._database, self._kept = database, kept
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )
        self._scheduler.add_job(self.tick, "interval", seconds=seconds, jitter=seconds / 4)

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.shutdown(wait=False)

    def tick(self) -> None:
        try:
            done = upkeep(self._database.connection(), self._kept)
        except UNREACHABLE as problem:
            self._database.drop()
            self._database.is_gone(problem)
            return
        removed = {chore: count for chore, count in done.items() if count}
        if removed:
            logger.info(line("upkeep_done", **removed))
