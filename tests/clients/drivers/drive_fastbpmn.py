"""fastbpmn: it looks for what is free twice a second, and locks, reads and answers each task by itself.

Its handlers' annotations are read while they run, so they must be classes, not texts.
"""

import asyncio
import logging
from typing import Any

import structlog
from fastbpmn import FastBPMN
from fastbpmn.aetpi.servers.camunda7 import Camunda7Server
from fastbpmn.errors import RetryExternalTask, TaskBusinessError
from fastbpmn.models import BaseInputModel, BaseOutputModel
from fastbpmn.task import Task
from telling import Script, answer

script = Script()
app = FastBPMN(name=script.worker)


class Given(BaseInputModel):
    number: int
    text: str
    flag: bool
    doc: dict[str, Any]


class Answered(BaseOutputModel):
    square: int
    said: str
    half: float
    not_flag: bool
    back: dict[str, Any]


class Why(BaseOutputModel):
    why: str


def of(way: str, work: Any) -> None:
    lock = script.lock_ms if way == "extend" else 60_000
    app.external_task(script.topics[way], input_class=Given, output_class=Answered, lock_duration=lock)(work)


async def complete(given: Given, task: Task) -> Answered:
    script.tell("took", task.id, retries=task.retries)
    script.tell("completed", task.id)
    return Answered(**answer(given.model_dump()), back=given.doc)


async def fail_twice(given: Given, task: Task) -> Answered:
    if task.retries is None or task.retries > 1:
        script.tell("took", task.id, retries=task.retries)
        script.tell("failed", task.id)
        raise RetryExternalTask("no paper", detailed_message="the printer\nhas none", retries=(task.retries or 3) - 1, retry_timeout=1)
    return await complete(given, task)


async def throw(given: Given, task: Task) -> Answered:
    script.tell("took", task.id, retries=task.retries)
    script.tell("error", task.id)
    raise TaskBusinessError("too late", error_code="LATE", variables=Why(why="a strike"))


async def hold(given: Given, task: Task) -> Answered:
    """Longer than its lock: the package extends that at each half of it."""
    await asyncio.sleep(script.hold_seconds)
    script.tell("extended", task.id)
    return await complete(given, task)


def said(logger: Any, method: str, event: dict[str, Any]) -> dict[str, Any]:
    if method in ("warning", "error", "critical"):
        script.tell("refused", None, says=str(event.get("event"))[:500])
    return event


HANDLERS = {"complete": complete, "poll": complete, "killed": complete, "failure": fail_twice, "error": throw, "extend": hold}

if __name__ == "__main__":
    structlog.configure(processors=[said, structlog.processors.KeyValueRenderer()], logger_factory=structlog.PrintLoggerFactory())
    logging.basicConfig(level=logging.WARNING)
    for each in script.topics:
        of(each, HANDLERS[each])
    Camunda7Server(
        app,
        name=script.worker,
        camunda_url=script.url,
        camunda_username=script.user,
        camunda_password=script.password,
        parallelism=10,
    ).run()
