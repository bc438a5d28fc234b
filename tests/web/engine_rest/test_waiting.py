"""Who is called, and when: the thread that looks for all who wait, without a server and without a database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator

import pytest
from sqlalchemy.exc import OperationalError

from engine.queries.external_tasks import Branch
from tests.worker.processes import eventually
from webapp.engine_rest import waiting
from webapp.engine_rest.waiting import Polls, Waiter

A, B = ("", "a"), ("", "b")


class Database:
    """What a look finds; counts the looks."""

    def __init__(self) -> None:
        self.free: dict[Branch, int] = {}
        self.asked: list[frozenset[Branch]] = []
        self.breaks = 0

    def look(self, topics: Collection[Branch], limit: int) -> dict[Branch, int]:
        self.asked.append(frozenset(topics))
        if self.breaks:
            self.breaks -= 1
            raise OperationalError("SELECT", {}, Exception("gone"))
        return {topic: min(many, limit) for topic, many in self.free.items() if topic in topics}


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def polls(database: Database) -> Iterator[Polls]:
    made = Polls(database.look, cap=10, per_person=8)
    yield made
    made.close()
    for each in list(made._waiters):
        made.leave(each)
    eventually(lambda: made._thread is None, "the thread to end when nobody waits")


@pytest.fixture
def called() -> list[str]:
    return []


@pytest.fixture
def wait(polls: Polls, called: list[str]) -> Callable[..., Waiter]:
    def begin(name: str, *topics: Branch, person: str = "olga", seconds: float = 30, picky: bool = False) -> Waiter:
        waiter = Waiter(polls, name, ("", person), dict.fromkeys(topics or (A,), picky), time.monotonic() + seconds)
        assert polls.join(waiter)
        waiter.start(lambda: called.append(name))
        return waiter

    return begin


def test_as_many_are_called_as_there_are_tasks_the_first_ones_first(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str]
) -> None:
    for name in ("one", "two", "three"):
        wait(name)
    wait("other", B)
    database.free = {A: 2}
    eventually(lambda: len(called) == 2, "two to be called")
    database.free = {}
    assert called == ["one", "two"]
    assert any(topics == {A, B} for topics in database.asked), "one look is for all who wait"


def test_one_who_was_called_and_found_nothing_keeps_its_place(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str]
) -> None:
    first = wait("first")
    wait("second")
    database.free = {A: 1}
    eventually(lambda: called[:1] == ["first"], "the first to be called")
    database.free = {}
    del called[:]
    first.start(lambda: called.append("first again"))
    database.free = {A: 1}
    eventually(lambda: called, "one to be called")
    assert called[0] in ("first again", "second")
    eventually(lambda: "first again" in called, "it to be called again")


def test_one_that_wants_only_some_takes_nobodys_place_and_is_not_called_all_the_time(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    picky = wait("picky", picky=True)
    wait("plain")
    database.free = {A: 1}
    eventually(lambda: set(called) == {"picky", "plain"}, "both to be called")
    looks = len(database.asked)
    picky.start(lambda: called.append("too soon"))
    eventually(lambda: len(database.asked) > looks + 2, "more looks")
    assert "too soon" not in called


def test_one_whose_time_is_over_is_called_to_be_answered(polls: Polls, wait: Callable[..., Waiter], called: list[str]) -> None:
    waiter = wait("short", seconds=0.2)
    eventually(lambda: called == ["short"], "it to be called")
    assert waiter.over


def test_one_that_has_gone_is_not_called_and_one_that_was_called_cannot_go(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str]
) -> None:
    gone = wait("gone")
    assert gone.give_up()
    wait("there")
    database.free = {A: 5}
    eventually(lambda: called, "the other to be called")
    assert called == ["there"]
    assert not gone.give_up()


def test_R6_one_is_called_once_however_often_it_is_found(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str]
) -> None:
    wait("one")
    database.free = {A: 3}
    eventually(lambda: called, "it to be called")
    looks = len(database.asked)
    wait("two", B)
    eventually(lambda: len(database.asked) > looks + 1, "more looks")
    assert called == ["one"]


def test_a_look_that_fails_costs_nobody_the_place(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "UNREACHABLE_SECONDS", 0.05)
    database.breaks = 2
    database.free = {A: 1}
    wait("one")
    eventually(lambda: called == ["one"], "it to be called")
    assert len(database.asked) >= 3


def test_there_is_room_for_so_many_and_for_half_as_many_of_one_person(polls: Polls, wait: Callable[..., Waiter]) -> None:
    for number in range(8):
        wait(f"olga {number}")
    assert not polls.join(Waiter(polls, "ninth", ("", "olga"), {A: False}, time.monotonic() + 30))
    for number in range(2):
        wait(f"root {number}", person="root")
    assert not polls.join(Waiter(polls, "eleventh", ("", "root"), {A: False}, time.monotonic() + 30))
    assert len(polls) == 10


def test_a_process_that_stops_answers_everybody_and_takes_nobody(polls: Polls, wait: Callable[..., Waiter], called: list[str]) -> None:
    started, late = wait("started"), Waiter(polls, "late", ("", "olga"), {A: False}, time.monotonic() + 30)
    assert polls.join(late)
    polls.close()
    assert called == ["started"]
    assert started.over
    parked = threading.Event()
    late.start(parked.set)
    assert parked.is_set()
    assert not polls.join(Waiter(polls, "later", ("", "olga"), {A: False}, time.monotonic() + 30))


def test_a_sign_brings_the_next_look_forward(
    polls: Polls, database: Database, wait: Callable[..., Waiter], called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LATEST_SECONDS", 3600.0)
    monkeypatch.setattr(waiting, "SOONEST_SECONDS", 1e-6)
    monkeypatch.setattr(waiting, "GROWTH", 1e9)
    wait("one")
    eventually(lambda: len(database.asked) > 1, "a look in vain, after which the next is in a quarter of an hour")
    database.free = {A: 1}
    polls.wake()
    eventually(lambda: called == ["one"], "it to be called")
