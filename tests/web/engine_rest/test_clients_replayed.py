"""What five clients of other makers send for one task, replayed: `make clients` runs the packages themselves (tests/clients)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from flask import Flask

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.clients.packages import PACKAGES, Package, model
from tests.clients.replayed import RECORDED, Call, Recorded
from tests.web.engine_rest.conftest import basic
from tests.web.operations import OLGA, api_key, one, started

# pycamunda asks for each of these; a time is read by %Y-%m-%dT%H:%M:%S.%f%z.
KEYS = {
    "activityId", "activityInstanceId", "errorMessage", "executionId", "id", "lockExpirationTime", "processDefinitionId",
    "processDefinitionKey", "processInstanceId", "tenantId", "retries", "suspended", "workerId", "priority", "topicName", "businessKey",
}  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0000")
GIVEN = {
    "number": {"type": "Integer", "value": 7, "valueInfo": {}},
    "text": {"type": "String", "value": "Nº 7 – 人", "valueInfo": {}},
    "flag": {"type": "Boolean", "value": True, "valueInfo": {}},
    "doc": {"type": "Json", "value": '{"items":[1,2.5,null]}', "valueInfo": {}},
}
SHOWN: dict[str, list[int | None]] = {"failure": [None, 2, 1], "unlock": [None, None], "incident": [None, 0, 0, 1]}


def package_of(recorded: Recorded) -> Package:
    name, version = recorded.package.split()
    (found,) = [each for each in PACKAGES if (each.name, each.version) == (name, version)]
    return found


def test_every_way_of_every_package_is_recorded() -> None:
    by_name = {package_of(each).name: {*each.ways} for each in RECORDED}
    assert by_name == {package.name: {*package.ways} - {"poll", "killed"} for package in PACKAGES}


@pytest.mark.parametrize(
    ("recorded", "way"), [(each, way) for each in RECORDED for way in each.ways], ids=lambda v: getattr(v, "package", v)
)
def test_what_a_client_sends_is_understood_and_what_it_reads_is_there(
    app: Flask, people: Any, committed_db: psycopg.Connection, recorded: Recorded, way: str
) -> None:
    package = package_of(recorded)
    assert isinstance(deploy(committed_db, [("p.bpmn", model(package, way))], actor=OLGA), Deployed)
    values = {"number": 7, "text": "Nº 7 – 人", "flag": True, "doc": {"items": [1, 2.5, None]}}
    case = started(committed_db, package.definition_key(way), actor=OLGA, business_key=f"{way} 7", **values)
    run = Replay(app, recorded, package.topic(way), api_key(committed_db, "olga"), case)
    for call in recorded.ways[way]:
        run.send(call)
    assert run.shown == SHOWN.get(way, [None])
    assert one(committed_db, "SELECT status FROM process_instance WHERE id = %s", case) == "completed"
    final = one(committed_db, "SELECT final_variables FROM process_instance WHERE id = %s", case)
    got = {name: (final[name]["type"], final[name]["value"]) for name in final if name not in values}
    if way == "error":
        assert got == {"why": ("string", "x")}
        return
    assert got.pop("at_back", ("datetime", "2026-11-30T10:00:00+00:00")) == ("datetime", "2026-11-30T10:00:00+00:00")
    assert got == {
        "square": ("integer", 49),
        "said": ("string", "Nº 7 – 人!"),
        "half": ("double", 3.5),
        "not_flag": ("boolean", False),
        "back": ("json", {"items": [1, 2.5, None]}),
    }


class Replay:
    """Sends the calls of one package, keeps what their answers have, and reads these as the package does."""

    def __init__(self, app: Flask, recorded: Recorded, topic: str, token: str, case: UUID) -> None:
        self.client, self.recorded = app.test_client(), recorded
        self.known = {"worker": "w-1", "topic": topic, "instance": str(case)}
        auth = basic("olga") if recorded.auth == "basic" else {"Authorization": f"Bearer {token}"}
        self.headers = {**recorded.headers, **auth}
        self.shown: list[int | None] = []

    def send(self, call: Call) -> None:
        path, body = self._filled(call.path), self._filled(call.body or "")
        typed = {"Content-Type": "application/json"} if call.body is not None or self.recorded.typed_without_body else {}
        answer = self.client.open(f"/engine-rest{path}", method=call.method, data=body.encode(), headers={**self.headers, **typed})
        assert answer.status_code == call.status, f"{call.method} {path}: {answer.status_code} {answer.text}"
        if call.status == 204:
            assert answer.data == b""
            return
        if path.endswith("/errorDetails"):
            assert answer.text == "none"
            return
        # The JavaScript client compares the whole header: with a charset behind it, it would read bytes.
        assert answer.headers["Content-Type"] == "application/json"
        if call.takes:
            self._take(answer.json)
        elif "/count" in path:
            assert answer.json == {"count": 1}
        elif "/activity-instances" in path:
            (leaf,) = self._leaves(answer.json)
            assert leaf["executionIds"] == [self.known["leaf"]]
        elif f"/execution/{self.known['instance']}" in path:
            assert answer.json == GIVEN
        elif "/execution/" in path:
            assert answer.json == {}
        else:
            assert TIME.fullmatch(answer.json["startTime"]) and answer.json["endTime"] is None

    def _take(self, found: Any) -> None:
        (task,) = found if isinstance(found, list) else [found]
        assert task.keys() >= KEYS
        assert task["topicName"] == self.known["topic"] and task["processInstanceId"] == self.known["instance"]
        assert task["lockExpirationTime"] is None or TIME.fullmatch(task["lockExpirationTime"])
        if "variables" in task and task["variables"] is not None:
            assert task["variables"] == GIVEN
        self.known |= {"task": task["id"], "leaf": task["executionId"]}
        self.shown.append(task["retries"])

    def _leaves(self, tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not tree["childActivityInstances"]:
            yield tree
        for child in tree["childActivityInstances"]:
            yield from self._leaves(child)

    def _filled(self, text: str) -> str:
        for name, value in self.known.items():
            text = text.replace(f"{{{name}}}", value)
        return text
