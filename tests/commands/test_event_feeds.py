"""Feeds: what happens goes to a destination, each event once and in order, whatever commits late or dies."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.destinations import Wanted, add_destination, remove_destination
from engine.commands.event_feeds import MOST_EVENTS, add_feed, move_feeds_on, remove_feed
from engine.commands.outcome import Actor, DestinationSaved, FeedRemoved, FeedSaved, Refusal, Rejected
from engine.commands.start import start_instance
from engine.db.session import connect
from engine.failpoints import FailPointRaised, install
from tests import rows
from tests.races.contest import held_at
from tests.web.operations import deployed, started
from tests.worker.processes import eventually

OP = Actor("op", role="operator")
ADA = Actor("ada")
Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    deployed(committed_db, "an_external_task")
    done = add_destination(committed_db, "shop", Wanted("http", "https://shop.example/hooks"), actor=OP)
    assert isinstance(done, DestinationSaved), done
    return committed_db


def settled(conn: Connection) -> None:
    """Other databases of the server may hold the stream up, as tests that run beside this one do."""
    horizon = "SELECT coalesce(max(xid) < pg_snapshot_xmin(pg_current_snapshot()), true) FROM history"
    eventually(lambda: rows.one(conn, horizon), "other transactions of the server to end", seconds=120)


def moved(conn: Connection) -> int:
    settled(conn)
    return move_feeds_on(conn)


def sent(conn: Connection) -> list[Any]:
    return [row[0] for row in conn.execute("SELECT request FROM delivery ORDER BY created_at, id").fetchall()]


def test_what_happens_from_now_on_is_written_once_in_a_line_of_its_case(conn: Connection) -> None:
    started(conn, "shipping", business_key="before")
    settled(conn)
    assert add_feed(conn, "watch", "shop", actor=OP) == FeedSaved("watch", "shop")
    case = started(conn, "shipping", business_key="ORD-1")
    written = moved(conn)
    assert written == rows.one(conn, "SELECT count(*) FROM history WHERE root_id = %s", case) > 2
    assert moved(conn) == 0
    first = sent(conn)[0]
    assert (first["url"], first["headers"], first["body"]["type"]) == (
        "https://shop.example/hooks",
        {"Baton-Feed": "watch"},
        "instance_started",
    )
    told = first["body"]["data"]
    assert (told["process_instance_id"], told["business_key"], told["process_definition_key"]) == (str(case), "ORD-1", "shipping")
    lines = conn.execute("SELECT DISTINCT line, held, route = (SELECT id::text FROM destination) FROM delivery").fetchall()
    assert lines == [(str(case), ["ordered"], True)]
    ids = [request["body"]["data"]["id"] for request in sent(conn)]
    assert ids == sorted(ids)


def test_only_kinds_and_processes_that_were_asked_for_and_the_rest_is_passed_by(conn: Connection) -> None:
    deployed(conn, "a_task_a_delivery_a_task")
    settled(conn)
    add_feed(conn, "starts", "shop", actor=OP, kinds=["instance_started"], definition_key="relay")
    started(conn, "shipping")
    started(conn, "relay")
    assert moved(conn) == 1
    assert sent(conn)[-1]["body"]["data"]["process_definition_key"] == "relay"
    behind = "SELECT count(*) FROM history h, event_feed f WHERE (h.xid, h.id) > (f.xid, f.event_id)"
    assert rows.one(conn, behind) == 0


def test_what_commits_late_is_written_later_and_not_passed_over(conn: Connection, database_url: str, tmp_path: Any) -> None:
    settled(conn)
    add_feed(conn, "watch", "shop", actor=OP, kinds=["instance_started"])
    late = lambda c: start_instance(c, "shipping", actor=ADA, variables={}, business_key="late")  # noqa: E731
    with held_at(database_url, "command.before_commit", late, tmp_path) as held:
        with connect(database_url) as other:
            started(other, "shipping", business_key="early")
        assert move_feeds_on(conn) == 0, "what the late one will have written would be behind the place"
    held.outcome()
    moved(conn)
    keys = sorted(request["body"]["data"]["business_key"] for request in sent(conn))
    assert keys == ["early", "late"]


def test_without_a_feed_nothing_is_begun_that_would_have_to_commit(conn: Connection) -> None:
    """So every worker looks each second, and none is at a commit because of it; with a feed it is."""
    started(conn, "shipping")
    settled(conn)
    try:
        install("command.before_commit=raise")
        assert move_feeds_on(conn) == 0
        install("")
        add_feed(conn, "watch", "shop", actor=OP)
        started(conn, "shipping")
        settled(conn)
        install("command.before_commit=raise")
        with pytest.raises(FailPointRaised):
            move_feeds_on(conn)
    finally:
        install("")


def test_two_workers_write_no_event_twice(conn: Connection, database_url: str, tmp_path: Any) -> None:
    settled(conn)
    add_feed(conn, "watch", "shop", actor=OP, kinds=["instance_started"])
    for _ in range(3):
        started(conn, "shipping")
    settled(conn)
    conn.execute("SET lock_timeout = '5s'")  # who waits is told so instead of waiting for ever
    with held_at(database_url, "command.before_commit", move_feeds_on, tmp_path) as held:
        assert move_feeds_on(conn) == 0, "the other has the feed locked, and is not waited for"
    assert held.outcome() == 3
    assert moved(conn) == 0
    assert len(sent(conn)) == 3


def test_more_than_one_look_writes_goes_on_where_it_ended(conn: Connection) -> None:
    settled(conn)
    add_feed(conn, "watch", "shop", actor=OP, kinds=["made_up"])
    conn.execute("INSERT INTO history (kind, actor) SELECT 'made_up', 'op' FROM generate_series(1, %s)", (MOST_EVENTS + 5,))
    assert [moved(conn), moved(conn), moved(conn)] == [MOST_EVENTS, 5, 0]
    assert rows.one(conn, "SELECT count(*) FROM delivery WHERE line IS NULL AND held = '{}'") == MOST_EVENTS + 5


def test_deliveries_do_not_bring_on_further_deliveries(conn: Connection) -> None:
    settled(conn)
    add_feed(conn, "watch", "shop", actor=OP)
    conn.execute("INSERT INTO history (kind, actor) VALUES ('delivery_completed', 'engine'), ('delivery_created', 'engine')")
    assert moved(conn) == 0


def test_a_removed_feed_or_destination_writes_nothing_more(conn: Connection) -> None:
    settled(conn)
    add_feed(conn, "one", "shop", actor=OP)
    assert remove_feed(conn, "one", actor=OP) == FeedRemoved("one")
    add_feed(conn, "two", "shop", actor=OP)
    remove_destination(conn, "shop", actor=OP)
    started(conn, "shipping")
    assert moved(conn) == 0
    audit = conn.execute("SELECT action, object_id FROM audit WHERE object_kind = 'feed' ORDER BY id").fetchall()
    assert audit == [("add", "one"), ("remove", "one"), ("add", "two")]


def test_R10_the_same_press_twice_is_answered_alike(conn: Connection) -> None:
    for _ in range(2):
        assert add_feed(conn, "watch", "shop", actor=OP, request_id="r1") == FeedSaved("watch", "shop")
    for _ in range(2):
        assert remove_feed(conn, "watch", actor=OP, request_id="r2") == FeedRemoved("watch")
    assert rows.one(conn, "SELECT count(*) FROM audit WHERE object_kind = 'feed'") == 2


@pytest.mark.parametrize(
    ("name", "destination", "kinds", "field"),
    [
        ("Watch me", "shop", (), "name"),
        ("watch", "nowhere", (), "destination"),
        ("taken", "shop", (), "name"),
        ("watch", "shop", ("a b",), "kinds"),
    ],
)
def test_what_cannot_be_is_named(conn: Connection, name: str, destination: str, kinds: tuple[str, ...], field: str) -> None:
    add_feed(conn, "taken", "shop", actor=OP)
    outcome = add_feed(conn, name, destination, actor=OP, kinds=kinds)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID
    assert [problem.field for problem in outcome.problems] == [field]


def test_who_may_not(conn: Connection) -> None:
    for outcome in (add_feed(conn, "watch", "shop", actor=ADA), remove_feed(conn, "watch", actor=ADA)):
        assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_ALLOWED
    missing = remove_feed(conn, "watch", actor=OP)
    assert isinstance(missing, Rejected) and missing.refusal is Refusal.NOT_FOUND
