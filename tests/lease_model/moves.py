"""Every move of the life cycle, each as atomic as its SQL is: a statement with its guard is one move.

What a worker does between two statements (start a handler, have its effect) is a move of its own, so everything else may
happen in between. A worker that stands still is one that does not move; a killed one has a successor with nothing in hand,
and so has one that stops: it acquires no more, hands back what it did not start, and may end what it started.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.lease_model.rules import Rules
from tests.lease_model.state import FINAL, REPORTS, Report, Row, State, Worker

MOST = 3  # attempts that an operator's retry may lead to
IDLE = Worker()
NAMES = "ABC"
GOES_ON = tuple(f"worker {name} goes on" for name in NAMES)
TIME_PASSES = tuple(f"time passes for worker {name}" for name in NAMES)


class Move(NamedTuple):
    """`fair`: the kind of move that cannot be put off for ever. `seldom`: people and stops, which happen finitely often.

    `who`: a worker's name, or nobody's. Action and who name a move of a state; words.py says what it is.
    """

    action: str
    who: str
    after: State
    fair: str = ""
    seldom: bool = False


def moves(state: State, rules: Rules) -> Iterator[Move]:
    for place, worker in enumerate(state.workers):
        if worker.doing == "idle":
            yield from _acquire(state, place)
        else:
            yield from _in_hand(state, place, worker, rules)
    yield from _flight(state, rules)
    yield from _upkeep(state, rules)
    if rules.people:
        yield from _people(state)


# ---- a worker


def _acquire(state: State, place: int) -> Iterator[Move]:
    """acquire.py: `available` and attempts < max_attempts, re-checked on the locked row; number + 1, attempts + 1."""
    row = state.row
    if row.status != "available" or row.attempts >= row.maximum:
        return
    leased = Row("leased", row.number + 1, row.attempts + 1, row.maximum)
    ledger = state.ledger._replace(ends=(*state.ledger.ends, 0))
    after = _with(state._replace(row=leased, ledger=ledger), place, Worker("acquired", leased.number, leased.attempts))
    yield Move("acquire", NAMES[place], after, "somebody acquires")


def _in_hand(state: State, place: int, worker: Worker, rules: Rules) -> Iterator[Move]:
    name = NAMES[place]
    yield Move("kill", name, _with(state, place, IDLE))
    if worker.doing == "acquired" and not worker.stopping:
        yield Move("shutdown", name, _with(state, place, worker._replace(stopping=True)), seldom=True)
        if not worker.late:
            yield _start(state, place, worker)
    if worker.doing == "started":
        after = _with(state, place, worker._replace(doing="done", late=True))
        yield Move("effect", name, after._replace(ledger=state.ledger._replace(effect=True)), GOES_ON[place])
    for what in _reports(worker):
        yield from _report(state, place, worker, what, rules)
    yield from _clock(state, place, worker, rules)


def _start(state: State, place: int, worker: Worker) -> Move:
    row = state.row
    after = _with(state, place, worker._replace(doing="started"))
    if row.expired and row.number == worker.number:
        after = after._replace(ledger=state.ledger._replace(late_start=True))
    return Move("start", NAMES[place], after, GOES_ON[place])


def _reports(worker: Worker) -> tuple[str, ...]:
    """What it may report. It hands back what it did not start when it stops, or has too little time left; or what may not go on."""
    match worker.doing:
        case "acquired":
            return ("release",) if worker.stopping or worker.late else ()
        case "started":
            return ("fail",)
        case "done":
            return REPORTS
        case unsure:
            return (unsure.removeprefix("unsure "),)


def _report(state: State, place: int, worker: Worker, what: str, rules: Rules) -> Iterator[Move]:
    """A command under the lease: answered, or its connection is lost. Who is unsure asks again, under the same lease."""
    asks = worker.doing.startswith("unsure")
    report = Report(what, worker.number, worker.attempt)
    if asks and what == "complete" and not rules.unknown_outcome_is_asked_under_the_lease:
        yield Move("ask without a guard", NAMES[place], _with(_completed_blindly(state), place, IDLE), GOES_ON[place])
        return
    landed = land(state, report, rules)
    seldom = what == "release" and landed is not state
    yield Move("ask" if asks else what, NAMES[place], _with(landed, place, IDLE), GOES_ON[place], seldom)
    if not asks and state.flight is None:
        unsure = Worker(f"unsure {what}", worker.number, worker.attempt, late=True)
        yield Move(f"lose {what}", NAMES[place], _with(state._replace(flight=report), place, unsure))


def _clock(state: State, place: int, worker: Worker, rules: Rules) -> Iterator[Move]:
    """Its own deadline, which matters until the effect, and the renewal. A lease that expired and that nobody took back may be renewed."""
    row = state.row
    starting = worker.doing in ("acquired", "started")
    if not worker.late:
        yield Move("late", NAMES[place], _with(state, place, worker._replace(late=True)), TIME_PASSES[place])
    held = _may(row, worker.number, worker.attempt, rules)
    if not rules.renewal_looks_at_the_status:
        held = row.number == worker.number and row.status in ("leased", "available")
    if held and (row.expired or (worker.late and starting) or row.status != "leased"):
        renewed = state._replace(row=row._replace(status="leased", expired=False))
        yield Move("renew", NAMES[place], _with(renewed, place, worker._replace(late=not starting)))
    elif not held and not worker.doing.startswith("unsure"):
        yield Move("lost", NAMES[place], _with(state, place, IDLE), GOES_ON[place])


# ---- the connection


def _flight(state: State, rules: Rules) -> Iterator[Move]:
    if state.flight is not None:
        rest = state._replace(flight=None)
        landed = land(rest, state.flight, rules)
        yield Move("land", "", landed, seldom=state.flight.what == "release" and landed is not rest)
        yield Move("vanish", "", rest)


# ---- upkeep, which every replica does


def _upkeep(state: State, rules: Rules) -> Iterator[Move]:
    row = state.row
    if state.read is not None:
        yield Move("write", "", _written_late(state, state.read), "recovery")
    if row.status != "leased":
        return
    if not row.expired:
        if not rules.own_deadline_comes_first or all(w.late or w.number != row.number for w in state.workers):
            yield Move("expire", "", state._replace(row=row._replace(expired=True)), "expiry")
    elif rules.recovery_in_one_statement:
        yield Move("recover", "", _taken_back(state, rules), "recovery")
    elif state.read is None:
        yield Move("read", "", state._replace(read=row), "recovery")


# ---- people


def _people(state: State) -> Iterator[Move]:
    row = state.row
    if row.status == "leased":
        yield Move("take away", "", _ended(state, row._replace(status=_left(row))), seldom=True)
    if row.status == "failed" and row.attempts < MOST:
        yield Move("retry", "", state._replace(row=row._replace(status="available", maximum=row.attempts + 1)), seldom=True)
    if row.status not in FINAL:
        cancelled = row._replace(status="cancelled")
        yield Move("cancel", "", _ended(state, cancelled) if row.status == "leased" else _moved(state, cancelled))


# ---- the statements


def _may(row: Row, number: int, attempt: int, rules: Rules) -> bool:
    """The guard: id, status, and the fence."""
    if row.status != "leased":
        return False
    match rules.fence:
        case "number":
            return number == row.number
        case "attempts":
            return attempt == row.attempts
        case "none":
            return True


def land(state: State, report: Report, rules: Rules) -> State:
    """The report's statement runs; the very same state where its guard holds it back."""
    row = state.row
    if not _may(row, report.number, report.attempt, rules):
        return state
    match report.what:
        case "complete":
            after = row._replace(status="completed")
        case "fail":
            after = row._replace(status=_left(row))
        case _:
            after = row._replace(status="available", attempts=row.attempts - 1)
    if report.number != row.number:
        state = state._replace(ledger=state.ledger._replace(stale=True))
    ended = _ended(state, after)
    return _counted(ended) if report.what == "complete" else ended


