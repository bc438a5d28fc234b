"""The API of Baton, call by call. `baton_client.aio` has the same for asyncio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from baton_client import calls
from baton_client.calls import Call, Id
from baton_client.errors import Unreachable
from baton_client.exchange import Busy, answer_of, pauses, request_of
from baton_client.shapes import Definition, Deployment, Ended, Event, Incident, Instance, LeasedTask, Page, Sent, Task

T = TypeVar("T")


class Client:
    """One server, asked with one API key. Safe to use from several threads.

    A change that gets no answer is sent again under one Idempotency-Key, `tries` times in all, and so is done once; give `key` to have
    it recognised across restarts of your program. Every method raises `Refused` for what the server refuses, and `Unreachable`.
    """

    def __init__(
        self, url: str, api_key: str, *, tries: int = 5, seconds: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=seconds, transport=transport, trust_env=transport is None)
        self._tries = max(1, tries)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def do(self, call: Call[T], *, tries: int | None = None) -> T:
        """Send a call of `baton_client.calls` and read its answer."""
        waits = pauses(tries or self._tries)
        while True:
            after = 0.0
            try:
                return answer_of(call, self._http.send(request_of(self._http, call)))
            except Busy as busy:
                problem: Exception = busy
                after = busy.after
            except httpx.TransportError as lost:
                problem = lost
            pause = next(waits, None)
            if pause is None:
                raise Unreachable(f"{call.method} {call.path}: {problem or type(problem).__name__}") from problem
            time.sleep(max(pause, after))

    # ---- processes

    def deploy(self, *files: str | Path | tuple[str, bytes], name: str = "", key: str | None = None) -> Deployment:
        """Deploy models, decisions and forms together: paths, or (name, content)."""
        return self.do(calls.deploy(read_files(files), name, key))

    def definitions(self, key: str | None = None) -> list[Definition]:
        """The latest version of each process; with `key` every version of one."""
        return self.do(calls.definitions(key))

    def start(
        self,
        process: str,
        variables: Mapping[str, Any] | None = None,
        *,
        business_key: str | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> Instance:
        return self.do(calls.start(process, variables or {}, business_key, version, key))

    def instances(
        self,
        *,
        status: str | None = None,
        process: str | None = None,
        business_key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Instance]:
        """Those that the key may see, newest first."""
        return self.do(calls.instances(status, process, business_key, cursor, limit))

    def instance(self, instance_id: Id) -> Instance:
        return self.do(calls.instance(instance_id))

    def history(self, instance_id: Id, *, cursor: str | None = None, limit: int = 200) -> Page[Event]:
        """Oldest first."""
        return self.do(calls.history(instance_id, cursor, limit))

    def cancel(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return self.do(calls.change_instance(instance_id, "cancel", reason, key))

    def suspend(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return self.do(calls.change_instance(instance_id, "suspend", reason, key))

    def resume(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return self.do(calls.change_instance(instance_id, "resume", reason, key))

    # ---- tasks

    def tasks(
        self,
        *,
        status: str | None = None,
        assignee: str | None = None,
        group: str | None = None,
        process: str | None = None,
        instance_id: Id | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Task]:
        """User tasks that the key may see, oldest first; without `status`, those that are open or claimed."""
        return self.do(calls.tasks(status, assignee, group, process, instance_id, cursor, limit))

    def task(self, task_id: Id) -> Task:
        return self.do(calls.task(task_id))

    def claim(self, task_id: Id, *, key: str | None = None) -> Task:
        """Raises Conflict with `by` and `at` when somebody else was faster."""
        return self.do(calls.change_task(task_id, "claim", key))

    def unclaim(self, task_id: Id, *, key: str | None = None) -> Task:
        return self.do(calls.change_task(task_id, "unclaim", key))

    def assign(self, task_id: Id, assignee: str | None, *, key: str | None = None) -> Task:
        """Give a task to somebody; None gives it back."""
        return self.do(calls.change_task(task_id, "assign", key, assignee=assignee))

    def complete(self, task_id: Id, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> Task:
        return self.do(calls.change_task(task_id, "complete", key, variables=variables or {}))

    # ---- messages

    def send(
        self,
        name: str,
        correlation_key: str | None = None,
        variables: Mapping[str, Any] | None = None,
        *,
        message_id: str | None = None,
        time_to_live: float | None = None,
        business_key: str | None = None,
        instance_id: Id | None = None,
        key: str | None = None,
    ) -> Sent:
        """Send a message to whoever waits for it; kept for `time_to_live` seconds where nobody does. `message_id`: sent once under it."""
        body = {
            "correlation_key": correlation_key,
            "variables": variables,
            "message_id": message_id,
            "time_to_live_seconds": time_to_live,
            "business_key": business_key,
            "process_instance_id": None if instance_id is None else str(instance_id),
        }
        return self.do(calls.message(name, body, key))

    def signal(self, name: str, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> None:
        """Throw a signal to everybody who waits for it."""
        return self.do(calls.signal(name, variables or {}, key))

    # ---- what is stuck

    def incidents(self, process: str | None = None, *, cursor: str | None = None, limit: int = 50) -> Page[Incident]:
        return self.do(calls.incidents(process, cursor, limit))

    def retry(self, item_kind: str, item_id: Id, attempts: int = 1, *, key: str | None = None) -> None:
        """Give a failed job or external task new attempts: `item_kind` and `item_id` of its incident."""
        return self.do(calls.retry(item_kind, item_id, attempts, key))

    # ---- external tasks; `baton_client.Worker` does all of this

    def acquire(self, worker_id: str, topics: Sequence[str], *, limit: int = 1, lease_seconds: float = 60.0) -> list[LeasedTask]:
        return self.do(calls.acquire(worker_id, topics, limit, lease_seconds))

    def complete_external(self, leased: LeasedTask, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> Ended:
        return self.do(calls.end(leased, "complete", key, variables=variables or {}))

    def fail_external(self, leased: LeasedTask, error: str, *, retry_in: float | None = None, key: str | None = None) -> Ended:
        return self.do(calls.end(leased, "fail", key, error=error, retry_in=retry_in))

    def throw_external(
        self, leased: LeasedTask, code: str, message: str = "", variables: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Ended:
        """A BPMN error."""
        return self.do(calls.end(leased, "error", key, code=code, message=message, variables=variables or {}))

    def renew_external(self, leased: LeasedTask, lease_seconds: float = 60.0) -> Ended:
        return self.do(calls.renew(leased, lease_seconds))

    def release_external(self, leased: LeasedTask, *, key: str | None = None) -> Ended:
        """Hand a task back unstarted: its attempt is not spent."""
        return self.do(calls.end(leased, "release", key))

    def report_external(
        self,
        leased: LeasedTask,
        *,
        progress: float | None = None,
        doing: str = "",
        lines: Sequence[Mapping[str, str]] = (),
        key: str | None = None,
    ) -> None:
        """How far an attempt is, and lines (`{"text", "level"}`) for its log."""
        return self.do(calls.report(leased, progress, doing, lines, key))

    # ---- whole lists

    def every(self, page: Callable[..., Page[T]], /, *given: Any, **asked: Any) -> Iterator[T]:
        """Every item of a list, page after page: `client.every(client.tasks, group="clerks")`."""
        cursor: str | None = None
        while True:
            found = page(*given, cursor=cursor, **asked)
            yield from found.items
            cursor = found.next_cursor
            if cursor is None:
                return


def read_files(files: Sequence[str | Path | tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """(name, content) of each."""
    return [given if isinstance(given, tuple) else (Path(given).name, Path(given).read_bytes()) for given in files]
