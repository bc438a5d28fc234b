"""Destinations on the pages of operations and over the API: registered, changed, tried, paused, and their secret shown once."""

from __future__ import annotations

import re
from datetime import timedelta

import psycopg

from engine.commands.destinations import Wanted, add_destination, change_destination
from engine.commands.outcome import Actor, DestinationSaved
from engine.webhooks import signing_secret
from tests import rows
from tests.conftest import Clock
from tests.web.operations import OLGA, Client, one
from tests.web.test_api_contract import program as program

Connection = psycopg.Connection
SHOP = {"kind": "http", "address": "https://shop.example/hooks", "redirects": "0"}
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")


def in_words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def shop(conn: Connection, **values: object) -> str:
    done = add_destination(conn, "shop", Wanted("http", "https://shop.example/hooks", **values), actor=OLGA)  # type: ignore[arg-type]
    assert isinstance(done, DestinationSaved)
    return str(one(conn, "SELECT id FROM destination"))


def test_a_secret_is_shown_once_to_who_registers_and_to_who_asks_for_another(client_for: Client, committed_db: Connection) -> None:
    olga = client_for("olga")
    olga.get("/operations/outbox/destinations/new")
    made = olga.post("/operations/outbox/destinations/new", {"name": "shop", **SHOP, "request_id": "r1"})
    assert (made.status_code, made.headers["Cache-Control"]) == (200, "no-store")
    [first] = set(SECRET.findall(made.text))
    assert not SECRET.findall(olga.get("/operations/outbox/destinations/shop").text)
    again = olga.post("/operations/outbox/destinations/shop/rotate", {"hours": "2", "request_id": "r2"})
    [second] = set(SECRET.findall(again.text))
    assert second != first
    assert "2 secrets sign now" in in_words(again.text)
    salts = one(committed_db, "SELECT salts FROM destination")
    key = olga.client.application.config["BATON"].secret_key or str(olga.client.application.secret_key)
    assert [signing_secret(key, each["salt"]) for each in salts] == [second, first]


def test_a_form_that_is_wrong_comes_back_as_typed_with_each_problem_at_its_field(client_for: Client, committed_db: Connection) -> None:
    olga = client_for("olga")
    olga.get("/operations/outbox/destinations/new")
    typed = {"name": "Shop", "kind": "http", "address": "ftp://x", "concurrency": "0", "retry": "often", "redirects": "9", "seconds": "1"}
    answer = olga.post("/operations/outbox/destinations/new", {**typed, "request_id": "r1"})
    assert answer.status_code == 422
    for name, text in typed.items():
        assert f'value="{text}"' in answer.text or name == "kind"
    assert answer.text.count('aria-invalid="true"') == 5
    words = olga.post("/operations/outbox/destinations/new", {**SHOP, "name": "shop", "seconds": "soon", "request_id": "r2"})
    assert words.status_code == 422
    assert "expected a number" in words.text
    assert one(committed_db, "SELECT count(*) FROM destination") == 0


def test_who_changes_an_older_page_is_told_who_was_first(client_for: Client, committed_db: Connection) -> None:
    shop(committed_db)
    olga = client_for("olga")
    seen = re.search(r'name="as_of" value="([^"]+)"', olga.get("/operations/outbox/destinations/shop").text)
    assert seen
    change_destination(committed_db, "shop", Wanted("http", SHOP["address"], concurrency=3), actor=Actor("ada", role="operator"))
    late = olga.post("/operations/outbox/destinations/shop/change", {**SHOP, "as_of": seen[1], "request_id": "r1"})
    assert late.status_code == 409
    assert "Ada Moreno changed this" in in_words(late.text)
    assert one(committed_db, "SELECT concurrency FROM destination") == 3


def test_the_outbox_shows_each_destination_its_lag_and_who_paused_it(client_for: Client, committed_db: Connection, clock: Clock) -> None:
    route = shop(committed_db, concurrency=2)
    rows.delivery(committed_db, route=route, overdue=90)
    rows.delivery(committed_db, route=route, line="ada", held=["ordered"])
    olga = client_for("olga")
    olga.get("/operations/outbox/destinations/shop")
    olga.post("/operations/pauses/add", {"kind": "http", "topic": "shop", "reason": "they move", "request_id": "r1"})
    shown = in_words(olga.get("/operations/outbox").text)
    assert re.search(r"shop https://shop.example/hooks 1:[3-5]\d min paused by Olga Petrova", shown)
    assert "behind another of its line" in shown
    assert "HTTP deliveries to shop" in in_words(olga.get("/operations/pauses").text)
    page = in_words(olga.get("/operations/outbox/destinations/shop").text)
    assert "1 due, 1 in line" in page
    assert "they move" in page
    clock.advance(seconds=3600)
    metrics = olga.client.get("/metrics", environ_base={"REMOTE_ADDR": "127.0.0.1"}).text
    found = re.search(r'baton_outbox_lag_seconds\{destination="shop",kind="http",tenant=""\} ([0-9.]+)', metrics)
    assert found
    assert timedelta(seconds=3690) <= timedelta(seconds=float(found[1])) < timedelta(seconds=3800)


def test_a_delivery_that_was_taken_is_sent_again_by_whoever_confirms_it(client_for: Client, committed_db: Connection) -> None:
    key = rows.delivery(committed_db)
    committed_db.execute("UPDATE delivery SET status = 'completed', ended_at = baton_clock() WHERE id = %s", (key,))
    olga = client_for("olga")
    assert "Send again…" in olga.get("/operations/outbox").text
    assert "with an id that the other side has not seen" in olga.get(f"/operations/outbox?again={key}").text
    answer = olga.post(f"/operations/outbox/{key}/replay", {"reason": "lost there", "request_id": "r1"})
    assert answer.status_code == 303
    assert one(committed_db, "SELECT count(*) FROM delivery WHERE status = 'available'") == 1


def test_what_is_not_there_is_a_404_whoever_asks_how(client_for: Client) -> None:
    olga = client_for("olga")
    olga.get("/operations/outbox")
    assert olga.get("/operations/outbox/destinations/nobody").status_code == 404
    for change in ("change", "rotate", "test", "remove"):
        assert olga.post(f"/operations/outbox/destinations/nobody/{change}", {**SHOP, "request_id": change}).status_code == 404, change
