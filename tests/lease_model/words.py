"""Moves in plain words, for counterexamples."""

from __future__ import annotations

from tests.lease_model.moves import NAMES, Move
from tests.lease_model.state import Row, State


def said(move: Move, before: State) -> str:
    """One move, made in the state `before`."""
    if move.who:
        return f"worker {move.who} {_by_worker(move, before)}"
    number, status = before.row.number, move.after.row.status
    match move.action:
        case "expire":
            return f"lease {number} expires"
        case "recover":
            return f"a recovery takes lease {number} back: the item is {status}"
        case "read":
            return f"a recovery reads that lease {number} has expired"
        case "write":
            return f"the recovery writes what it read, by the item's id alone: the item was {_row(before.row)}, is {status}"
        case "land" if before.flight is not None:
            return (
                f"the report that was on its way arrives: {before.flight.what} under lease {before.flight.number}; {_came_to(move, before)}"
            )
        case "vanish":
            return "the report that was on its way never arrives"
        case "take away":
            return f"an operator takes lease {number} away: the item is {status}"
        case "retry":
            return "an operator gives the item a new attempt"
        case "cancel":
            return "the case is cancelled, and the item with it"
    raise AssertionError(f"expected words for every move, found none for {move.action!r}")


def _by_worker(move: Move, before: State) -> str:
    number = before.workers[NAMES.index(move.who)].number
    match move.action:
        case "acquire":
            row = move.after.row
            return f"acquires the item: lease {row.number}, attempt {row.attempts} of {row.maximum}"
        case "kill":
            return "is killed; a new process takes its place"
        case "shutdown":
            return "gets TERM: it acquires no more and starts nothing"
        case "start":
            return f"starts the handler under lease {number}"
        case "effect":
            return f"has the effect outside, under lease {number}"
        case "late":
            return "passes its own deadline"
        case "renew":
            return f"renews lease {number}: it is extended"
        case "lost":
            return f"renews lease {number}: it is lost, and the handler is stopped"
        case "ask without a guard":
            return f"heard nothing and makes the step again, without a guard: the item was {_row(before.row)}"
        case "ask":
            return f"heard nothing and asks again under lease {number}: {_came_to(move, before)}"
        case "complete" | "fail" | "release":
            return f"reports {move.action} under lease {number}: {_came_to(move, before)}"
    return f"sends {move.action.removeprefix('lose ')} under lease {number} and loses its connection: the outcome is unknown"


def _came_to(move: Move, before: State) -> str:
    if move.after.row == before.row:
        return f"refused, the item is {_row(before.row)}"
    return f"done, the item was {_row(before.row)}, is {move.after.row.status}"


def _row(row: Row) -> str:
    return f"leased under number {row.number}" if row.status == "leased" else row.status
