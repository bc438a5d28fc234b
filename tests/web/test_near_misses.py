"""Near misses of messages: what is found, what is not, and how it is said on pages and in the API."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import Connection, text

from engine.commands.messages import publish_message
from engine.commands.upkeep import Kept, upkeep
from engine.db.session import make_engine
from engine.queries.differing import difference, variants
from engine.queries.near_misses import (
    MESSAGE_NAMES,
    MESSAGES,
    MOST,
    OTHERS,
    RECEIVED,
    RECEIVERS,
    SUBSCRIPTION_NAMES,
    Lost,
    NearReceiver,
    Waiter,
    near_messages,
    near_receivers,
)
from engine.queries.rows import reading
from tests.conftest import Clock
from tests.web.operations import OLGA, Client, one
from tests.web.rows import Rows
from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program

KEPT = Kept(request_seconds=86_400, job_branches=[])


@pytest.fixture
def screen(database_url: str) -> Iterator[Connection]:
    engine = make_engine(database_url, pool_size=1)
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@pytest.fixture
def made(committed_db: psycopg.Connection) -> Rows:
    return Rows(committed_db)


def waits(made: Rows, name: str, key: str, *, definition: UUID | None = None, mark: str | None = None, **more: Any) -> UUID:
    """A case that waits for the message; its id."""
    process = definition or made.definition(f"p{uuid4().hex[:8]}", name="Order")
    case = made.instance(process, business_key=f"A-{key}", mark=mark)
    token = made.token(case, made.scope(case), "paid")
    made.insert(
        "subscription", **{"kind": "catch", "message_name": name, "correlation_key": key, "definition_id": process, "instance_id": case,
                           "root_id": case, "token_id": token, "element_id": "paid"} | more,
    )  # fmt: skip
    return case


def found(screen: Connection, name: str, key: str, **more: Any) -> tuple[NearReceiver, ...]:
    [near] = near_receivers(screen, [Lost(name, key, **more)], tenant_id="")
    return near


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("42", "42", ""),
        ("42", "42 ", "spaces"),
        ("4 2", "42", "spaces"),
        ("42", "42\u00a0", "spaces"),
        ("Paid", "paid", "capitals"),
        ("Paid ", "paid", "capitals_and_spaces"),
        ("42", "042", "number"),
        ("42", "42.0", "number"),
        ("4711", "4712", "characters"),
        ("paymentReceived", "payment_recieved", "other"),
        ("payment-received", "payment-recieved", "characters"),
        ("INV-1", "INV-12", "characters"),
        ("abc", "abd", "other"),
        ("4711", "8000", "other"),
        ("", "4711", "other"),
        ("1e999999999", "2e999999999", "characters"),
        ("nan", "NaN", "capitals"),
    ],
)
def test_two_texts_differ_by_spaces_capitals_numbers_a_character_or_quite(one: str, other: str, expected: str) -> None:
    assert difference(one, other) == difference(other, one) == expected


def test_other_spellings_of_a_key_are_few_and_never_the_key_itself() -> None:
    assert variants("4711!") == []
    assert variants("12345678") == ["0012345678", "012345678"]
    assert set(variants("042 ")) == {"042", "42"}
    assert set(variants("inv-1")) == {"INV-1"}


def test_who_waits_with_another_key_is_named_with_both_keys_the_closest_first(screen: Connection, made: Rows) -> None:
    case = waits(made, "paid", "42 ")
    waits(made, "paid", "9000")
    near = found(screen, "paid", "42")
    assert [(each.reason, each.correlation_key) for each in near] == [("key", "42 "), ("key", "9000")]
    assert near[0].instance_id == case
    assert near[0].says == 'Order, version 1, A-42  waits with key "42 ", and this has "42": only spaces differ.'
    assert near[1].differs == 'waits with key "9000", and this has "42": another key'


@pytest.mark.parametrize(("waiting", "sent"), [("INV-1", "inv-1"), ("42", "042"), ("042", "42"), ("7", " 7")])
def test_another_spelling_is_found_wherever_the_index_keeps_it(screen: Connection, made: Rows, waiting: str, sent: str) -> None:
    process = made.definition(name="Order")
    case = waits(made, "paid", waiting, definition=process)
    made.conn.execute(
        "INSERT INTO subscription (id, kind, message_name, correlation_key, definition_id, instance_id, root_id, token_id, element_id)"
        " SELECT gen_random_uuid(), 'catch', 'paid', p || g, definition_id, instance_id, root_id, token_id, 'more' FROM subscription,"
        " generate_series(1000, 1060) g, unnest('{0,1,3,4,5,A,J,h,i,j}'::text[]) p",
    )
    assert found(screen, "paid", sent)[0].correlation_key == waiting
    assert found(screen, "paid", sent)[0].instance_id == case


def test_who_waits_for_a_name_that_is_nearly_the_same_is_found_if_it_has_the_key_or_starts(screen: Connection, made: Rows) -> None:
    case = waits(made, "Payment received", "42")
    waits(made, "Payment received", "43")
    waits(made, "quite another", "42")
    made.insert("subscription", kind="start", message_name="payment  received", definition_id=made.definition("s", name="Starter"),
                element_id="start")  # fmt: skip
    near = found(screen, "payment received", "42")
    assert {(each.reason, each.message_name, each.instance_id) for each in near} == {
        ("name", "Payment received", case),
        ("name", "payment  received", None),
    }
    said = {each.says for each in near}
    assert 'Starter, version 1 waits for "payment  received", and this is "payment received": only spaces differ.' in said
    assert 'Order, version 1, A-42 waits for "Payment received", and this is "payment received": only capital letters differ.' in said


def test_who_waits_in_a_suspended_case_or_version_is_called_suspended(screen: Connection, made: Rows) -> None:
    waits(made, "paid", "42", mark="suspended")
    version = made.definition("s", name="Starter")
    made.conn.execute("UPDATE process_definition SET status = 'suspended' WHERE id = %s", (version,))
    made.insert("subscription", kind="start", message_name="paid", definition_id=version, element_id="start")
    for more in ({"waiting": True}, {}):
        near = found(screen, "paid", "42", **more)
        assert [each.reason for each in near] == ["suspended", "suspended"]
        assert {each.differs.split("; ")[1].split(":")[0] for each in near} == {"and its case is suspended", "and its version is suspended"}


def test_who_is_being_cancelled_waits_for_nothing(screen: Connection, made: Rows) -> None:
    waits(made, "paid", "42", mark="cancelling")
    waits(made, "paid", "43", mark="cancelling")
    assert found(screen, "paid", "42") == ()


def test_a_signal_of_the_name_is_no_message(screen: Connection, made: Rows) -> None:
    waits(made, "paid", "", kind="signal")
    near = found(screen, "paid", "42")
    assert [(each.reason, each.differs) for each in near] == [("signal", "waits for a signal of this name, and this is a message")]
    assert found(screen, "Paid", "42") == ()


def test_who_waits_for_exactly_this_is_a_near_miss_only_of_a_message_that_is_gone(
    screen: Connection, made: Rows, committed_db: psycopg.Connection
) -> None:
    waits(made, "paid", "42")
    assert found(screen, "paid", "42", waiting=True) == (), "it is on its way"
    assert [each.reason for each in found(screen, "paid", "42")] == ["waits"]
    since = one(committed_db, "SELECT created_at FROM subscription")
    assert [each.reason for each in found(screen, "paid", "42", expired_at=since)] == ["too_late"]
    assert [each.reason for each in found(screen, "paid", "42", expired_at=made.at(hours=1))] == ["waits"]


def test_who_received_another_message_just_before_is_known_by_its_id(
    screen: Connection, made: Rows, committed_db: psycopg.Connection
) -> None:
    case = made.instance(made.definition())
    committed_db.execute(
        "INSERT INTO message_receipt (name, message_id, correlation_key, outcome, kept_until) VALUES"
        " ('paid', 'm-1', '42', jsonb_build_object('outcome', 'correlated', 'instance_id', %s::text), baton_clock() + interval '1 day'),"
        " ('paid', 'm-2', '42', jsonb_build_object('outcome', 'stored'), baton_clock() + interval '1 day')",
        (case,),
    )
    near = found(screen, "paid", "42")
    assert [(each.reason, each.instance_id) for each in near] == [("received", case)]
    assert near[0].says == 'A case received another message of this name and key, with the id "m-1".'


def test_near_misses_stop_at_their_caps_however_many_wait(screen: Connection, made: Rows) -> None:
    for n in range(30):
        waits(made, "paid", f"other {n} of them")
    assert [each.reason for each in found(screen, "paid", "42")] == ["key"] * OTHERS
    for _ in range(30):
        waits(made, "Paid", "42")
    near = found(screen, "paid", "42")
    assert len(near) == MOST
    assert {each.reason for each in near} == {"name"}


def test_another_tenant_has_no_near_misses_here(screen: Connection, made: Rows, committed_db: psycopg.Connection) -> None:
    waits(made, "paid", "43", tenant_id="acme")
    waits(made, "Paid", "42", tenant_id="acme")
    waits(made, "paid", "", kind="signal", tenant_id="acme")
    committed_db.execute(
        "INSERT INTO message_receipt (tenant_id, name, message_id, correlation_key, outcome, kept_until) SELECT 'acme', 'paid', 'm', '42',"
        " jsonb_build_object('outcome', 'correlated', 'instance_id', id), baton_clock() + interval '1 day' FROM process_instance LIMIT 1"
    )
    for table in ("message", "message_expired"):
        made.insert(table, tenant_id="acme", name="paid", correlation_key="43", published_by="x", published_at=made.now(),
                    expires_at=made.at(hours=1))  # fmt: skip
    assert found(screen, "paid", "42") == ()
    assert near_messages(screen, [Waiter("paid", "42", made.now())], tenant_id="") == [()]
    assert len(near_receivers(screen, [Lost("paid", "42")], tenant_id="acme")[0]) == 4
    assert len(near_messages(screen, [Waiter("paid", "42", made.now())], tenant_id="acme")[0]) == 2


def test_who_waits_is_told_of_stored_messages_that_almost_fit_and_of_expired_ones(screen: Connection, made: Rows) -> None:
    def message(name: str, key: str, **ahead: float) -> UUID:
        table = "message_expired" if "days" in ahead else "message"
        return made.insert(
            table, name=name, correlation_key=key, published_by="x", published_at=made.at(days=-2), expires_at=made.at(**ahead)
        )

    fits = message("paid", "42", hours=1)
    message("paid", "42 ", hours=1)
    message("Paid", "42", hours=1)
    message("Paid", "43", hours=1)
    message("paid", "42", days=-0.5)
    message("paid", "42", minutes=-1)
    message("paid", "043", days=-0.5)
    [near] = near_messages(screen, [Waiter("paid", "42", made.at(minutes=-2))], tenant_id="")
    assert fits not in {each.message_id for each in near}
    assert {each.says for each in near} == {
        'A message has key "42 ", and this waits with "42": only spaces differ.',
        'A message "Paid" has this key, and this waits for "paid": only capital letters differ.',
        "A message of this name and key expired before this began to wait.",
        "A message of this name and key expired unused.",
        'A message has key "043", and this waits with "42": another key; it has expired.',
    }


def test_near_misses_are_found_without_wading_through_those_who_wait(screen: Connection, made: Rows) -> None:
    """30,000 wait for one name, and 30,000 messages of it are stored; the pages read stay those of a handful."""
    waits(made, "paid", "4711")
    made.conn.execute(
        "INSERT INTO subscription (id, kind, message_name, correlation_key, definition_id, instance_id, root_id, token_id, element_id)"
        " SELECT gen_random_uuid(), 'catch', 'paid', 'k' || g, definition_id, instance_id, root_id, token_id, 'paid' FROM subscription,"
        " generate_series(1, 30000) g"
    )
    for table in ("message", "message_expired"):
        made.conn.execute(
            f"INSERT INTO {table} (id, name, correlation_key, published_by, published_at, expires_at) SELECT gen_random_uuid(), 'paid',"
            " 'k' || g, 'x', baton_clock(), baton_clock() + interval '1 hour' FROM generate_series(1, 30000) g"
        )
    made.conn.execute("VACUUM ANALYZE subscription, message, message_expired")
    asked = json.dumps([{"n": n, "how": "same", "name": "paid", "key": f"k{n}00x"} for n in range(10)])
    params = {"tenant": "", "asked": asked, "around": 20, "names": 1_000}
    for sql in (RECEIVERS, RECEIVED, MESSAGES, SUBSCRIPTION_NAMES, MESSAGE_NAMES):
        with reading(screen) as conn:
            plan = conn.execute(text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"), params).scalar_one()[0]["Plan"]
        # Some hundred blocks; some more where a snapshot kept VACUUM from marking pages. To wade for each of the ten takes over 5,000.
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 4_000, (sql, plan)


# ---- an expired message is seen, and never used


def test_S25_an_expired_message_is_seen_for_a_day_without_its_content_and_nobody_has_it(
    client_for: Client, committed_db: psycopg.Connection, clock: Clock
) -> None:
    made = Rows(committed_db)
    sent = publish_message(committed_db, "paid", actor=OLGA, correlation_key="42", variables={"secret": 1}, time_to_live_seconds=60)
    clock.advance(seconds=61)
    assert upkeep(committed_db, KEPT)["messages"] == 1
    assert one(committed_db, "SELECT count(*) FROM message") == 0
    assert "secret" not in str(one(committed_db, "SELECT to_jsonb(m) FROM message_expired m"))
    case = waits(made, "paid", "42")
    opened = one(committed_db, "SELECT id FROM subscription WHERE instance_id = %s", case)
    assert one(committed_db, "SELECT baton_open_subscriptions(%s, %s)", [opened], [uuid4()]) == 0
    page = client_for("olga").get("/operations/messages").text
    assert "Expired lately" in page
    assert "waits for exactly this, but only since the message had expired" in page
    clock.advance(hours=24)
    assert upkeep(committed_db, KEPT)["expired_messages"] == 1
    assert "Expired lately" not in client_for("olga").get("/operations/messages").text
    assert sent is not None


# ---- pages


def words(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", page)))


def test_the_page_of_messages_says_what_differs_and_leads_to_the_case(client_for: Client, made: Rows) -> None:
    case = waits(made, "paid", "<b>42</b>")
    made.insert("message", name="paid", correlation_key="<b>43</b>", published_by="x", expires_at=made.at(hours=1))
    page = client_for("olga").get("/operations/messages").text
    assert f'<a href="/operations/instances/{case}">Order, version 1, A-&lt;b&gt;42&lt;/b&gt;</a> waits with key' in page
    assert 'waits with key "<b>42</b>", and this has "<b>43</b>": a character or two differ.' in html.unescape(page)
    assert "<b>4" not in page


def test_the_page_of_a_case_says_which_messages_nearly_fit(client_for: Client, made: Rows) -> None:
    case = waits(made, "paid", "42")
    made.insert("message", name="paid", correlation_key="42 ", published_by="x", expires_at=made.at(hours=1))
    olga = client_for("olga")
    why = f"/operations/instances/{case}/part?part=why"
    first = olga.client.get(why)
    assert 'Nearly fits: a message has key "42 ", and this waits with "42": only spaces differ (' in words(first.text)
    made.insert("message", name="Paid", correlation_key="42", published_by="x", expires_at=made.at(hours=1))
    again = olga.client.get(why, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200, "a new near miss is a change of the page"
    assert 'a message "Paid" has this key, and this waits for "paid": only capital letters differ' in words(again.text)


# ---- the API

SHAPE = {
    "reason", "says", "message_name", "correlation_key", "since", "process_instance_id", "business_key", "process_definition_key",
    "version", "element_id",
}  # fmt: skip


def test_the_api_tells_near_misses_of_a_stored_an_expired_and_a_refused_message(
    program: Any, made: Rows, committed_db: psycopg.Connection, clock: Clock
) -> None:
    olga, ada = program("olga"), program("ada")
    case = waits(made, "paid", "42")
    problem(olga.post("/messages", {"name": "paid", "correlation_key": "42 "}), 409, "no_subscription")
    [refused] = olga.get("/messages/near-misses", query_string={"name": "paid", "correlation_key": "42 "}).json["items"]
    assert set(refused) == SHAPE
    assert (refused["reason"], refused["process_instance_id"], refused["correlation_key"]) == ("key", str(case), "42")
    sent = olga.post("/messages", {"name": "paid", "correlation_key": "42 ", "time_to_live_seconds": 60}).json
    path = f"/messages/{sent['message_id']}/near-misses"
    assert olga.get(path).json["items"] == [refused]
    clock.advance(seconds=61)
    assert olga.get(path).json["items"] == [refused]
    upkeep(committed_db, KEPT)
    assert olga.get(path).json["items"] == [refused]
    for hidden in (path, "/messages/near-misses?name=paid"):
        problem(ada.get(hidden), 403, "not_allowed")
    problem(olga.get(f"/messages/{uuid4()}/near-misses"), 404, "not_found")
    problem(olga.get("/messages/near-misses"), 422, "invalid")
    committed_db.execute("UPDATE message_expired SET tenant_id = 'acme'")
    problem(olga.get(path), 404, "not_found")


def test_the_api_tells_whoever_sees_a_case_which_messages_nearly_fit(program: Any, made: Rows) -> None:
    case = waits(made, "paid", "42")
    near = made.insert("message", name="paid", correlation_key="42 ", published_by="x", expires_at=made.at(hours=1))
    path = f"/process-instances/{case}/near-misses"
    [waiting] = program("ada").get(path).json["items"]  # she started it
    assert (waiting["element_id"], waiting["message_name"], waiting["correlation_key"]) == ("paid", "paid", "42")
    [found] = waiting["near_misses"]
    assert set(found) == {"reason", "says", "message_id", "message_name", "correlation_key", "published_at", "expires_at"}
    assert (found["reason"], found["message_id"]) == ("key", str(near))
    problem(program("cy").get(path), 404, "not_found")
