"""What baton_client does with answers, refusals and lost connections; and that both clients have the same methods."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from baton_client import AsyncClient, Client, Conflict, Invalid, NotAllowed, NotFound, NotSignedIn, Unreachable
from baton_client.shapes import Task, read
from tests.browser.conftest import Site
from tests.remote.conftest import PRINTING, in_a_loop
from tests.web.operations import api_key

HERE = Path(__file__).parents[2] / "client" / "baton_client"
Conn = psycopg.Connection[Any]


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    def methods(kind: type[Any]) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)


def test_the_package_needs_nothing_of_the_engine() -> None:
    foreign = set()
    for path in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            foreign |= {name.split(".")[0] for name in names}
    assert foreign - set(sys.stdlib_module_names) == {"httpx", "baton_client"}


def test_a_case_from_its_deployment_to_its_history(olga: Client, ada: Client) -> None:
    assert [(each.key, each.version) for each in olga.definitions()] == [("printing", 1)]
    assert olga.deploy(("printing.bpmn", PRINTING)).deployment_id is None
    case = ada.start("printing", {"copies": 2}, business_key="ORD-1")
    assert (case.status, case.business_key, case.variables) == ("running", "ORD-1", {"copies": 2})
    [leased] = olga.acquire("printer-1", ["print"])
    assert (leased.topic, leased.variables, leased.attempts) == ("print", {"copies": 2}, 1)
    olga.report_external(leased, progress=0.5, lines=[{"text": "half"}])
    assert olga.renew_external(leased).lease_expires_at is not None
    assert olga.complete_external(leased, {"printed": True}).status == "completed"
    [task] = ada.tasks(group="clerks").items
    assert isinstance(task.id, UUID) and isinstance(task.created_at, datetime)
    assert ada.claim(task.id).assignee == "ada"
    assert ada.complete(task.id, {"ok": True}).status == "completed"
    ended = ada.instance(case.id)
    assert (ended.status, ended.variables) == ("completed", {"copies": 2, "printed": True, "ok": True})
    kinds = [event.kind for event in olga.every(olga.history, case.id, limit=3)]
    assert kinds[0] == "instance_started" and kinds[-1] == "instance_completed" and len(kinds) > 6


def test_the_loser_of_a_claim_is_told_by_whom_and_when(site: Site, olga: Client, ada: Client, committed_db: Conn) -> None:
    ada.start("printing")
    [leased] = olga.acquire("printer-1", ["print"])
    olga.complete_external(leased)
    [task] = ada.tasks().items
    ada.claim(task.id)
    with Client(site.url, api_key(committed_db, "bo")) as bo, pytest.raises(Conflict) as told:
        bo.claim(task.id)
    assert (told.value.reason, told.value.by, told.value.by_name) == ("already_claimed", "ada", "Ada Moreno")
    assert told.value.at is not None and told.value.at.tzinfo is not None


def test_refusals_are_exceptions_of_their_kind(site: Site, olga: Client, ada: Client) -> None:
    with pytest.raises(NotFound):
        ada.task(uuid4())
    with pytest.raises(NotAllowed):
        ada.incidents()
    with pytest.raises(Invalid) as wrong:
        olga.send("")
    assert wrong.value.problems[0]["field"] == "name"
    with Client(site.url, "no such key") as nobody, pytest.raises(NotSignedIn):
        nobody.tasks()
    with pytest.raises(ValueError, match="job or external_task"):
        olga.retry("token", uuid4())


class Loses(httpx.HTTPTransport):
    """Sends each request, and loses the first `count` answers."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.count:
            self.count -= 1
            response.close()
            raise httpx.ReadError("the line was cut", request=request)
        return response


def test_an_answer_that_is_lost_is_asked_for_again_and_the_change_is_done_once(site: Site, olga: Client, committed_db: Conn) -> None:
    with Client(site.url, api_key(committed_db, "ada"), transport=Loses(2)) as ada:
        case = ada.start("printing")
    assert [each.id for each in olga.instances().items] == [case.id]


def test_a_key_of_the_callers_own_makes_two_programs_do_it_once(olga: Client, ada: Client) -> None:
    assert ada.start("printing", key="order 7").id == ada.start("printing", key="order 7").id
    assert len(olga.instances().items) == 1


def test_a_server_that_is_busy_is_asked_again_when_it_says_and_no_more_often_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("baton_client.client.time.sleep", waited.append)
    answers = iter([httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(503), httpx.Response(200, json={"items": []})])
    with Client("http://x", "k", transport=httpx.MockTransport(lambda _: next(answers))) as client:
        assert client.tasks().items == []
    assert waited[0] == 7 and 0 < waited[1] < 1
    away = Client("http://x", "k", tries=3, transport=httpx.MockTransport(lambda _: httpx.Response(503)))
    with away, pytest.raises(Unreachable, match="503"):
        away.tasks()
    assert len(waited) == 2 + 2


def test_a_newer_server_may_say_more_and_an_older_one_less() -> None:
    known = {"id": str(uuid4()), "name": "a", "element_id": "e", "status": "open", "process_instance_id": str(uuid4()),
             "root_instance_id": str(uuid4()), "created_at": "2026-11-30T10:00:00+00:00"}  # fmt: skip
    task = read(Task, {**known, "invented_later": 1})
    assert (task.assignee, task.candidate_groups) == (None, [])
    with pytest.raises(ValueError, match=r"Task\.name: expected, not found"):
        read(Task, {name: value for name, value in known.items() if name != "name"})


def test_the_client_for_asyncio_does_the_same(site: Site, olga: Client, committed_db: Conn) -> None:
    async def use() -> list[str]:
        async with AsyncClient(site.url, api_key(committed_db, "olga")) as client:
            started = await asyncio.gather(*(client.start("printing", business_key=f"O-{n}") for n in range(5)))
            assert len({case.id for case in started}) == 5
            with pytest.raises(NotFound):
                await client.instance(uuid4())
            return [case.business_key or "" async for case in client.every(client.instances, limit=2)]

    assert sorted(in_a_loop(use())) == [f"O-{n}" for n in range(5)]
