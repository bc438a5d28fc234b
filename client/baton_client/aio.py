"""The API of Baton for asyncio: the methods of `baton_client.Client`, each to be awaited. A test compares the two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from baton_client import calls
from baton_client.calls import Call, Id
from baton_client.client import read_files
from baton_client.errors import Unreachable
from baton_client.exchange import Busy, answer_of, pauses, request_of
from baton_client.shapes import Definition, Deployment, Ended, Event, Incident, Instance, LeasedTask, Page, Sent, Task

T = TypeVar("T")


class AsyncClient:
    """One server, asked with one API key. Used by one event loop.

    A change that gets no answer is sent again under one Idempotency-Key, `tries` times in all, and so is done once; give `key` to have
    it recognised across restarts of your program. Every method raises `Refused` for what the server refuses, and `Unreachable`.
    """

    def __init__(
        self, url: str, api_key: str, *, tries: int = 5, seconds: float = 30.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=seconds, transport=transport, trust_env=transport is None)
        self._tries = max(1, tries)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def do(self, call: Call[T], *, tries: int | None = None) -> T:
        """Send a call of `baton_client.calls` and read its answer."""
        waits = pauses(tries or self._tries)
        while True:
            after = 0.0
            try:
                return answer_of(call, await self._http.send(request_of(self._http, call)))
            except Busy as busy:
                problem: Exception = busy
                after = busy.after
            except httpx.TransportError as lost:
                problem = lost
            pause = next(waits, None)
            if pause is None:
                raise Unreachable(f"{call.method} {call.path}: {problem or type(problem).__name__}") from problem
            await asyncio.sleep(max(pause, after))

    # ---- processes

    async def deploy(self, *files: str | Path | tuple[str, bytes], name: str = "", key: str | None = None) -> Deployment:
        """Deploy models, decisions and forms together: paths, or (name, content)."""
        return await self.do(calls.deploy(read_files(files), name, key))

    async def definitions(self, key: str | None = None) -> list[Definition]:
        """The latest version of each process; with `key` every version of one."""
        return await self.do(calls.definitions(key))

    async def start(
        self,
        process: str,
        variables: Mapping[str, Any] | None = None,
        *,
        business_key: str | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> Instance:
        return await self.do(calls.start(process, variables or {}, business_key, version, key))

    async def instances(
        self,
        *,
        status: str | None = None,
        process: str | None = None,
        business_key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Instance]:
        """Those that the key may see, newest first."""
        return await self.do(calls.instances(status, process, business_key, cursor, limit))

    async def instance(self, instance_id: Id) -> Instance:
        return await self.do(calls.instance(instance_id))

    async def history(self, instance_id: Id, *, cursor: str | None = None, limit: int = 200) -> Page[Event]:
        """Oldest first."""
        return await self.do(calls.history(instance_id, cursor, limit))

    async def cancel(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return await self.do(calls.change_instance(instance_id, "cancel", reason, key))

    async def suspend(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return await self.do(calls.change_instance(instance_id, "suspend", reason, key))

    async def resume(self, instance_id: Id, reason: str = "", *, key: str | None = None) -> Instance:
        return await self.do(calls.change_instance(instance_id, "resume", reason, key))

    # ---- tasks

    async def tasks(
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
        return await self.do(calls.tasks(status, assignee, group, process, instance_id, cursor, limit))

    async def task(self, task_id: Id) -> Task:
        return await self.do(calls.task(task_id))

    async def claim(self, task_id: Id, *, key: str | None = None) -> Task:
        """Raises Conflict with `by` and `at` when somebody else was faster."""
        return await self.do(calls.change_task(task_id, "claim", key))

    async def unclaim(self, task_id: Id, *, key: str | None = None) -> Task:
        return await self.do(calls.change_task(task_id, "unclaim", key))

    async def assign(self, task_id: Id, assignee: str | None, *, key: str | None = None) -> Task:
        """Give a task to somebody; None gives it back."""
        return await self.do(calls.change_task(task_id, "assign", key, assignee=assignee))

    async def complete(self, task_id: Id, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> Task:
        return await self.do(calls.change_task(task_id, "complete", key, variables=variables or {}))

    # ---- messages

    async def send(
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
        return await self.do(calls.message(name, body, key))

    async def signal(self, name: str, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> None:
        """Throw a signal to everybody who waits for it."""
        return await self.do(calls.signal(name, variables or {}, key))

    # ---- what is stuck

    async def incidents(self, process: str | None = None, *, cursor: str | None = None, limit: int = 50) -> Page[Incident]:
        return await self.do(calls.incidents(process, cursor, limit))

    async def retry(self, item_kind: str, item_id: Id, attempts: int = 1, *, key: str | None = None) -> None:
        """Give a failed job or external task new attempts: `item_kind` and `item_id` of its incident."""
        return await self.do(calls.retry(item_kind, item_id, attempts, key))

    # ---- external tasks; `baton_client.Worker` does all of this

    async def acquire(self, worker_id: str, topics: Sequence[str], *, limit: int = 1, lease_seconds: float = 60.0) -> list[LeasedTask]:
        return await self.do(calls.acquire(worker_id, topics, limit, lease_seconds))

    async def complete_external(self, leased: LeasedTask, variables: Mapping[str, Any] | None = None, *, key: str | None = None) -> Ended:
        return await self.do(calls.end(leased, "complete", key, variables=variables or {}))

    async def fail_external(self, leased: LeasedTask, error: str, *, retry_in: float | None = None, key: str | None = None) -> Ended:
        return await self.do(calls.end(leased, "fail", key, error=error, retry_in=retry_in))

    async def throw_external(
        self, leased: LeasedTask, code: str, message: str = "", variables: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Ended:
        """A BPMN error."""
        return await self.do(calls.end(leased, "error", key, code=code, message=message, variables=variables or {}))

    async def renew_external(self, leased: LeasedTask, lease_seconds: float = 60.0) -> Ended:
        return await self.do(calls.renew(leased, lease_seconds))

    async def release_external(self, leased: LeasedTask, *, key: str | None = None) -> Ended:
        """Hand a task back unstarted: its attempt is not spent."""
        return await self.do(calls.end(leased, "release", key))

    async def report_external(
        self,
        leased: LeasedTask,
        *,
        progress: float | None = None,
        doing: str = "",
        lines: Sequence[Mapping[str, str]] = (),
        key: str | None = None,
    ) -> None:
        """How far an attempt is, and lines (`{"text", "level"}`) for its log."""
        return await self.do(calls.report(leased, progress, doing, lines, key))

    # ---- whole lists

    async def every(self, page: Callable[..., Awaitable[Page[T]]], /, *given: Any, **asked: Any) -> AsyncIterator[T]:
        """Every item of a list, page after page: `async for task in client.every(client.tasks, group="clerks")`."""
        cursor: str | None = None
        while True:
            found = await page(*given, cursor=cursor, **asked)
            for item in found.items:
                yield item
            cursor = found.next_cursor
            if cursor is None:
                return
