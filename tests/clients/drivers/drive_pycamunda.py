"""pycamunda: one request object for each call, so the loop around them is ours. Who it is stands in the address."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

import pycamunda
import pycamunda.externaltask as external
from telling import Script, answer

script = Script()
URL = script.url.replace("://", f"://{quote(script.user)}:{quote(script.password)}@", 1)


def main() -> None:
    held: list[tuple[float, Any]] = []  # those whose lock was extended, and when they are done
    unlocked: set[str] = set()
    while True:
        for task in fetch(wait_ms=200 if held else script.poll_ms):
            script.tell("took", task.id_, retries=task.retries)
            match script.way_of(task.topic_name):
                case "failure" if task.retries is None or task.retries > 1:
                    fail(task, retries=2 if task.retries is None else task.retries - 1)
                case "incident" if task.retries is None:
                    fail(task, retries=0)
                    retry_what_failed(task)
                case "error":
                    throw = external.HandleBPMNError(URL, task.id_, script.worker, "LATE", "too late")
                    throw.add_variable("why", "a strike")
                    throw()
                    script.tell("error", task.id_)
                case "extend":
                    external.ExtendLock(URL, task.id_, 60_000, script.worker)()
                    script.tell("extended", task.id_)
                    held.append((time.monotonic() + script.hold_seconds, task))
                case "unlock" if task.id_ not in unlocked:
                    unlocked.add(task.id_)
                    external.Unlock(URL, task.id_)()
                    script.tell("unlocked", task.id_)
                case _:
                    complete(task)
        for due, task in [each for each in held if each[0] <= time.monotonic()]:
            held.remove((due, task))
            complete(task)


def fetch(*, wait_ms: int) -> tuple[Any, ...]:
    asked = external.FetchAndLock(URL, script.worker, max_tasks=10, async_response_timeout=wait_ms)
    for way, topic in script.topics.items():
        asked.add_topic(topic, lock_duration=script.lock_ms if way == "extend" else 60_000)
    return tuple(asked())


def complete(task: Any) -> None:
    variables = {name: given.value for name, given in task.variables.items()}
    done = external.Complete(URL, task.id_, script.worker)
    for name, value in answer(variables).items():
        done.add_variable(name, value)
    done.add_variable("back", variables["doc"], type_="Json")
    done()
    script.tell("completed", task.id_)


def fail(task: Any, *, retries: int) -> None:
    external.HandleFailure(URL, task.id_, script.worker, "no paper", "the printer\nhas none", retries, 0)()
    script.tell("failed", task.id_, gave=retries)


def retry_what_failed(task: Any) -> None:
    """It rests beside an incident: found in the lists, with what was said, and given new retries."""
    found = external.Get(URL, task.id_)()
    assert (found.retries, found.error_message, found.error_details) == (0, "no paper", "the printer\nhas none"), found
    waiting = external.GetList(URL, id_=task.id_, no_retries_left=True, request_error_details=False)()
    assert [each.id_ for each in waiting] == [task.id_], waiting
    assert external.Count(URL, topic_name=task.topic_name, no_retries_left=True)() == 1
    external.SetPriority(URL, task.id_, 7)()
    assert external.Get(URL, task.id_, request_error_details=False)().priority == 7
    external.SetRetries(URL, task.id_, 1)()
    script.tell("retried", task.id_)


if __name__ == "__main__":
    try:
        main()
    except (pycamunda.PyCamundaException, AssertionError, json.JSONDecodeError) as error:
        script.tell("refused", None, says=f"{type(error).__name__}: {error}")
        raise
