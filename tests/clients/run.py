"""One package through all of its ways: at once, while it waits, and after a client of it was killed in mid-poll."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.clients.client import Client, client
from tests.clients.house import House
from tests.clients.packages import AT_ONCE, Package, model

TASKS = 20
PATIENCE_SECONDS = 180
DOCUMENT = {"items": [1, 2.5, "drei"], "empty": {}, "none": None}


@dataclass(slots=True)
class Played:
    """What was done to one package. `started`: way -> the instances; `told`: way of telling, as in the drivers."""

    package: Package
    tasks: int
    started: dict[str, list[str]] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    dead_worker: str = ""
    second_worker: str = ""
    seconds: float = 0.0


def play(house: House, package: Package, *, tasks: int = TASKS) -> Played:
    """Raises when a client ends by itself or its cases do not end in time; what else is wrong, `check` finds."""
    begun = time.monotonic()
    played = Played(package, tasks)
    with house.http() as http:
        deploy(http, package)
        with client(house, package, 1, package.ways) as first:
            first.wait_until_it_waits()
            for way in AT_ONCE:
                if way in package.ways:
                    played.started[way] = [start(http, package, way, number) for number in range(tasks)]
            wait_until_ended(house, package, played, [first])
            played.started["poll"] = []
            for number in range(tasks):  # one after the other: each finds the client waiting
                played.started["poll"].append(start(http, package, "poll", number))
                wait_until_ended(house, package, played, [first])
            first.wait_until_it_waits()
            first.kill()
            played.started["killed"] = [start(http, package, "killed", number) for number in range(tasks)]
        with client(house, package, 2, ["killed"]) as second:
            wait_until_ended(house, package, played, [second])
            wait_until_heard(second, tasks)
        played.told = first.told() + second.told()
        played.dead_worker, played.second_worker = first.worker, second.worker
    played.seconds = time.monotonic() - begun
    return played


def deploy(http: httpx.Client, package: Package) -> None:
    """The processes of all its ways, in one deployment."""
    files = {way: (f"{package.definition_key(way)}.bpmn", model(package, way), "text/xml") for way in package.ways}
    answer = http.post("/deployment/create", data={"deployment-name": package.name}, files=files)
    assert answer.status_code == 200, f"deployment of {package.name}: {answer.status_code} {answer.text}"


def start(http: httpx.Client, package: Package, way: str, number: int) -> str:
    variables = {
        "number": {"type": "Integer", "value": number},
        "text": {"type": "String", "value": f"Nº {number} – 人"},
        "flag": {"type": "Boolean", "value": number % 2 == 0},
        "doc": {"type": "Json", "value": json.dumps(DOCUMENT)},
    }
    if package.driver.endswith(".mjs"):  # real Camunda's dates break fastbpmn in the same way
        variables["at"] = {"type": "Date", "value": "2026-11-30T10:00:00.000+0000"}
    answer = http.post(
        f"/process-definition/key/{package.definition_key(way)}/start", json={"variables": variables, "businessKey": f"{way} {number}"}
    )
    assert answer.status_code == 200, f"start of {package.definition_key(way)}: {answer.status_code} {answer.text}"
    return str(answer.json()["id"])


def wait_until_ended(house: House, package: Package, played: Played, clients: Sequence[Client]) -> None:
    """Until none of its instances runs any more."""
    end = time.monotonic() + PATIENCE_SECONDS
    while running := house.rows(_RUNNING, [each for ids in played.started.values() for each in ids]):
        for each in clients:
            each.check_alive()
        if time.monotonic() > end:
            told = [line for each in clients for line in each.told()]
            raise TimeoutError(f"{package.name}: expected every case to end within {PATIENCE_SECONDS} s, found {running}; told {told[-5:]}")
        time.sleep(0.02)


def wait_until_heard(heard: Client, completions: int) -> None:
    """The last answer has reached its client a moment after its case ended."""
    end = time.monotonic() + 10
    while sum(line["did"] == "completed" for line in heard.told()) < completions and time.monotonic() < end:
        time.sleep(0.02)


_RUNNING = """
SELECT d.key, i.id::text, (SELECT array_agg(e.status || ' ' || coalesce(e.lease_owner, '') || ' ' || coalesce(e.last_error, ''))
  FROM external_task e WHERE e.instance_id = i.id)
FROM process_instance i JOIN process_definition d ON d.id = i.definition_id
WHERE i.id = ANY (%s::uuid[]) AND i.status = 'running' LIMIT 5
"""
