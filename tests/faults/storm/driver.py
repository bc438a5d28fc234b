"""The traffic: people with sessions and forms, a client that starts cases, clients that work outside, publishers, an operator.

Each is a thread that does one thing after another and behaves as it should: after silence it asks again under the same
request id. What it learns goes into the journal; what it remembers serves only to choose what to do next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.storm.journal import Journal
from tests.faults.storm.models import TOPIC
from tests.faults.storm.talk import PRESS, TOKEN, GivenUp, Talker

PEOPLE = ("ann", "ben", "cleo")
PASSWORD = "a long enough sentence for a storm"
API = "/api/v1"
DAY = 86400


@dataclass
class Shared:
    """What the threads of one driver know together."""

    receiver: str
    in_flight: int
    running: Callable[[], int]  # cases that have not ended
    finishing: threading.Event = field(default_factory=threading.Event)  # nothing new is begun
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    to_pay: list[tuple[float, str]] = field(default_factory=list)  # when, business key
    paid: set[str] = field(default_factory=set)
    newest: dict[str, int] = field(default_factory=dict)  # external task -> highest lease number that was given out
    stale: list[tuple[str, int]] = field(default_factory=list)  # leases that somebody still holds and no longer should
    trouble: list[str] = field(default_factory=list)

    def pay_in(self, seconds: float, key: str) -> None:
        """Once for each key, whoever asks first."""
        with self.lock:
            if key not in self.paid:
                self.paid.add(key)
                self.to_pay.append((time.monotonic() + seconds, key))

    def due_payment(self) -> str | None:
        with self.lock:
            for index, (at, key) in enumerate(self.to_pay):
                if at <= time.monotonic() or self.finishing.is_set():
                    del self.to_pay[index]
                    return key
        return None


class Driver:
    """All of them. `servers`: addresses; `key`: an operator's API key."""

    def __init__(self, servers: Sequence[str], journal: Journal, shared: Shared, *, seed: int, key: str) -> None:
        self.shared, self.journal = shared, journal

        def talker(name: str, *, with_key: bool = True) -> Talker:
            return Talker(name, servers, journal, seed=str(seed), key=key if with_key else None)

        self.talkers = [talker(name, with_key=False) for name in PEOPLE]
        parts: list[tuple[Talker, Callable[[Talker, Shared, int], bool]]] = [(person, _work_on_a_task) for person in self.talkers]
        parts += [(talker(name), step) for name, step in STEPS]
        self.talkers = [who for who, _ in parts]
        self._threads = [threading.Thread(target=self._run, args=part, name=part[0].name, daemon=True) for part in parts]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Begin nothing new; go on with what is there."""
        self.shared.finishing.set()

    def stop(self) -> None:
        self.shared.ended.set()
        for thread in self._threads:
            thread.join(200)
            if thread.is_alive():
                self.shared.trouble.append(f"{thread.name}: expected to end, still running")

    def _run(self, who: Talker, step: Callable[[Talker, Shared, int], bool]) -> None:
        turn = 0
        try:
            if who.name in PEOPLE:
                who.sign_in(PASSWORD)
            while not self.shared.ended.is_set():
                turn += step(who, self.shared, turn)
                self.shared.ended.wait(who.chance.uniform(0.02, 0.15))
        except (GivenUp, AssertionError, Exception) as problem:
            self.shared.trouble.append(f"{who.name}: {type(problem).__name__}: {problem}")
            raise


# ---- each returns whether something was done; `turn` counts what was


def _start_cases(who: Talker, shared: Shared, turn: int) -> bool:
    if shared.finishing.is_set() or shared.running() >= shared.in_flight:
        return False
    process = "race" if turn % 3 == 2 else "order"
    case = f"{process}-{turn}"
    variables = {"receiver": shared.receiver} if process == "order" else {}
    body = {"business_key": case, "variables": variables}
    status, _ = who.change("start", f"{API}/process-definitions/{process}/start", {"case": case, "process": process}, json=body)
    assert status == 201, f"{case}: expected 201, found {status}"
    if process == "order" and turn % 2:
        shared.pay_in(0, case)  # paid before anybody waits for it: the message is stored
    return True


def _publish(who: Talker, shared: Shared, turn: int) -> bool:
    key = shared.due_payment()
    if key is not None:
        if not _send(who, "paid", key):  # its case is suspended: it receives later
            with shared.lock:
                shared.to_pay.append((time.monotonic() + 0.5, key))
            shared.ended.wait(0.2)
        return True
    if shared.finishing.is_set() or shared.running() >= shared.in_flight or who.chance.random() > 0.15:
        return False
    _send(who, "letter", f"letter-{turn}")
    return True


def _send(who: Talker, name: str, key: str) -> bool:
    body = {"name": name, "correlation_key": key, "variables": {}, "time_to_live_seconds": DAY}
    status, answer = who.change("publish", f"{API}/messages", {"name": name, "key": key}, json=body)
    assert status == 200 or answer.get("reason") == "instance_suspended", f"message {name} {key}: expected 200, found {status} {answer}"
    return status == 200


def _mend(who: Talker, shared: Shared, turn: int) -> bool:
    """The operator gives new attempts to what has none left: killed too often, by us."""
    shared.ended.wait(1)
    found = who.items(f"{API}/incidents")
    for incident in found:
        kind, item = incident["item_kind"], incident["item_id"]
        path = {"job": "jobs", "external_task": "external-tasks"}.get(kind)
        if path is not None:
            who.change("retry", f"{API}/{path}/{item}/retry", {"item": item, "message": incident["message"]}, json={"attempts": 10})
    return bool(found)


def _suspend_a_case(who: Talker, shared: Shared, turn: int) -> bool:
    """The operator stops a case for a moment, and lets it go on."""
    shared.ended.wait(1)
    cases = [case for case in who.items(f"{API}/process-instances", status="running", limit=20) if case["parent_id"] is None]
    if shared.finishing.is_set() or not cases:
        return False
    case = who.chance.choice(cases)["id"]
    if _change_case(who, "suspend", case) == 200:
        shared.ended.wait(0.5)
        _change_case(who, "resume", case)
    return True


def _change_case(who: Talker, what: str, case: str) -> int:
    status, _ = who.change(what, f"{API}/process-instances/{case}/{what}", {"instance": case}, json={"reason": "a storm"})
    return status


# ---- people: a page, a press; the press again when nobody answered


def _work_on_a_task(who: Talker, shared: Shared, turn: int) -> bool:
    tasks = who.items(f"{API}/tasks", limit=20)
    mine = [task for task in tasks if task["assignee"] == who.name]
    open_ones = [task for task in tasks if task["status"] == "open"]
    others = [task for task in tasks if task["status"] == "claimed" and task["assignee"] != who.name]
    if others and who.chance.random() < 0.15:
        _press(who, "claim", who.chance.choice(others))  # somebody has it: to be told so
    if mine:  # left lying: its case was suspended, or the page went away
        _complete(who, who.chance.choice(mine))
        return True
    if not open_ones:
        return False
    task = open_ones[0] if who.chance.random() < 0.5 else who.chance.choice(open_ones)
    if _press(who, "claim", task) != 303:
        return True
    if who.chance.random() < 0.08:
        _press(who, "unclaim", task)
        return True
    if who.chance.random() < 0.3:
        shared.ended.wait(0.4)  # it lies on the desk, for others to see
    _complete(who, task)
    return True


def _complete(who: Talker, task: dict[str, Any]) -> None:
    answer = {"approve": "approval", "answer": "reply"}[task["element_id"]]
    press = f"{who.name}-{who.chance.getrandbits(48):x}"
    for _ in range(2 if who.chance.random() < 0.1 else 1):  # a second press of one button, of another tab
        _press(who, "complete", task, press=press, **{answer: f"{who.name} {press}"})


def _press(who: Talker, what: str, task: dict[str, Any], *, press: str | None = None, **fields: str) -> int:
    """Open the task's page and press a button of it; the answer's status, 0 where the page shows no such button any more."""
    page = who.get(f"/tasks/{task['id']}")
    if page.status_code == 404:
        return 0
    assert page.status_code == 200, f"the page of task {task['id']}: expected 200, found {page.status_code} {page.text[:300]}"
    token, made = TOKEN.search(page.text), PRESS.search(page.text)
    assert token is not None, f"the page of task {task['id']}: expected a CSRF token"
    request = press or (f"{made[1]}" if made else f"{who.name}-{who.chance.getrandbits(48):x}")
    about = {"task": task["id"], "case": task["business_key"], "fields": fields}
    form = {"csrf_token": token[1], "request_id": request, **fields}
    status, _ = who.change(what, f"/tasks/{task['id']}/{what}", about, request=request, data=form)
    return status


# ---- programs outside: acquire, work, report; some too late, some that give up, some that hold on


def _work_outside(who: Talker, shared: Shared, turn: int) -> bool:
    seconds = who.chance.choice((1.2, 5, 5, 5))
    body = {"worker_id": who.name, "topics": [TOPIC], "limit": 2, "lease_seconds": seconds}
    status, answer = who.change("acquire", f"{API}/external-tasks/acquire", {"seconds": seconds}, json=body)
    assert status == 200, f"acquire: expected 200, found {status}"
    for task in answer["items"]:
        with shared.lock:
            shared.newest[task["id"]] = max(task["lease_number"], shared.newest.get(task["id"], 0))
        _answer_late(who, shared)
        _work(who, shared, task, hurried=seconds < 2)
    return bool(answer["items"])


def _work(who: Talker, shared: Shared, task: dict[str, Any], *, hurried: bool) -> None:
    lease = (task["id"], task["lease_number"])
    chance = who.chance.random()
    if hurried and chance < 0.5:  # falls asleep over it; comes back when another may have it
        with shared.lock:
            shared.stale.append(lease)
        return
    if hurried:  # wakes up after the expiry, holds on, and goes on working
        shared.ended.wait(1.6)
        if _report(who, "renew", *lease, lease_seconds=20) != 200:
            return
        shared.ended.wait(1.0)
    elif chance < 0.2:
        _report(who, "fail", *lease, error="the box is too small", retry_in=0.3)
        return
    if _report(who, "complete", *lease, variables={"packed": who.name}) == 200:
        shared.pay_in(who.chance.uniform(0, 1), task["business_key"].removesuffix("/parcel"))


def _answer_late(who: Talker, shared: Shared) -> None:
    """A lease that was lost: its holder wakes up and reports when another has been given the task, and before that one does."""
    with shared.lock:
        known = [lease for lease in shared.stale if shared.newest[lease[0]] > lease[1]]
        if known:
            shared.stale.remove(known[0])
    if known:
        _report(who, "complete", *known[0], knows_better=True, variables={"packed": "too late"})


def _report(who: Talker, what: str, task: str, number: int, *, knows_better: bool = False, **body: Any) -> int:
    about = {"task": task, "lease_number": number, "knows_better": knows_better, **body}
    name = "finish" if what == "complete" else what
    status, _ = who.change(name, f"{API}/external-tasks/{task}/{what}", about, json={"lease_number": number, **body})
    return status


STEPS: tuple[tuple[str, Callable[[Talker, Shared, int], bool]], ...] = (
    ("starter", _start_cases),
    ("publisher", _publish),
    ("packer-one", _work_outside),
    ("packer-two", _work_outside),
    ("operator", _mend),
    ("supervisor", _suspend_a_case),
)
