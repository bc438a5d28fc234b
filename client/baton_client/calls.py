"""Every call of the API that this client knows, as a value: what is asked, and how the answer is read. Both clients send these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

from baton_client.shapes import Definition, Deployment, Ended, Event, Incident, Instance, LeasedTask, Page, Sent, Task, read

T = TypeVar("T")
Id = UUID | str
Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """`key`: under which a change is done once, however often it is sent; None: it may be sent again as it is."""

    method: str
    path: str
    answer: Callable[[Any], T]
    query: Mapping[str, Any] | None = None
    body: Mapping[str, Any] | None = None
    files: Files = ()
    key: str | None = None


def _get(path: str, answer: Callable[[Any], T], **query: Any) -> Call[T]:
    return Call("GET", path, answer, query={name: value for name, value in query.items() if value is not None})


def _post(path: str, answer: Callable[[Any], T], key: str | None, **body: Any) -> Call[T]:
    """A change. Without a key of the caller's it has one of its own: sent again after a lost answer, it is done once."""
    return Call("POST", path, answer, body=body, key=key or str(uuid4()))


def _one(kind: type[T]) -> Callable[[Any], T]:
    return lambda document: read(kind, document)


def _page(kind: type[T]) -> Callable[[Any], Page[T]]:
    return lambda document: Page([read(kind, each) for each in document["items"]], document.get("next_cursor"))


def _items(kind: type[T]) -> Callable[[Any], list[T]]:
    return lambda document: [read(kind, each) for each in document["items"]]


# ---- processes


def deploy(files: Files, name: str, key: str | None) -> Call[Deployment]:
    return Call("POST", "/deployments", _one(Deployment), body={"name": name}, files=files, key=key or str(uuid4()))


def definitions(key: str | None) -> Call[list[Definition]]:
    return _get("/process-definitions", _items(Definition), key=key)


def start(process: str, variables: Mapping[str, Any], business_key: str | None, version: int | None, key: str | None) -> Call[Instance]:
    path = f"/process-definitions/{quote(process, safe='')}/start"
    return _post(path, _one(Instance), key, variables=variables, business_key=business_key, version=version)


def instances(status: str | None, process: str | None, business_key: str | None, cursor: str | None, limit: int) -> Call[Page[Instance]]:
    return _get(
        "/process-instances",
        _page(Instance),
        status=status,
        process_definition_key=process,
        business_key=business_key,
        cursor=cursor,
        limit=limit,
    )


def instance(instance_id: Id) -> Call[Instance]:
    return _get(f"/process-instances/{instance_id}", _one(Instance))


def history(instance_id: Id, cursor: str | None, limit: int) -> Call[Page[Event]]:
    return _get(f"/process-instances/{instance_id}/history", _page(Event), cursor=cursor, limit=limit)


def change_instance(instance_id: Id, change: str, reason: str, key: str | None) -> Call[Instance]:
    return _post(f"/process-instances/{instance_id}/{change}", _one(Instance), key, reason=reason)


# ---- tasks


def tasks(
    status: str | None, assignee: str | None, group: str | None, process: str | None, instance_id: Id | None, cursor: str | None, limit: int
) -> Call[Page[Task]]:
    return _get(
        "/tasks",
        _page(Task),
        status=status,
        assignee=assignee,
        candidate_group=group,
        process_definition_key=process,
        process_instance_id=None if instance_id is None else str(instance_id),
        cursor=cursor,
        limit=limit,
    )


def task(task_id: Id) -> Call[Task]:
    return _get(f"/tasks/{task_id}", _one(Task))


def change_task(task_id: Id, change: str, key: str | None, **body: Any) -> Call[Task]:
    return _post(f"/tasks/{task_id}/{change}", _one(Task), key, **body)


# ---- messages


def message(name: str, body: Mapping[str, Any], key: str | None) -> Call[Sent]:
    return _post("/messages", _one(Sent), key, name=name, **{field: value for field, value in body.items() if value is not None})


def signal(name: str, variables: Mapping[str, Any], key: str | None) -> Call[None]:
    return _post("/signals", lambda _: None, key, name=name, variables=variables)


# ---- what is stuck


def incidents(process: str | None, cursor: str | None, limit: int) -> Call[Page[Incident]]:
    return _get("/incidents", _page(Incident), process_definition_key=process, cursor=cursor, limit=limit)


def retry(item_kind: str, item_id: Id, attempts: int, key: str | None) -> Call[None]:
    if item_kind not in ("job", "external_task"):
        raise ValueError(f"item_kind: expected job or external_task, found {item_kind!r}")
    return _post(f"/{'jobs' if item_kind == 'job' else 'external-tasks'}/{item_id}/retry", lambda _: None, key, attempts=attempts)


# ---- external tasks


def acquire(worker_id: str, topics: Sequence[str], limit: int, lease_seconds: float) -> Call[list[LeasedTask]]:
    """Has no key: asked again it leases what is free then, and what an answer that was lost had leased comes back when that lease ends."""
    body = {"worker_id": worker_id, "topics": list(topics), "limit": limit, "lease_seconds": lease_seconds}
    return Call("POST", "/external-tasks/acquire", _items(LeasedTask), body=body)


def end(leased: LeasedTask, how: str, key: str | None, **body: Any) -> Call[Ended]:
    """complete, fail, error, release: under the number of the lease, which recognises a repeat."""
    return _post(f"/external-tasks/{leased.id}/{how}", _one(Ended), key, lease_number=leased.lease_number, **body)


def renew(leased: LeasedTask, lease_seconds: float) -> Call[Ended]:
    body = {"lease_number": leased.lease_number, "lease_seconds": lease_seconds}
    return Call("POST", f"/external-tasks/{leased.id}/renew", _one(Ended), body=body)


def report(leased: LeasedTask, progress: float | None, doing: str, lines: Sequence[Mapping[str, str]], key: str | None) -> Call[None]:
    path = f"/external-tasks/{leased.id}/report"
    return _post(path, lambda _: None, key, lease_number=leased.lease_number, progress=progress, doing=doing, lines=list(lines))
