"""camunda-external-task-client-python3 (its synchronous worker) and its copy for Operaton (its asynchronous one).

The packages log what the server accepted; that is what is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from typing import Any

from telling import Script, answer

script = Script()
PACKAGE = sys.argv[2]
_ACCEPTED = (
    (re.compile(r"TASK_ID:([0-9a-f-]+)\] Marked task completed"), "completed"),
    (re.compile(r"TASK_ID:([0-9a-f-]+)\] Marked task failed"), "failed"),
    (re.compile(r"BPMN Error Handled: True .*task_id=([0-9a-f-]+)"), "error"),
    (re.compile(r"TASK_ID:([0-9a-f-]+)\] .*(?:error when executing|Error when executing|Not able)"), "refused"),
    (re.compile(r"(?:error|Error) fetching and executing"), "refused"),
)


class Accepted(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        for pattern, did in _ACCEPTED:
            if found := pattern.search(said):
                reason = {"says": said[:500]} if did == "refused" else {}
                script.tell(did, found.group(1) if pattern.groups else None, **reason)
                return


def work(task: Any) -> Any:
    """One task, in the way of its topic."""
    retries = task._context["retries"]  # the package has no accessor of its own
    script.tell("took", task.get_task_id(), retries=retries)
    variables = task.get_variables()
    match script.way_of(task.get_topic_name()):
        case "failure" if retries is None or retries > 1:
            return task.failure("no paper", "the printer\nhas none", 2, 0)
        case "error":
            return task.bpmn_error("LATE", "too late", {"why": "a strike"})
    document = json.loads(variables["doc"]) if isinstance(variables["doc"], str) else variables["doc"]
    return task.complete({**answer(variables), "back": document})


async def work_later(task: Any) -> Any:
    await asyncio.sleep(0)
    return work(task)


def main() -> None:
    logging.basicConfig(level=logging.DEBUG, handlers=[Accepted()])
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    config = {"asyncResponseTimeout": script.poll_ms, "lockDuration": 60_000, "maxTasks": 5, "sleepSeconds": 1}
    if PACKAGE == "camunda":
        from camunda.external_task.external_task_worker import ExternalTaskWorker

        worker = ExternalTaskWorker(script.worker, script.url, {**config, "auth_bearer": {"access_token": script.token}})
        worker.subscribe(list(script.topics.values()), work)
    from operaton.external_task.async_external_task_worker import AsyncExternalTaskWorker

    basic = {"username": script.user, "password": script.password}
    later = AsyncExternalTaskWorker(script.worker, script.url, {**config, "auth_basic": basic})
    asyncio.run(later.subscribe(dict.fromkeys(script.topics.values(), work_later)))
    time.sleep(3600)


if __name__ == "__main__":
    main()
