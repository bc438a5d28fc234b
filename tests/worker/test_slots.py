"""Slots and the pace of looks: what is acquired ahead, what is handed back, when a worker looks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.worker.processes import eventually
from worker.pace import LONGEST_AFTER_A_CHANGE, SHORTEST, Pace
from worker.slots import AHEAD_SECONDS, MOST_AHEAD, Slots


class Now:
    """The clock that slots go by: it stands still unless it is told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def passes(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    made = Now()
    monkeypatch.setattr("worker.slots.time", SimpleNamespace(monotonic=lambda: made.seconds))
    return made


def slots(run: Callable[[str], object], count: int = 2) -> tuple[Slots[str], threading.Event]:
    freed = threading.Event()
    return Slots("test", count, run=lambda item, _: run(item), freed=freed.set), freed


def idle(made: Slots[str]) -> None:
    assert made.wait_until_idle(seconds=10)


def busy(made: Slots[str], count: int) -> None:
    eventually(lambda: made.busy() == count, f"{count} slots to run something", seconds=10)


def practised(run: Callable[[str], object]) -> Slots[str]:
    """Two slots that have learnt that items take no time."""
    made, _ = slots(lambda item: run(item) if item != "quick" else None)
    for _ in range(60):
        made.begin("quick")
    idle(made)
    return made


def test_nothing_is_acquired_ahead_of_slots_whose_items_take_their_time(now: Now):
    made, _ = slots(lambda item: now.passes(AHEAD_SECONDS * 1.2))
    assert made.room() == 2
    for _ in range(4):
        made.begin("slow")
        idle(made)
    assert made.room() == 2


def test_items_that_take_no_time_are_acquired_ahead_up_to_a_limit():
    assert practised(print).room() == 2 + 2 * MOST_AHEAD


def test_what_is_acquired_ahead_comes_in_batches():
    go = threading.Event()
    made = practised(lambda item: go.wait(10))
    for _ in range(2 + MOST_AHEAD + 1):
        made.begin("item")
    busy(made, 2)
    assert made.room() == 0, "more than half of what is brought ahead still waits"
    go.set()
    idle(made)


def test_while_every_slot_has_a_slow_item_nothing_more_is_acquired_ahead(now: Now):
    go = threading.Event()
    made = practised(lambda item: go.wait(10))
    for _ in range(2):
        made.begin("slow")
    busy(made, 2)
    assert made.room() == 2 * MOST_AHEAD, "they may be short like those before"
    now.passes(AHEAD_SECONDS * 1.2)
    assert made.room() == 0
    go.set()
    idle(made)


def test_what_waits_is_taken_back_oldest_first_and_is_never_run():
    go, ran = threading.Event(), []
    made = practised(lambda item: go.wait(10) if item == "slow" else ran.append(item))
    for item in ("slow", "slow", "first", "second"):
        made.begin(item)
    busy(made, 2)
    assert made.some_wait()
    assert made.take_back(waiting_for=60) is None
    assert [made.take_back(waiting_for=0), made.take_back(waiting_for=0), made.take_back(waiting_for=0)] == ["first", "second", None]
    go.set()
    idle(made)
    assert ran == []


def test_a_slot_that_ends_an_item_says_that_there_is_room_and_survives_what_breaks():
    def breaks(item: str) -> None:
        raise LookupError(item)

    made, freed = slots(breaks, count=1)
    made.begin("item")
    assert freed.wait(10)
    made.begin("item")
    idle(made)


def reported_beside(count: int, reporting: int) -> tuple[Slots[str], dict[str, threading.Event], dict[str, threading.Event]]:
    """Slots whose items run until they are told that they were handled, and are reported until they are told that, too."""
    names = ("a", "b", "c", "d")
    handled, reported = ({name: threading.Event() for name in names} for _ in range(2))

    def run(item: str, leave: Callable[[], None]) -> None:
        assert handled[item].wait(10)
        leave()
        assert reported[item].wait(10)

    return Slots("test", count, run=run, freed=lambda: None, reporting=reporting), handled, reported


def running(made: Slots[str]) -> tuple[int, int]:
    return len(made._running), len(made._reporting)


def test_while_an_item_is_reported_its_slot_runs_the_next_one_but_no_more_run_than_there_are_slots():
    made, handled, reported = reported_beside(1, reporting=1)
    for item in ("a", "b", "c"):
        made.begin(item)
    eventually(lambda: running(made) == (1, 0), "the first item to run")
    handled["a"].set()
    eventually(lambda: running(made) == (1, 1), "the second item to run while the first is reported")
    handled["b"].set()
    eventually(lambda: running(made) == (0, 2), "both to be reported")
    assert made.some_wait(), "every thread has something to report: nobody is there for the third"
    assert not made.wait_until_idle(seconds=0)
    assert made.busy() == 1
    for item in ("a", "b", "c"):
        handled[item].set()
        reported[item].set()
    idle(made)
    assert running(made) == (0, 0)


def test_there_is_room_for_as_many_items_as_slots_are_free_and_threads_are_there_for_them():
    made, handled, reported = reported_beside(2, reporting=1)
    rooms = []
    for number, item in enumerate(("a", "b"), 1):
        made.begin(item)
        handled[item].set()
        eventually(lambda: running(made) == (0, number), "the item to be reported")  # noqa: B023 - asked at once
        rooms.append(made.room())
    assert rooms == [2, 1]
    for item in ("a", "b"):
        reported[item].set()
    idle(made)


def test_without_a_thread_to_spare_an_item_keeps_its_slot_until_it_is_reported():
    made, handled, reported = reported_beside(1, reporting=0)
    made.begin("a")
    made.begin("b")
    handled["a"].set()
    handled["b"].set()
    eventually(lambda: running(made) == (1, 0), "the first item to run")
    assert made.some_wait()
    reported["a"].set()
    reported["b"].set()
    idle(made)


def test_a_lane_looks_at_once_while_it_finds_all_it_asks_for():
    pace = Pace(poll_seconds=1.0)
    assert pace.wants_look(100.0)
    pace.looked(100.0, found=4, asked=4)
    assert pace.wants_look(100.0)
    pace.looked(100.0, found=3, asked=4)
    assert not pace.wants_look(100.1), "there was no more"
    pace.changed = True
    assert pace.wants_look(100.0 + SHORTEST)


def test_changes_that_bring_no_work_make_a_lane_look_seldom_but_soon_enough():
    pace, now = Pace(poll_seconds=1.0), 100.0
    for _ in range(10):
        pace.looked(now, found=0, asked=4)
        pace.changed = True
        assert not pace.wants_look(now)
        now = pace.next_look()
    pace.looked(now, found=0, asked=4)
    pace.changed = True
    assert pace.next_look() == now + LONGEST_AFTER_A_CHANGE
    assert pace.wants_look(pace.next_look())


def test_without_any_sign_a_lane_looks_when_something_becomes_due_and_every_poll_seconds():
    pace = Pace(poll_seconds=1.0)
    pace.looked(100.0, found=0, asked=4)
    assert not pace.wants_look(100.9)
    assert pace.wants_look(101.0)
    pace.due = [100.5, 100.7]
    assert pace.next_look() == 100.5
    assert pace.wants_look(100.5)
    pace.looked(100.5, found=0, asked=4)
    assert not pace.wants_look(100.6), "it was due, and is no reason any more"
    assert pace.wants_look(100.7), "the next one is known already"
