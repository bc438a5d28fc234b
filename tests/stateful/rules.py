"""What workers, people and an operator do, and what each of it must have answered and changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deliveries import delivered, delivery_failed
from engine.commands.external_tasks import (
    acquire_external_tasks,
    complete_external_task,
    fail_external_task,
    release_external_task,
    renew_external_task,
    throw_external_error,
)
from engine.commands.jobs import complete_job, fail_job, throw_job_error
from engine.commands.leases import release, release_by_operator, renew
from engine.commands.messages import publish_message
from engine.commands.outcome import ItemFailed, Lease, MessagePublished, Refusal, Rejected, Renewed
from engine.commands.retry import retry_item
from engine.commands.suspend import resume_instance, suspend_instance
from engine.commands.tasks import claim, unclaim
from engine.db.acquire import acquire_deliveries, acquire_jobs, recover_expired
from tests import rows
from tests.cast import ADA, BO, OP
from tests.injected.asking import as_first
from tests.scenarios_db.stage import _ENDS
from tests.stateful import house
from tests.stateful.house import Item
from tests.stateful.machine import AGAIN, EARLY, FAULTS, INDEX, PASSAGES, UNKNOWN, WORKERS, Connection, Doubt, Several, done

ROUNDS = 60  # until everything must have come to rest
REPORTS = ("complete", "complete", "complete", "fail", "error", "uncaught", "release", "renew")
ACTS = ("claim", "claim", "complete", "complete", "unclaim")
PEOPLE = {"ada": ADA, "bo": BO}
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Held:
    """What a worker believes to have."""

    worker: str
    lease: Lease
    job: tuple[str, str] = ("", "")


class House(Several):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[Held] = []
        self.reported: list[tuple[Held, str, Any]] = []  # what was said, and answered
        self.cancelled: set[UUID] = set()
        self.completed: set[UUID] = set()

    # ---- workers

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 4), fault=FAULTS, of=st.sampled_from(house.TABLES))
    def acquire(self, worker: str, limit: int, fault: str, of: str) -> None:
        """From all three tables; the fault is met at one of them."""
        for table in house.TABLES:
            self._acquire(worker, table, limit, fault if table == of else "")

    def _acquire(self, worker: str, table: str, limit: int, fault: str) -> None:
        before = house.items(self.sees)
        got = self.do(worker, _acquisition(worker, table, limit), fault, 1, "later")
        after = house.items(self.sees)
        leased = {key for key in after if after[key] != before.get(key)}
        for key in leased:  # with or without an answer: leases that nobody heard of run out
            old, new = before[key], after[key]
            assert old.status == "available" and new == old._replace(status="leased", number=old.number + 1, attempts=old.attempts + 1)
        assert len(leased) <= limit
        self.met["leases that nobody heard of"] += len(leased) if got is UNKNOWN else 0
        if got is not UNKNOWN:
            assert {held.lease.item_id for held in got} == leased
            assert all(held.lease.number == after[held.lease.item_id].number for held in got)
            self.held += got
        self.only(before, leased)

    @precondition(lambda self: self.held)
    @rule(which=INDEX, says=st.lists(st.sampled_from(REPORTS), min_size=1, max_size=4), fault=FAULTS, at=PASSAGES, again=AGAIN)
    def report(self, which: int, says: list[str], fault: str, at: int, again: str) -> None:
        """Of one item after the other; the last meets the fault."""
        for number, what in enumerate(says, 1):
            if self.held:
                place = which % len(self.held)
                held = self.held[place] if what == "renew" else self.held.pop(place)
                self._report(held, what, fault if number == len(says) else "", at, again)

    @precondition(lambda self: self.reported)
    @rule(which=INDEX, what=st.sampled_from((*REPORTS, "", "", "", "")), fault=FAULTS, at=PASSAGES)
    def report_once_more(self, which: int, what: str, fault: str, at: int) -> None:
        """A worker that did not hear of its answer, or does not know any more what it said."""
        held, said, answer = self.reported[which % len(self.reported)]
        again = self._report(held, what or said, fault, at, "now", said=said)
        if what in ("", said) and done(answer):
            assert as_first(again) == as_first(answer), f"{said}: expected the same answer as before, {answer}, found {again}"

    def _report(self, held: Held, what: str, fault: str = "", at: int = 1, again: str = "now", said: str = "") -> Any:
        key, number = held.lease.item_id, held.lease.number
        before, cases = house.items(self.sees), house.roots(self.sees)
        item = before.get(key)
        outcome = self.do(held.worker, _report(held, what), fault, at, again)
        counts = item is not None and item.status == "leased" and item.number == number
        if what != "renew":
            self.reported.append((held, what, outcome))
        if outcome is UNKNOWN:
            self.only(before, {key} if counts else (), case=item.root_id if item and counts else None)
            return outcome
        if item is None or not counts:
            self.met["too late" if isinstance(outcome, Rejected) else "said again"] += 1
            self.only(before)
            # What this very lease has ended with before is said again; anything else is lost.
            assert isinstance(outcome, Rejected) or said or what == "renew" or item is None or item.number >= number, outcome
            if what == "renew" and isinstance(outcome, Renewed):
                assert key not in outcome.expires_at, outcome
            return outcome
        mark = cases[item.root_id][1] if item.root_id else None
        if isinstance(outcome, Rejected):
            assert mark is not None and what in ("complete", "error", "uncaught"), outcome
            assert outcome.refusal is Refusal.INSTANCE_SUSPENDED, outcome
            self.met["suspended"] += 1
            self.only(before)
            return outcome
        after = self.only(before, {key}, case=item.root_id)
        self.met[f"{what} {item.table}"] += 1
        self._judge(item, after.get(key), what, outcome)
        return outcome

    def _judge(self, old: Item, new: Item | None, what: str, outcome: Any) -> None:
        """Under a lease that counts, the row became what was reported."""
        gone = old.table != "delivery"
        spent = "failed" if old.attempts >= old.maximum else "available"
        if isinstance(outcome, ItemFailed):
            assert new == old._replace(status=outcome.status)
            assert outcome.status == spent or what in ("error", "uncaught"), outcome  # not every model catches it
            return
        match what:
            case "renew":
                assert new == old
            case "release":
                assert new == old._replace(status="available", attempts=old.attempts - 1)
            case _:
                assert what != "fail", outcome
                assert new is None if gone else new == old._replace(status="completed")

    @rule(worker=st.sampled_from(WORKERS), fault=EARLY)
    def recover(self, worker: str, fault: str) -> None:
        before = house.items(self.sees)
        expired = {key for (key,) in self.sees.execute(_EXPIRED).fetchall()}
        taken = self.do(worker, lambda conn: recover_expired(conn, limit=100), fault, 1)
        assert {each.item_id for each in taken} == expired
        after = self.only(before, expired)
        self.met["recovered"] += len(expired)
        for key in expired:
            old = before[key]
            assert after[key] == old._replace(status="failed" if old.attempts >= old.maximum else "available")

    @rule(duration=st.sampled_from((45, 45, 45, 16 * 60, 86_400)))
    def time_passes(self, duration: int) -> None:
        self.clock.advance(seconds=duration)

    # ---- an operator

    @rule(which=INDEX, fault=FAULTS, at=PASSAGES)
    def retry(self, which: int, fault: str, at: int) -> None:
        before = house.items(self.sees)
        failed = [key for key, item in before.items() if item.status == "failed"] or list(before)
        if failed:
            key = failed[which % len(failed)]
            request = f"retry-{self.number()}"
            outcome = self.do(
                "people", lambda conn: retry_item(conn, before[key].table, key, actor=OP, attempts=2, request_id=request), fault, at
            )
            old = before[key]
            if old.status != "failed":
                assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_FAILED
                self.only(before)
                return
            self.met["retried"] += 1
            after = self.only(before, {key})
            assert after[key] == old._replace(status="available", maximum=max(old.maximum, old.attempts + 2)), (old, after[key])

    @rule(which=INDEX, fault=FAULTS, at=PASSAGES)
    def take_away(self, which: int, fault: str, at: int) -> None:
        before = house.items(self.sees)
        leased = [key for key, item in before.items() if item.status == "leased"]
        if leased:
            key = leased[which % len(leased)]
            request = f"away-{self.number()}"
            outcome = self.do(
                "people",
                lambda conn: release_by_operator(conn, before[key].table, key, actor=OP, reason="it hangs", request_id=request),
                fault,
                at,
            )
            assert done(outcome), outcome
            self.met["taken away"] += 1
            old = before[key]
            after = self.only(before, {key})
            assert after[key] == old._replace(status="failed" if old.attempts >= old.maximum else "available")

    @precondition(lambda self: self.started)
    @rule(which=INDEX, what=st.sampled_from(("suspend", "resume", "resume", "cancel")), fault=FAULTS, at=PASSAGES)
    def change_a_case(self, which: int, what: str, fault: str, at: int) -> None:
        case = list(self.started.values())[which % len(self.started)]
        before, (status, mark) = house.items(self.sees), house.roots(self.sees)[case]
        if what == "cancel" and mark is not None:
            return  # that takes jobs of several steps (tests/commands, tests/races)
        command: Any = {"suspend": suspend_instance, "resume": resume_instance, "cancel": cancel_instance}[what]
        request = f"{what}-{self.number()}"
        outcome = self.do("people", lambda conn: command(conn, case, actor=OP, reason="why not", request_id=request), fault, at)
        may = status == "running" and (what == "cancel" or (mark is None) == (what == "suspend"))
        assert done(outcome) == may, (what, status, mark, outcome)
        self.met[f"{what} a case"] += may
        self.only(before, case=case if what == "cancel" and may else None)
        if may:
            wanted = {"suspend": ("running", "suspended"), "resume": ("running", None), "cancel": ("cancelled", None)}[what]
            assert house.roots(self.sees)[case] == wanted
        if may and what == "cancel":
            self.cancelled.add(case)

    # ---- people and messages

    @rule(
        which=INDEX,
        who=st.sampled_from(sorted(PEOPLE)),
        says=st.lists(st.sampled_from(ACTS), min_size=1, max_size=4),
        fault=FAULTS,
        at=PASSAGES,
    )
    def act(self, which: int, who: str, says: list[str], fault: str, at: int) -> None:
        """On one task, live ones before ended ones; the last meets the fault."""
        there = house.tasks(self.sees)
        keys = sorted(there, key=lambda key: there[key].status in ("completed", "cancelled"))
        for number, what in enumerate(says if keys else (), 1):
            self._act(keys[which % len(keys)], who, what, fault if number == len(says) else "", at)

    def _act(self, key: UUID, who: str, what: str, fault: str = "", at: int = 1) -> None:
        before, old = house.items(self.sees), house.tasks(self.sees)[key]
        mark = house.roots(self.sees)[old.root_id][1]
        request, actor = f"{what}-{self.number()}", PEOPLE[who]
        calls: dict[str, Callable[[Connection], Any]] = {
            "claim": lambda conn: claim(conn, key, actor=actor, request_id=request),
            "unclaim": lambda conn: unclaim(conn, key, actor=actor, request_id=request),
            "complete": lambda conn: complete_task(conn, key, actor=actor, variables={}, request_id=request),
        }
        outcome = self.do("people", calls[what], fault, at)
        mine, free = old[:2] == ("claimed", who), old.status == "open"
        may = {"claim": mine or (free and mark is None), "unclaim": mine, "complete": mine and mark is None}[what]
        new = house.tasks(self.sees)[key]
        assert done(outcome) == may, (what, who, old, mark, outcome)
        self.met[f"{what} a task" if may else f"no {what}"] += 1
        wanted = {"claim": ("claimed", who), "unclaim": ("open", None), "complete": ("completed", who)}[what] if may else old[:2]
        assert new[:2] == wanted, (what, who, old, new)
        self.only(before, case=old.root_id if may and what == "complete" else None)
        if may and what == "complete":
            self.completed.add(key)

    @rule(which=INDEX, named=st.booleans(), live=st.sampled_from((None, 3600.0)), fault=FAULTS, at=PASSAGES)
    def publish(self, which: int, named: bool, live: float | None, fault: str, at: int) -> None:
        """To who waits, or to nobody; without a request id no answer gets lost, because nobody could ask again."""
        waiting = [key for (key,) in self.sees.execute("SELECT correlation_key FROM subscription ORDER BY created_at, id").fetchall()]
        key = (waiting or ["nobody"])[which % max(len(waiting), 1)]
        request = f"publish-{self.number()}" if named else None
        fault = "" if fault == "lost after commit" and not named else fault
        before = house.items(self.sees)
        outcome = self.do(
            "people",
            lambda conn: publish_message(
                conn, "PAID", actor=OP, correlation_key=key, variables={}, time_to_live_seconds=live, request_id=request
            ),
            fault,
            at,
        )
        after = self.sees.execute("SELECT count(*) FROM subscription WHERE correlation_key = %s", (key,)).fetchone()
        if isinstance(outcome, MessagePublished) and outcome.outcome == "correlated":
            assert after == (0,)
            self.met["correlated"] += 1
            self.only(before, case=outcome.instance_id)
        else:
            assert done(outcome) == (not waiting and live is not None) or outcome.refusal is Refusal.INSTANCE_SUSPENDED, outcome
            self.only(before)

    # ---- the end

    def drain(self) -> None:
        """With workers alive and time passing everything ends, as everybody was told."""
        for doubt in self.doubts:
            doubt.answered(self.do("people", doubt.call))
        for _ in range(ROUNDS):
            if not any(status == "running" for status, _ in house.roots(self.sees).values()) and self._all_sent():
                break
            self._one_round()
        assert not (found := [*house.left_over(self.sees), *house.wrong(self.sees)]), found
        cases = house.roots(self.sees)
        assert cases.keys() == set(self.started.values())
        assert {case for case, (status, _) in cases.items() if status == "cancelled"} == self.cancelled
        there = house.tasks(self.sees)
        assert all(there[key].status == "completed" for key in self.completed)

    def _all_sent(self) -> bool:
        return rows.one(self.sees, "SELECT count(*) FROM delivery WHERE status <> 'completed'") == 0

    def _one_round(self) -> None:
        conn = self.at["people"]
        self.clock.advance(days=1)
        for case, (status, mark) in house.roots(self.sees).items():
            if status == "running" and mark is not None:
                assert done(outcome := resume_instance(conn, case, actor=OP)), (mark, outcome)
        recover_expired(conn, limit=100)
        for key, item in house.items(self.sees).items():
            if item.status == "failed":
                assert done(retry_item(conn, item.table, key, actor=OP, attempts=1))
        for table in house.TABLES:
            for held in _acquisition("A", table, 100)(self.at["A"]):
                assert done(_report(held, "complete")(self.at["A"]))
        for (key,) in self.sees.execute("SELECT correlation_key FROM subscription").fetchall():
            assert done(publish_message(conn, "PAID", actor=OP, correlation_key=key, variables={}))
        for task, row in house.tasks(self.sees).items():
            if row.status in ("open", "claimed"):
                actor = PEOPLE[row.assignee or "ada"]
                assert done(claim(conn, task, actor=actor, request_id=None))
                assert done(complete_task(conn, task, actor=actor, variables={}, request_id=None))


_EXPIRED = " UNION ALL ".join(
    f"SELECT id FROM {table} WHERE status = 'leased' AND lease_expires_at < baton_now()" for table in house.TABLES
).encode()


def _acquisition(worker: str, table: str, limit: int) -> Callable[[Connection], list[Held]]:
    """Leases of one table."""
    kinds = [*_ENDS, ("service", "work")]

    def take(conn: Connection) -> list[Held]:
        if table == "external_task":
            tasks = acquire_external_tasks(conn, actor=OP, worker_id=worker, topics=["ext"], limit=limit, lease_seconds=SECONDS)
            assert not isinstance(tasks, Rejected), tasks
            return [Held(worker, Lease(table, task.id, task.lease_number, worker, task.lease_expires_at)) for task in tasks]
        if table == "delivery":
            got = acquire_deliveries(conn, owner=worker, kinds=["http"], limit=limit, lease_seconds=SECONDS, workers=3)
        else:
            got = acquire_jobs(conn, owner=worker, capabilities=kinds, limit=limit, lease_seconds=SECONDS, workers=3)
        return [Held(worker, Lease(table, each.item_id, each.number, worker, each.expires_at), (each.job_kind, each.topic)) for each in got]

    return take


def _report(held: Held, what: str) -> Callable[[Connection], Any]:
    """The command by which a worker says this of what it holds."""
    lease, table = held.lease, held.lease.kind
    if table == "external_task":
        return _external(lease, what)
    if what == "renew":
        return lambda conn: renew(conn, [lease])
    if what == "release":
        return lambda conn: release(conn, lease)
    if table == "delivery":
        if what == "fail":
            return lambda conn: delivery_failed(conn, lease, error="out of paper")
        return lambda conn: delivered(conn, lease, response={})
    if what == "fail":
        return lambda conn: fail_job(conn, lease, error="out of paper")
    if held.job in _ENDS:
        return lambda conn: _ENDS[held.job](conn, lease)
    if what in ("error", "uncaught"):
        code = "NO" if what == "error" else "OTHER"
        return lambda conn: throw_job_error(conn, lease, code=code, message="", variables={})
    return lambda conn: complete_job(conn, lease, variables={})


def _external(lease: Lease, what: str) -> Callable[[Connection], Any]:
    key, given = lease.item_id, {"actor": OP, "lease_number": lease.number}
    commands: dict[str, Callable[[Connection], Any]] = {
        "complete": lambda conn: complete_external_task(conn, key, variables={}, **given),
        "fail": lambda conn: fail_external_task(conn, key, error="out of paper", **given),
        "error": lambda conn: throw_external_error(conn, key, code="NO", **given),
        "uncaught": lambda conn: throw_external_error(conn, key, code="OTHER", **given),
        "renew": lambda conn: renew_external_task(conn, key, lease_seconds=SECONDS, **given),
        "release": lambda conn: release_external_task(conn, key, **given),
    }
    return commands[what]


__all__ = ["Doubt", "House"]
