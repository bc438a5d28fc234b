"""Destinations: registered and changed by operators; what is written for them, in which order and how many at a time it goes out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.deliveries import delivered, delivery_failed, replay_delivery, skip_delivery
from engine.commands.destinations import Wanted, add_destination, change_destination, remove_destination, rotate_secret, send_test
from engine.commands.outcome import Actor, DestinationSaved, ItemRetried, Lease, Refusal, Rejected, TrialWritten
from engine.commands.pause import pause_work, unpause_work
from engine.commands.retry import retry_item
from engine.db.acquire import acquire_deliveries, recover_expired
from engine.db.lines import Lines
from engine.db.outbox import load_requests
from engine.expressions.parse import parse
from tests import rows
from tests.cast import ADA, OP
from tests.commands.cases import deployed, lease_of, started
from tests.conftest import Clock
from tests.core.models import model, service

Connection = psycopg.Connection[Any]
SHOP = Wanted("http", "https://shop.example/hooks/")


def add(conn: Connection, name: str = "shop", wanted: Wanted = SHOP, **values: Any) -> str:
    done = add_destination(conn, name, replace(wanted, **values), actor=OP)
    assert isinstance(done, DestinationSaved), done
    return str(rows.one(conn, "SELECT id FROM destination WHERE name = %s AND removed_at IS NULL", name))


def take(conn: Connection, *, limit: int = 10, owner: str = "w1") -> list[Lease]:
    """What a worker acquires in one look: it lets the lines move on before."""
    Lines().move_on(conn)
    found = acquire_deliveries(conn, owner=owner, kinds={"http", "mail"}, limit=limit, lease_seconds=30, workers=2)
    return [lease_of(each) for each in found]


def in_line(conn: Connection, route: str, line: str, n: int, **values: Any) -> list[UUID]:
    return [rows.delivery(conn, route=route, line=line, held=["ordered"], **values) for _ in range(n)]


# ---- who may, and what is refused


def test_an_operator_registers_a_destination_and_gets_the_salt_of_its_secret_once(committed_db: Connection) -> None:
    done = add_destination(committed_db, "shop", SHOP, actor=OP, reason="orders", request_id="r1")
    assert isinstance(done, DestinationSaved)
    assert done.salt
    assert add_destination(committed_db, "shop", SHOP, actor=OP, reason="orders", request_id="r1") == done, "the same press"
    found = committed_db.execute("SELECT kind, address, salts, max_attempts, created_by FROM destination").fetchall()
    assert found == [("http", "https://shop.example/hooks", [{"salt": done.salt}], 8, OP.username)]
    assert committed_db.execute("SELECT actor, action, object_id, reason FROM audit").fetchall() == [(OP.username, "add", "shop", "orders")]
    assert done.salt not in str(committed_db.execute("SELECT detail FROM audit").fetchall())


@pytest.mark.parametrize("act", [
    lambda conn, actor: add_destination(conn, "other", SHOP, actor=actor),
    lambda conn, actor: change_destination(conn, "shop", SHOP, actor=actor),
    lambda conn, actor: rotate_secret(conn, "shop", actor=actor),
    lambda conn, actor: remove_destination(conn, "shop", actor=actor),
    lambda conn, actor: send_test(conn, "shop", actor=actor),
])  # fmt: skip
def test_nobody_but_operators_may_and_another_tenant_finds_nothing(committed_db: Connection, act: Any) -> None:
    add(committed_db)
    before = rows.everything(committed_db)
    assert act(committed_db, ADA) == Rejected(Refusal.NOT_ALLOWED)
    assert rows.everything(committed_db) == before
    stranger = act(committed_db, replace(OP, tenant_id="elsewhere"))
    assert isinstance(stranger, DestinationSaved) or stranger.refusal is Refusal.NOT_FOUND


@pytest.mark.parametrize(
    ("name", "wanted", "field"),
    [
        ("Shop", SHOP, "name"),
        ("", SHOP, "name"),
        ("shop", Wanted("fax", "https://shop.example"), "kind"),
        ("shop", Wanted("http", "shop.example"), "address"),
        ("shop", Wanted("http", "file:///etc/passwd"), "address"),
        ("shop", Wanted("http", "https://ada:secret@shop.example/"), "address"),
        ("shop", Wanted("http", "https://shop.example/?key=1"), "address"),
        ("shop", Wanted("http", "https://shop.example:99999/"), "address"),
        ("shop", Wanted("mail", "no domain"), "address"),
        ("shop", replace(SHOP, concurrency=0), "concurrency"),
        ("shop", replace(SHOP, retry="often"), "retry"),
        ("shop", replace(SHOP, redirects=4), "redirects"),
        ("shop", replace(SHOP, seconds=0.0), "seconds"),
        ("shop", replace(SHOP, max_bytes=0), "max_bytes"),
    ],
)
def test_what_is_no_destination_is_refused_by_its_field(committed_db: Connection, name: str, wanted: Wanted, field: str) -> None:
    before = rows.everything(committed_db)
    refused = add_destination(committed_db, name, wanted, actor=OP)
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INVALID
    assert [problem.field for problem in refused.problems] == [field]
    assert rows.everything(committed_db) == before


def test_a_name_and_an_address_belong_to_one_destination_until_it_is_removed(committed_db: Connection) -> None:
    add(committed_db)
    taken = add_destination(committed_db, "shop", replace(SHOP, address="https://other.example"), actor=OP)
    assert isinstance(taken, Rejected)
    assert taken.problems[0].field == "name"
    taken = add_destination(committed_db, "second", SHOP, actor=OP)
    assert isinstance(taken, Rejected)
    assert taken.problems[0].message == "it is that of shop"
    add(committed_db, "other", address="https://other.example")
    taken = change_destination(committed_db, "other", SHOP, actor=OP)
    assert isinstance(taken, Rejected)
    assert taken.refusal is Refusal.INVALID
    remove_destination(committed_db, "shop", actor=OP)
    assert isinstance(add_destination(committed_db, "shop", SHOP, actor=OP), DestinationSaved)


def test_who_changes_what_somebody_else_has_changed_meanwhile_is_told_who_and_when(committed_db: Connection, clock: Clock) -> None:
    add(committed_db)
    seen = rows.one(committed_db, "SELECT changed_at FROM destination")
    clock.advance(seconds=60)
    mira = Actor("mira", role="operator")
    assert change_destination(committed_db, "shop", replace(SHOP, concurrency=2), actor=mira, as_of=seen) == DestinationSaved("shop")
    late = change_destination(committed_db, "shop", replace(SHOP, concurrency=9), actor=OP, as_of=seen)
    assert isinstance(late, Rejected)
    assert (late.refusal, late.by) == (Refusal.DESTINATION_CHANGED, "mira")
    assert rows.one(committed_db, "SELECT concurrency FROM destination") == 2


def test_an_old_secret_signs_beside_the_new_one_until_its_time_is_over(committed_db: Connection, clock: Clock) -> None:
    route = add(committed_db)
    first = rows.one(committed_db, "SELECT salts->0->>'salt' FROM destination")
    second = rotate_secret(committed_db, "shop", actor=OP, overlap=3600)
    assert isinstance(second, DestinationSaved)

    def valid() -> tuple[str, ...]:
        key = rows.delivery(committed_db, route=route)
        take(committed_db)
        to = load_requests(committed_db, [key])[key].to
        assert to is not None
        return to.salts

    assert valid() == (second.salt, first)
    clock.advance(seconds=3601)
    assert valid() == (second.salt,)
    third = rotate_secret(committed_db, "shop", actor=OP, overlap=0)
    assert isinstance(third, DestinationSaved)
    assert valid() == (third.salt,)


# ---- what is written for it


def relay(conn: Connection, **more: Any) -> None:
    node = service("http.deliver", work="deliver", inputs={"url": "${url}", "body": "${url}"}, max_attempts=8)
    deployed(conn, model("start -> s -> end", s=replace(node, config=replace(node.config, **more))))


def written(conn: Connection, url: str) -> tuple[Any, ...]:
    started(conn, variables={"url": url})
    query = "SELECT d.route, d.line, d.held, d.max_attempts, d.retry FROM delivery d ORDER BY id DESC LIMIT 1"
    return tuple(conn.execute(query).fetchall()[0])


def test_a_delivery_belongs_to_the_destination_whose_longest_address_covers_its_own(committed_db: Connection) -> None:
    relay(committed_db)
    shop, orders = add(committed_db, retry="PT1M,PT5M"), add(committed_db, "orders", address="https://shop.example/hooks/orders")
    assert written(committed_db, "https://SHOP.example:443/hooks/stock?x=1") == (shop, None, [], 3, "PT1M,PT5M")
    assert written(committed_db, "https://shop.example/hooks/orders/7") == (orders, None, [], 8, None)
    for elsewhere in (
        "https://shop.example/",
        "https://shop.example/hooksy",
        "https://shop.example.evil.test/hooks",
        "http://shop.example/hooks",
    ):
        assert written(committed_db, elsewhere)[0] == "", elsewhere
    remove_destination(committed_db, "orders", actor=OP)
    assert written(committed_db, "https://shop.example/hooks/orders/7")[0] == shop


def test_what_nobody_registered_has_its_lines_by_scheme_and_host(committed_db: Connection) -> None:
    relay(committed_db, ordering_key=parse("${url}"))
    assert written(committed_db, "https://a.example/x")[:3] == ("", "https://a.example https://a.example/x", ["ordered"])


# ---- one after the other


def test_deliveries_of_one_key_go_out_one_after_the_other_in_the_order_in_which_they_were_written(committed_db: Connection) -> None:
    route = add(committed_db)
    mine, other = in_line(committed_db, route, "ada", 3), in_line(committed_db, route, "bo", 1)
    free = rows.delivery(committed_db, route=route)
    sent = []
    for _ in range(3):
        got = {lease.item_id: lease for lease in take(committed_db)}
        assert take(committed_db) == [], "no second one of a line, whoever asks"
        sent.append(set(got))
        for lease in got.values():
            delivered(committed_db, lease, response={})
    assert sent == [{mine[0], other[0], free}, {mine[1]}, {mine[2]}]


def test_a_failed_one_blocks_its_line_until_it_is_retried_or_skipped(committed_db: Connection) -> None:
    route = add(committed_db)
    first, second, third = in_line(committed_db, route, "ada", 3, max_attempts=1)
    [lease] = take(committed_db)
    delivery_failed(committed_db, lease, error="no", final=True)
    assert take(committed_db) == []
    assert isinstance(retry_item(committed_db, "delivery", first, actor=OP), ItemRetried)
    [lease] = take(committed_db)
    assert lease.item_id == first
    delivery_failed(committed_db, lease, error="no", final=True)
    skip_delivery(committed_db, second, actor=OP, reason="")  # one that waits may be skipped, too
    assert take(committed_db) == []
    skip_delivery(committed_db, first, actor=OP, reason="")
    assert [lease.item_id for lease in take(committed_db)] == [third]


def test_one_that_waits_for_another_attempt_or_whose_worker_died_keeps_its_place(committed_db: Connection, clock: Clock) -> None:
    route = add(committed_db)
    first, _ = in_line(committed_db, route, "ada", 2)
    [lease] = take(committed_db)
    delivery_failed(committed_db, lease, error="later")
    assert take(committed_db) == []
    clock.advance(seconds=60)
    assert [lease.item_id for lease in take(committed_db)] == [first]
    clock.advance(seconds=31)
    recover_expired(committed_db, limit=9)
    assert [lease.item_id for lease in take(committed_db)] == [first]


def test_what_is_sent_again_goes_to_the_end_of_its_line_under_an_id_of_its_own(committed_db: Connection) -> None:
    route = add(committed_db)
    first, second = in_line(committed_db, route, "ada", 2)
    [lease] = take(committed_db)
    delivered(committed_db, lease, response={})
    again = replay_delivery(committed_db, first, actor=OP, reason="lost there")
    assert isinstance(again, ItemRetried)
    order = []
    while got := take(committed_db):
        order += [lease.item_id for lease in got]
        for lease in got:
            delivered(committed_db, lease, response={})
    assert order == [second, again.item_id]


def test_looks_at_the_lines_go_round_however_many_there_are(committed_db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.db.lines.MOST_LINES", 3)
    route = add(committed_db)
    for n in range(7):
        in_line(committed_db, route, f"key {n}", 1)
    lines = Lines()
    assert [lines.move_on(committed_db) for _ in range(3)] == [True, True, False]
    assert rows.one(committed_db, "SELECT count(*) FROM delivery WHERE held = '{}'") == 7


# ---- so many at a time, and none at all


def test_a_destination_takes_so_many_at_a_time_and_keeps_no_other_waiting(committed_db: Connection) -> None:
    narrow, wide = add(committed_db, concurrency=2), add(committed_db, "wide", address="https://wide.example")
    for _ in range(30):
        rows.delivery(committed_db, route=narrow, overdue=500)
    late = [rows.delivery(committed_db, route=wide, overdue=1), rows.delivery(committed_db, overdue=1)]
    got = take(committed_db, limit=4)
    assert len(got) == 4
    assert {lease.item_id for lease in got} > set(late)
    assert take(committed_db, limit=4) == []
    first = next(lease for lease in got if lease.item_id not in late)
    delivered(committed_db, first, response={})
    assert len(take(committed_db, limit=4)) == 1


def test_a_destination_takes_so_many_of_all_levels_and_none_while_more_are_being_sent(committed_db: Connection) -> None:
    route = add(committed_db, concurrency=2)
    for level in (10, 5, 5, 3):
        rows.delivery(committed_db, route=route, level=level)
    assert len(take(committed_db)) == 2
    change_destination(committed_db, "shop", replace(SHOP, concurrency=1), actor=OP)
    assert take(committed_db) == []


def test_a_paused_destination_is_not_acquired_and_what_was_acquired_before_goes_back(committed_db: Connection) -> None:
    route = add(committed_db)
    paused, free = rows.delivery(committed_db, route=route), rows.delivery(committed_db)
    [lease] = [each for each in take(committed_db) if each.item_id == paused]
    assert not isinstance(pause_work(committed_db, "http", "shop", actor=OP, reason="they move"), Rejected)
    assert set(load_requests(committed_db, [paused, free])) == {free}, "the worker's read sees the pause"
    delivery_failed(committed_db, lease, error="x", retry_in=0)
    assert take(committed_db) == []
    again = pause_work(committed_db, "http", "shop", actor=OP)
    assert isinstance(again, Rejected)
    assert (again.refusal, again.by, again.detail) == (Refusal.ALREADY_PAUSED, OP.username, "they move")
    assert not isinstance(unpause_work(committed_db, "http", "shop", actor=OP), Rejected)
    assert [lease.item_id for lease in take(committed_db)] == [paused]
    assert pause_work(committed_db, "http", "nobody", actor=OP) == Rejected(Refusal.NOT_FOUND)


def test_a_removed_destination_still_sends_what_was_written_for_it_and_is_not_paused_any_more(committed_db: Connection) -> None:
    route = add(committed_db, redirects=2)
    key = rows.delivery(committed_db, route=route)
    pause_work(committed_db, "http", "shop", actor=OP)
    remove_destination(committed_db, "shop", actor=OP)
    assert remove_destination(committed_db, "shop", actor=OP) == Rejected(Refusal.NOT_FOUND)
    assert [lease.item_id for lease in take(committed_db)] == [key]
    to = load_requests(committed_db, [key])[key].to
    assert to is not None
    assert (to.name, to.redirects) == ("shop", 2)


# ---- a test


def test_a_test_is_a_delivery_with_one_attempt_and_is_refused_where_it_would_go_elsewhere(committed_db: Connection) -> None:
    route = add(committed_db)
    done = send_test(committed_db, "shop", actor=OP, to="/ping", request_id="r1")
    assert isinstance(done, TrialWritten)
    assert send_test(committed_db, "shop", actor=OP, to="/ping", request_id="r1") == done
    found = rows.columns(committed_db, "delivery", done.delivery_id, "route", "destination", "max_attempts", "request->>'test'")
    assert found == (route, "https://shop.example/hooks/ping", 1, "true")
    elsewhere = send_test(committed_db, "shop", actor=OP, to="https://evil.example/")
    assert isinstance(elsewhere, Rejected)
    assert elsewhere.problems[0].field == "to"
    assert send_test(committed_db, "nobody", actor=OP).refusal is Refusal.NOT_FOUND
    assert timedelta(0) <= rows.one(committed_db, "SELECT baton_now() - available_at FROM delivery WHERE id = %s", done.delivery_id)
