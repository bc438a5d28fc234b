"""Random walks through the model, made on PostgreSQL by the commands of the engine: after each move the row is as the model says."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.deliveries import delivered
from engine.commands.failure import fail_item
from engine.commands.leases import release, release_by_operator, renew
from engine.commands.outcome import Lease
from engine.commands.retry import retry_item
from engine.db.acquire import WORK, recover_expired
from tests import rows
from tests.cast import OP
from tests.commands.test_acquire import take
from tests.conftest import Clock
from tests.lease_model.moves import NAMES, Move, moves
from tests.lease_model.rules import ENGINE
from tests.lease_model.state import Row, State, first

Connection = psycopg.Connection[Any]
STEPS = 60
IN_NO_STATEMENT = {"start", "effect", "late", "kill", "shutdown", "vanish", "lose complete", "lose fail", "lose release"}


class Walk:
    """One item of a table, and the leases of it that anybody had."""

    def __init__(self, conn: Connection, clock: Clock, table: str) -> None:
        self.conn, self.clock, self.table = conn, clock, table
        self.item: UUID = rows.MAKERS[table](conn, max_attempts=Row().maximum)
        self.leases: dict[int, Lease] = {}

    def row(self) -> Row:
        names = ("status", "lease_number", "attempts", "max_attempts", "coalesce(lease_expires_at < baton_now(), false)")
        return Row(*rows.columns(self.conn, self.table, self.item, *names))

    def may(self, move: Move, before: State) -> bool:
        """No case is here to be moved on or cancelled: only deliveries are completed, and nothing is cancelled."""
        what = before.workers[NAMES.index(move.who)].doing if move.action == "ask" else move.action
        return move.action != "cancel" and (self.table == "delivery" or "complete" not in what)

    def make(self, move: Move, before: State) -> None:
        match move.action:
            case "acquire":
                self.clock.advance(hours=25)  # past every wait before another attempt
                [got] = take(self.conn, self.table, owner=move.who)
                self.leases[got.number] = Lease(got.kind, got.item_id, got.number, got.owner, got.expires_at)
            case "expire":
                self.clock.advance(seconds=31)
            case "recover":
                recover_expired(self.conn, limit=10)
            case "take away":
                release_by_operator(self.conn, self.table, self.item, actor=OP, reason="it hangs", request_id=None)
            case "retry":
                retry_item(self.conn, self.table, self.item, actor=OP)
            case "land":
                assert before.flight is not None
                self._report(before.flight.what, before.flight.number)
            case _:
                worker = before.workers[NAMES.index(move.who)]
                self._report(worker.doing.removeprefix("unsure ") if move.action == "ask" else move.action, worker.number)

    def _report(self, what: str, number: int) -> None:
        lease = self.leases[number]
        match what:
            case "complete":
                delivered(self.conn, lease, response={})
            case "fail":
                fail_item(self.conn, lease, error="out of paper")
            case "release":
                release(self.conn, lease)
            case "renew":
                assert renew(self.conn, [lease]).lost == frozenset()
            case "lost":
                assert renew(self.conn, [lease]).lost == {self.item}
            case _:
                raise AssertionError(f"expected a report, found {what!r}")


def _weight(move: Move, before: State) -> int:
    """What changes hands, and whoever comes too late while somebody else holds the item, come more often than by chance."""
    if move.who and move.action not in IN_NO_STATEMENT and move.action != "acquire":
        number = before.workers[NAMES.index(move.who)].number
        return 40 if before.row.status == "leased" and number != before.row.number else 1
    match move.action:
        case "acquire" | "take away" | "recover" | "expire" | "retry":
            return 10
        case "start" | "effect" | "late":
            return 20
        case "land":
            return 1 if before.flight is not None and before.flight.number == before.row.number else 40
    return 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("table", WORK)
def test_R4_R5_every_row_is_as_the_model_says_after_every_move(committed_db: Connection, clock: Clock, table: str, seed: int) -> None:
    chance, walk, state = Random(seed), Walk(committed_db, clock, table), first(2)
    made = 0
    for _ in range(STEPS):
        possible = [move for move in moves(state, ENGINE) if walk.may(move, state)]
        if not possible:
            break
        [move] = chance.choices(possible, [_weight(move, state) for move in possible])
        if move.action not in IN_NO_STATEMENT:
            walk.make(move, state)
            made += 1
        state = move.after
        assert walk.row() == state.row, move.action
    assert made > 1
