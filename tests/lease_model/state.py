"""What the model of durable work keeps: the row, what each worker believes, a report on its way, and a ledger.

The ledger is no part of the engine: it is what an observer who sees everything writes down, and the claims are about it.
"""

from __future__ import annotations

from typing import NamedTuple

FINAL = frozenset({"completed", "cancelled"})  # nothing leaves these
AT_REST = FINAL | {"failed"}  # `failed` rests beside an incident until a person gives it a new attempt
REPORTS = ("complete", "fail", "release")


class Row(NamedTuple):
    """The item as the database has it. `expired`: a lease whose time is up by the database's clock."""

    status: str = "available"
    number: int = 0
    attempts: int = 0
    maximum: int = 2
    expired: bool = False


class Worker(NamedTuple):
    """What one worker process believes. `late`: its own deadline, on its own clock, has passed, or matters no more.

    `doing`: idle | acquired | started | done (the effect happened) | unsure complete, fail, release (sent, never answered).
    """

    doing: str = "idle"
    number: int = -1
    attempt: int = -1
    late: bool = False
    stopping: bool = False


class Report(NamedTuple):
    """A command whose connection was lost: it may still commit, or never."""

    what: str
    number: int
    attempt: int


class Ledger(NamedTuple):
    """`ends[n]`: how often lease n was ended; number 0 stands for "never leased". Counts stop at two, which is too many."""

    ends: tuple[int, ...] = (1,)
    end: str = ""  # the first final status
    completions: int = 0
    effect: bool = False
    stale: bool = False  # a report was accepted under a number that was not the row's
    late_start: bool = False  # a handler was started under a lease that had expired


class State(NamedTuple):
    row: Row
    workers: tuple[Worker, ...]
    flight: Report | None = None
    read: Row | None = None  # by a recovery that reads first and writes later; the engine has none
    ledger: Ledger = Ledger()


def first(workers: int) -> State:
    return State(Row(), (Worker(),) * workers)


def renumbered(state: State) -> State:
    """The same state with the lease numbers in use as 0, 1, 2 …: only which is newer matters, so that endlessly many become few."""
    row, workers, flight, read, ledger = state
    used = {row.number}
    used.update(worker.number for worker in workers if worker.doing != "idle")
    if flight is not None:
        used.add(flight.number)
    if read is not None:
        used.add(read.number)
    if len(used) == len(ledger.ends):
        return state
    order = sorted(used)
    rank = {number: place for place, number in enumerate(order)}
    return State(
        row._replace(number=rank[row.number]),
        tuple(w if w.doing == "idle" else w._replace(number=rank[w.number]) for w in workers),
        flight and flight._replace(number=rank[flight.number]),
        read and read._replace(number=rank[read.number]),
        ledger._replace(ends=tuple(ledger.ends[number] for number in order)),
    )
