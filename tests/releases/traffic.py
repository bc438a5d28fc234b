"""Traffic of other programs over HTTP, at every web server in turn: one case after another through all sorts of durable work.

Nothing here but `/api/v1` is used, so the servers may be of any release. Each change is sent twice under one key, the second
time to the next server: both must answer the same, whichever release made the change (R6).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import count
from typing import Any

import httpx
import psycopg

from tests.faults.load import Receiver
from tests.worker.models import HEAD, service, timer

KEY, CALLED = "order", "stock"
WAYS = ("pause", "add", "pack", "paid", "look", "each")


def models() -> dict[str, str]:
    """File -> model: a handler's effect, six ways side by side (timer, thread, external, message, called, many), a person, a delivery."""
    many = service("each", "test.add").replace(
        "</serviceTask>",
        "<multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>",
    )
    everything = '<extensionElements><camunda:in variables="all"/></extensionElements>'
    nodes = [
        '<startEvent id="start"/>',
        service("reserve", "http.call", {"url": "${reserve_url}", "method": "POST"}, retry="R20/PT1S"),
        '<parallelGateway id="fork"/>',
        timer("pause", "PT0.2S"),
        service("add", "test.add"),
        '<serviceTask id="pack" camunda:type="external" camunda:topic="pack"/>',
        '<receiveTask id="paid" messageRef="paid_message"/>',
        f'<callActivity id="look" calledElement="{CALLED}">{everything}</callActivity>',
        many,
        '<parallelGateway id="join"/>',
        '<userTask id="approve" camunda:candidateGroups="clerks"/>',
        service("notify", "http.deliver", {"url": "${notify_url}"}, retry="R20/PT1S"),
        '<endEvent id="end"/>',
    ]
    ways = " ".join(f"fork>{way} {way}>join" for way in WAYS)
    flows = f"start>reserve reserve>fork {ways} join>approve approve>notify notify>end"
    order = HEAD + '<message id="paid_message" name="PAID"/>' + _process(KEY, nodes, flows)
    called = ['<startEvent id="start"/>', service("count", "test.add"), '<endEvent id="end"/>']
    return {f"{KEY}.bpmn": order, f"{CALLED}.bpmn": HEAD + _process(CALLED, called, "start>count count>end")}


def _process(key: str, nodes: list[str], flows: str) -> str:
    pairs = [flow.split(">") for flow in flows.split()]
    lines = "".join(f'<sequenceFlow id="{a}_{b}" sourceRef="{a}" targetRef="{b}"/>' for a, b in pairs)
    return f'<process id="{key}" isExecutable="true">{"".join(nodes)}{lines}</process></definitions>'


