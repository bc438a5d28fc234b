"""Drives people, timers and failures through the sample processes, as an office does: unevenly, and never quite right.

Everything goes through the commands that the web and the workers use. The driver starts cases, lets two people reach for
the same task now and then, completes tasks with plausible values, pays most orders, packs parcels as an external worker,
and leaves some work alone, so that timers fire. While it runs the sample service fails some of its calls.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg

from cli.samples.people import PEOPLE
from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task
from engine.commands.messages import publish_message
from engine.commands.outcome import SYSTEM, Actor, Rejected
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.ids import new_id

VENDORS = ("Holm Paper", "Lindt & Co", "Norden Fleet", "Okto Software", "Paulsen Heating", "Quay Catering")
NAMES = ("Ines Marin", "Jon Falk", "Kaya Demir", "Liv Sund", "Milo Hart", "Nora Weiss", "Otis Bell", "Pia Laine")
REASONS = ("Family visit", "Moving house", "Hiking", "A long weekend", "")
CASES = ("invoice-approval", "onboarding", "order-fulfilment", "leave-request")
LEFT_ALONE = 0.15  # the share of tasks and orders that nobody touches: their timers fire

OPEN_TASKS = """
    SELECT t.id, t.element_id, t.name, t.business_key, t.candidate_groups, d.key
    FROM user_task t JOIN process_definition d ON d.id = t.definition_id
    WHERE t.tenant_id = '' AND t.status = 'open' AND d.key = ANY (%(keys)s) AND t.created_at < baton_now() - interval '1 second'
    ORDER BY t.created_at LIMIT 50
"""
WAITING_ORDERS = """
    SELECT s.id, s.correlation_key FROM subscription s
    WHERE s.tenant_id = '' AND s.message_name = 'payment-received' AND s.kind = 'catch' ORDER BY s.created_at LIMIT 50
