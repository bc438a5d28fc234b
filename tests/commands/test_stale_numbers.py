"""A lease number that is not the newest fences, also while the item is leased again (R4): status alone would not tell."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.deliveries import delivered
from engine.commands.failure import fail_item
from engine.commands.leases import release, renew
from engine.commands.outcome import ItemDone, Lease, Refusal, Rejected
from engine.db.acquire import WORK, recover_expired
from tests import rows
from tests.commands.test_acquire import take
from tests.commands.test_leases import leased
from tests.conftest import Clock

Connection = psycopg.Connection[Any]


def leased_again(conn: Connection, clock: Clock, table: str) -> tuple[Lease, Lease]:
    """(the stale lease, the one that holds)."""
    stale = leased(conn, table)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    clock.advance(seconds=1)
    (again,) = take(conn, table, owner="w2")
    return stale, Lease(table, again.item_id, again.number, again.owner, again.expires_at)


@pytest.mark.parametrize("table", list(WORK))
def test_R4_a_stale_number_fails_renews_and_releases_nothing_of_what_is_leased_again(
    committed_db: Connection, clock: Clock, table: str
) -> None:
    stale, holds = leased_again(committed_db, clock, table)
    before = rows.everything(committed_db)
    assert fail_item(committed_db, stale, error="late") is None
    assert renew(committed_db, [stale]).lost == {stale.item_id}
    released = release(committed_db, stale)
    assert isinstance(released, Rejected)
    assert released.refusal is Refusal.LEASE_LOST
    assert rows.everything(committed_db) == before
    assert fail_item(committed_db, holds, error="in time") is not None


def test_R4_a_stale_number_delivers_nothing_of_what_is_sent_again(committed_db: Connection, clock: Clock) -> None:
    stale, holds = leased_again(committed_db, clock, "delivery")
    before = rows.everything(committed_db)
    late = delivered(committed_db, stale, response={})
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.LEASE_LOST
    assert rows.everything(committed_db) == before
    assert isinstance(delivered(committed_db, holds, response={}), ItemDone)