class Traffic:
    """Starts cases and does everybody's work, a few at a time in flight, until told to stop. `sites`: may be changed meanwhile."""

    def __init__(self, token: str, receiver: Receiver, *, in_flight: int = 6) -> None:
        self.sites: list[str] = []
        self._client = httpx.Client(headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30)
        self._receiver, self._in_flight = receiver, in_flight
        self._turns, self._keys = count(), count()
        self._stopping = threading.Event()
        self.started: dict[str, str] = {}  # business key -> the instance that its start was answered with
        self.completed: dict[str, str] = {}  # task -> its case
        self.packed: set[str] = set()
        self.trouble: list[str] = []
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finished(self) -> int:
        return len(self.completed)

    def stop(self) -> None:
        """Start no more, and bring what was started to the person's completion."""
        self._stopping.set()
        self._thread.join(60)
        done = f"{self.finished()} of {len(self.started)}"
        assert not self._thread.is_alive(), f"expected the traffic to end, {done} cases are done, trouble {self.trouble}"

    def abandon(self) -> None:
        """Whatever is in flight, ask no more."""
        self._stopping.set()
        self._client.close()

    def _run(self) -> None:
        try:
            while not (self._stopping.is_set() and len(self.completed) == len(self.started)):
                if not self._stopping.is_set() and len(self.started) - len(self.completed) < self._in_flight:
                    self._begin(f"case-{len(self.started)}")
                elif not self._work():
                    time.sleep(0.05)
        except Exception as problem:
            self.trouble.append(f"{type(problem).__name__}: {problem}")

    def _begin(self, case: str) -> None:
        urls = {f"{name}_url": f"{self._receiver.url}/{name}/{case}" for name in ("reserve", "notify")}
        body = {"business_key": case, "variables": {**urls, "a": 2, "b": 3}}
        self.started[case] = self._change(f"/process-definitions/{KEY}/start", body, 201)["id"]
        payment = {"name": "PAID", "correlation_key": case, "variables": {"paid": True}, "time_to_live_seconds": 600}
        self._change("/messages", payment, 200)

    def _work(self) -> bool:
        """What lies there for people and for programs outside; whether there was anything."""
        tasks = [task for task in self._get(f"/tasks?process_definition_key={KEY}&limit=200") if task["id"] not in self.completed]
        for task in tasks:
            if task["status"] == "open":
                self._change(f"/tasks/{task['id']}/claim", {}, 200)
            self._change(f"/tasks/{task['id']}/complete", {"variables": {"approved": True}}, 200)
            self.completed[task["id"]] = task["business_key"]
        ask = {"worker_id": "traffic", "topics": ["pack"], "limit": 5, "lease_seconds": 30}
        packing = self._post(self._site(), "/external-tasks/acquire", ask, key=None)[1]["items"]
        for item in packing:
            self._change(f"/external-tasks/{item['id']}/complete", {"lease_number": item["lease_number"], "variables": {}}, 200)
            self.packed.add(item["id"])
        return bool(tasks or packing)

    def _change(self, path: str, body: dict[str, Any], expected: int) -> Any:
        """At one server, and again at the next, which must answer the same."""
        key = f"traffic-{next(self._keys)}"
        first, again = (self._post(self._site(), path, body, key=key) for _ in range(2))
        if first[0] != expected or _steady(first) != _steady(again):
            self.trouble.append(f"{path}: expected {expected} twice alike, found {first} and {again}")
        return first[1]

    def _post(self, site: str, path: str, body: dict[str, Any], *, key: str | None) -> tuple[int, Any]:
        answer = self._client.post(f"{site}/api/v1{path}", json=body, headers={"Idempotency-Key": key} if key else {})
        if answer.status_code >= 500:
            self.trouble.append(f"POST {site}{path}: {answer.status_code} {answer.text[:300]}")
        return answer.status_code, answer.json()

    def _get(self, path: str) -> list[dict[str, Any]]:
        answer = self._client.get(f"{self._site()}/api/v1{path}")
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text[:300]}"
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    def _site(self) -> str:
        return self.sites[next(self._turns) % len(self.sites)]


def _steady(answer: tuple[int, Any]) -> tuple[int, Any]:
    """What of an answer may not differ when the case moves on between the two: whose it is."""
    status, body = answer
    return status, body.get("id") or body.get("message_id")


def problems(conn: psycopg.Connection[Any], traffic: Traffic, receiver: Receiver) -> list[str]:
    """Everything lost, doubled or stuck at the end, one sentence each."""
    found = list(traffic.trouble)
    rows = conn.execute("SELECT business_key, id::text, status FROM process_instance WHERE parent_id IS NULL").fetchall()
    found += [f"{case} was started {many} times" for case, many in Counter(case for case, *_ in rows).items() if many > 1]
    there = {case: (key, status) for case, key, status in rows}
    found += [
        f"{case}: expected {key} completed, found {there.get(case)}"
        for case, key in traffic.started.items()
        if there.get(case) != (key, "completed")
    ]
    found += [f"{case}: an instance that nobody was told of" for case in there.keys() - traffic.started.keys()]
    found += [f"{what} {many} times" for what, many in conn.execute(_TWICE).fetchall()]
    seen: dict[str, set[str]] = {}
    for key, path in receiver.effects():
        seen.setdefault(path, set()).add(key)
    wanted = {f"/{what}/{case}" for case in traffic.started for what in ("reserve", "notify")}
    found += [f"{path}: expected one key, found {seen.get(path)}" for path in wanted if len(seen.get(path, ())) != 1]
    found += [f"{path}: an effect of no case" for path in seen.keys() - wanted]
    for table in ("token", "scope", "variable", "subscription", "incident", "job", "external_task", "message"):
        (left,) = conn.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
        found += [f"{left} rows of {table} are left"] if left else []
    return found


_TWICE = """
SELECT format('item %s: %s', item_id, kind), count(*) FROM history WHERE item_id IS NOT NULL
  AND (kind LIKE '%\\_completed' OR kind LIKE '%\\_created' OR kind = 'timer_fired') GROUP BY 1, item_id, kind HAVING count(*) > 1
UNION ALL
SELECT format('item %s: lease %s ended', item_id, data->>'lease_number'), count(*) FROM history WHERE data ? 'lease_number'
  AND (kind ~ '_(completed|failed|recovered|released)$' OR kind = 'timer_fired') GROUP BY 1 HAVING count(*) > 1
UNION ALL
SELECT format('instance %s: left %s', instance_id, element_id), count(*) FROM history
  WHERE kind = 'element_left' AND element_id <> 'each' GROUP BY 1 HAVING count(*) > 1
"""