"""
TODAY = "SELECT baton_now()::date"


@dataclass(frozen=True)
class Plan:
    """How much of it. `failure_percent`: of the calls of the sample service, while the driver runs."""

    seconds: float
    per_second: float = 2.0
    failure_percent: int = 10
    seed: int | None = None


class Driver:
    """One run. `say` gets a line for each thing that was done."""

    def __init__(self, conn: psycopg.Connection[Any], plan: Plan, *, service: str | None, say: Callable[[str], None]) -> None:
        self.conn, self.plan, self.service, self.say = conn, plan, service, say
        self.chance = random.Random(plan.seed)  # noqa: S311 - it makes traffic
        self.people = [Actor(p.username, p.role, frozenset(p.groups), p.display_name) for p in PEOPLE if p.role == "user"]
        self.done: Counter[str] = Counter()
        self._left_alone: set[UUID] = set()
        self._number = self.chance.randrange(10_000, 90_000)

    def run(self, *, told_to_stop: Callable[[float], bool]) -> Mapping[str, int]:
        """Drive until the time is up or `told_to_stop(pause)` says so; what was done, counted."""
        end = time.monotonic() + self.plan.seconds
        before = self._set_failures(self.plan.failure_percent)
        try:
            while time.monotonic() < end:
                self.step()
                if told_to_stop(self.chance.expovariate(self.plan.per_second)):
                    break
        finally:
            if before is not None:
                self._set_failures(before)
        return self.done

    def step(self) -> None:
        """One thing that happens in an office."""
        self.chance.choices((self._start, self._work, self._pay, self._pack), weights=(3, 7, 2, 2))[0]()

    # ---- starting cases

    def _start(self) -> None:
        key, actor = self.chance.choice(CASES), self.chance.choice(self.people)
        self._number += 1
        business_key = f"{key.split('-')[0][:3].upper()}-{self._number}"
        outcome = start_instance(
            self.conn, key, actor=actor, variables=self._beginning(key), business_key=business_key, request_id=str(new_id())
        )
        self._tell("started", outcome, f"{actor.display_name} started {key} {business_key}")

    def _beginning(self, key: str) -> dict[str, Any]:
        chance = self.chance
        row = self.conn.execute(TODAY).fetchone()
        assert row is not None
        day = row[0] + timedelta(days=chance.randrange(3, 40))
        name = chance.choice(NAMES)
        mail = f"{name.split()[0].lower()}@example.test"
        match key:
            case "invoice-approval":
                amount = round(chance.choice((80, 450, 900, 2500, 8000)) * chance.uniform(0.6, 1.4), 2)
                vendor = chance.choice(VENDORS)
                centre = chance.choice(("office", "fleet", "it"))
                return {"vendor": vendor, "vendorMail": "billing@example.test", "amount": amount, "payBy": day, "costCentre": centre}
            case "onboarding":
                return {"person": name, "mail": mail, "role": chance.choice(("engineer", "clerk", "driver")), "startsOn": day}
            case "order-fulfilment":
                quantity = chance.choice((1, 1, 2, 4, 12, 30, 150))
                item = chance.choice(("lamp", "chair", "shelf"))
                return {
                    "customer": name,
                    "mail": mail,
                    "item": item,
                    "quantity": quantity,
                    "amount": round(quantity * chance.uniform(20, 90), 2),
                }
            case "leave-request":
                days = chance.randrange(1, 15)
                return {"firstDay": day, "lastDay": day + timedelta(days=days), "days": days, "reason": chance.choice(REASONS)}
        raise ValueError(f"expected a sample process, found {key!r}")

    # ---- working on tasks

    def _work(self) -> None:
        """Somebody takes a task of their groups and completes it; now and then two reach for the same one."""
        found = self.conn.execute(OPEN_TASKS, {"keys": list(CASES)}).fetchall()
        tasks = [task for task in found if not self._leave_alone(task[0])]
        if not tasks:
            return
        task_id, element_id, name, business_key, groups, _ = self.chance.choice(tasks)
        able = [person for person in self.people if not person.groups.isdisjoint(groups)]
        if not able:
            return
        winner, *others = self.chance.sample(able, len(able))
        outcome = claim(self.conn, task_id, actor=winner, request_id=str(new_id()))
        self._tell("claimed", outcome, f"{winner.display_name} claimed {name} {business_key or ''}")
        if others and self.chance.random() < 0.2:
            late = claim(self.conn, task_id, actor=others[0], request_id=str(new_id()))
            self._tell("claimed", late, f"{others[0].display_name} claimed {name} {business_key or ''} too")
        if isinstance(outcome, Rejected) or self.chance.random() < 0.1:  # claimed, and left lying on the desk
            return
        completed = complete_task(self.conn, task_id, actor=winner, variables=self._answers(element_id), request_id=str(new_id()))
        self._tell("completed", completed, f"{winner.display_name} completed {name} {business_key or ''}")

    def _answers(self, element_id: str) -> dict[str, Any]:
        likely = self.chance.random() < 0.8
        match element_id:
            case "check":
                return {"inOrder": likely, "note": "" if likely else "The order number is missing."}
            case "approve":
                return {"approved": likely, "reason": "" if likely else "Not in this year's budget."}
            case "workplace":
                return {"room": f"{self.chance.choice('ABC')}{self.chance.randrange(100, 420)}", "laptop": likely}
            case "first_week":
                return {"mentor": self.chance.choice(NAMES), "plan": "Tour, tools, first small task."}
            case "welcome":
                return {"arrived": True}
            case "by_hand":
                return {"carrier": "Freight by rail"}
            case "decide" | "decide_instead":
                return {"granted": likely, "answer": "Enjoy it." if likely else "Too many of us are away in that week."}
        raise ValueError(f"expected a task of a sample process, found {element_id!r}")

    # ---- what comes from outside

    def _pay(self) -> None:
        orders = [row for row in self.conn.execute(WAITING_ORDERS).fetchall() if not self._leave_alone(row[0])]
        if not orders:
            return
        _, key = self.chance.choice(orders)
        outcome = publish_message(
            self.conn,
            "payment-received",
            actor=SYSTEM,
            correlation_key=key,
            variables={"paidBy": self.chance.choice(("card", "transfer"))},
            time_to_live_seconds=3600,
            request_id=str(new_id()),
        )
        self._tell("paid", outcome, f"the payment of {key} arrived")

    def _pack(self) -> None:
        """Act as the packing station, an external worker."""
        worker = Actor("packing-station", role="operator", display_name="Packing station")
        tasks = acquire_external_tasks(
            self.conn, actor=worker, worker_id="packing-station-1", topics=["pack-parcel"], limit=2, lease_seconds=30
        )
        if isinstance(tasks, Rejected):
            self._tell("packed", tasks, "the packing station asked for parcels")
            return
        for task in tasks:
            outcome = complete_external_task(
                self.conn, task.id, actor=worker, lease_number=task.lease_number, variables={"parcels": 1}, request_id=str(new_id())
            )
            self._tell("packed", outcome, f"the packing station packed {task.business_key or task.id}")

    # ---- small things

    def _leave_alone(self, thing: UUID) -> bool:
        """Decide once for each thing, so that what is left alone stays so until its timer fires."""
        if thing in self._left_alone:
            return True
        if self.chance.random() < LEFT_ALONE / 10:
            self._left_alone.add(thing)
            return True
        return False

    def _tell(self, what: str, outcome: object, sentence: str) -> None:
        if isinstance(outcome, Rejected):
            self.done["refused"] += 1
            self.say(f"refused ({outcome.refusal}): {sentence}")
            return
        self.done[what] += 1
        self.say(sentence)

    def _set_failures(self, percent: int) -> int | None:
        """Set how often the sample service fails; what it was before, None where there is no service."""
        if self.service is None:
            return None
        with httpx.Client(base_url=self.service, timeout=3, trust_env=False) as client:
            before = int(client.get("/settings").json()["failure_percent"])
            client.put("/settings", json={"failure_percent": percent}).raise_for_status()
        return before
