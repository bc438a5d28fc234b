"""Short runs through the rules of the machine, written down: what must have happened, and what a broken guard trips over.

Neither is left to chance. A script yields after each step; then what must always hold is looked for, as it is between the steps
that are drawn. `shows` says what the counters must have seen at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.databases import Databases
from tests.stateful.machine import BEFORE
from tests.stateful.rules import House

Script = Callable[[House], Iterator[Any]]
SHOWS: dict[Script, frozenset[str]] = {}
SURELY = ("", 1)  # no fault
LOST = ("lost after commit", 1)
EXPIRY, BACKOFF = 45, 16 * 60  # seconds: longer than a lease, longer than a wait between attempts


def shows(*what: str) -> Callable[[Script], Script]:
    def noted(script: Script) -> Script:
        SHOWS[script] = frozenset(what)
        return script

    return noted


def play(databases: Databases, script: Script) -> None:
    """Step by step; then everything ends, as it does after the steps that are drawn."""
    House.databases = databases
    House.met.clear()
    house = House()
    try:
        for _ in script(house):
            house.what_must_be()
            house.lives_follow_the_maps()
        assert not (never := SHOWS[script] - {what for what, times in house.met.items() if times}), (never, house.met)
        house.drain()
    finally:
        house.leave()


def begun(house: House, *keys: str) -> None:
    for key in keys:
        house.start(key, *SURELY, "now")


@shows(*BEFORE, "recovered")
def every_fault_before_anything_is_done(house: House) -> Iterator[Any]:
    for kind in BEFORE:
        yield begun(house, "work")
        yield house.acquire("A", 1, "", "job")
        yield house.time_passes(EXPIRY)
        yield house.recover("B", kind)


@shows("lost after commit", "leases that nobody heard of", "recovered", "complete job", "complete external_task", "complete delivery")
def leases_whose_answer_was_lost_run_out(house: House) -> Iterator[Any]:
    yield begun(house, "work", "outside", "sends")
    for table in ("job", "external_task", "delivery"):
        yield house._acquire("A", table, 4, "lost after commit")
    assert house.met["leases that nobody heard of"] == 3, house.met
    yield house.time_passes(EXPIRY)
    yield house.recover("B", "")
    assert house.met["recovered"] == 3, house.met
    yield house.time_passes(BACKOFF)
    yield house.acquire("B", 4, "", "job")
    yield house.report(0, ["complete"] * 3, *SURELY, "now")


@shows("recovered", "too late", "fail job", "fail external_task", "fail delivery")
def a_worker_that_is_too_late_says_that_it_failed(house: House) -> Iterator[Any]:
    yield begun(house, "work", "outside", "sends")
    yield house.acquire("A", 4, "", "job")
    yield house.time_passes(EXPIRY)
    yield house.recover("B", "")
    yield house.time_passes(BACKOFF)
    yield house.acquire("B", 4, "", "job")
    assert [held.worker for held in house.held] == ["A"] * 3 + ["B"] * 3, house.held
    yield house.report(0, ["fail"] * 3, *SURELY, "now")
    assert house.met["too late"] == 3, house.met
    yield house.report(0, ["fail"] * 3, *SURELY, "now")


@shows("renew job")
def a_lease_that_has_not_run_out_is_left_alone(house: House) -> Iterator[Any]:
    yield begun(house, "work", "outside", "sends")
    yield house.acquire("A", 4, "", "job")
    yield house.recover("B", "")
    yield house.report(0, ["renew"], *SURELY, "now")
    yield house.report(0, ["complete"] * 3, *SURELY, "now")


@shows("lost after commit", "asked again later")
def a_start_whose_answer_was_lost_is_asked_again(house: House) -> Iterator[Any]:
    yield house.start("work", *LOST, "later")
    yield house.ask_again(0)
    yield house.start("work", *LOST, "now")


@shows("lost after commit", "said again")
def a_report_whose_answer_was_lost_is_said_again(house: House) -> Iterator[Any]:
    yield begun(house, "work", "work")
    yield house.acquire("A", 4, "", "job")
    yield house.report(0, ["complete"], *SURELY, "now")
    yield house.report_once_more(0, "", *SURELY)
    yield house.report(0, ["complete"], *LOST, "later")
    yield house.report_once_more(1, "", *SURELY)


@shows("uncaught job", "error external_task", "release delivery", "retried", "taken away")
def an_operator_steps_in(house: House) -> Iterator[Any]:
    yield begun(house, "work", "outside", "sends")
    yield house.acquire("A", 4, "", "job")
    yield house.report(0, ["uncaught", "error", "release"], *SURELY, "now")
    yield house.retry(0, *SURELY)
    yield house.acquire("A", 4, "", "job")
    yield house.take_away(0, *SURELY)


@shows("suspend a case", "suspended", "resume a case", "cancel a case", "no claim")
def a_case_is_suspended_resumed_and_cancelled(house: House) -> Iterator[Any]:
    yield begun(house, "both")
    yield house.acquire("A", 4, "", "job")
    yield house.change_a_case(0, "suspend", *SURELY)
    yield house.act(0, "ada", ["claim"], *SURELY)
    yield house.report(0, ["complete"], *SURELY, "now")
    yield house.change_a_case(0, "resume", *SURELY)
    yield house.change_a_case(0, "cancel", *SURELY)


@shows("correlated", "claim a task", "no claim", "no complete", "unclaim a task", "no unclaim", "complete a task")
def two_people_want_one_task(house: House) -> Iterator[Any]:
    yield begun(house, "letter")
    yield house.publish(0, True, None, *SURELY)
    for who, what in (("ada", "claim"), ("bo", "claim"), ("bo", "complete"), ("bo", "unclaim"), ("ada", "unclaim")):
        yield house.act(0, who, [what], *SURELY)
    yield house.act(0, "bo", ["claim", "complete"], *SURELY)
    yield house.act(0, "ada", ["complete"], *SURELY)