def _taken_back(state: State, rules: Rules) -> State:
    """Judged as when a handler fails: after the last attempt it rests as failed, beside an incident."""
    row = state.row
    if rules.recovery_gives_the_attempt_back:
        return _ended(state, row._replace(status="available", attempts=row.attempts - 1))
    return _ended(state, row._replace(status=_left(row) if rules.recovery_knows_the_last_attempt else "available"))


def _written_late(state: State, read: Row) -> State:
    return _ended(state._replace(read=None), state.row._replace(status=_left(read)))


def _completed_blindly(state: State) -> State:
    row = state.row._replace(status="completed")
    return _counted(_ended(state, row) if state.row.status == "leased" else _moved(state, row))


def _left(row: Row) -> str:
    return "failed" if row.attempts >= row.maximum else "available"


def _ended(state: State, row: Row) -> State:
    """The row's lease ends: written down under its number."""
    ends = list(state.ledger.ends)
    ends[row.number] = min(2, ends[row.number] + 1)
    return _moved(state._replace(ledger=state.ledger._replace(ends=tuple(ends))), row)


def _moved(state: State, row: Row) -> State:
    ledger = state.ledger
    if row.status in FINAL and not ledger.end:
        ledger = ledger._replace(end=row.status)
    return state._replace(row=row._replace(expired=False), ledger=ledger)


def _counted(state: State) -> State:
    return state._replace(ledger=state.ledger._replace(completions=min(2, state.ledger.completions + 1)))


def _with(state: State, place: int, worker: Worker) -> State:
    return state._replace(workers=(*state.workers[:place], worker, *state.workers[place + 1 :]))
