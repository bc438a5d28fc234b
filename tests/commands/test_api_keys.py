"""API keys: shown once, never more than their person, revoked by whose they are and by administrators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from engine.commands.api_keys import ENDING, MOST, add_api_key, revoke_api_key
from engine.commands.outcome import SYSTEM, ApiKeyAdded, ApiKeyRevoked, Refusal, Rejected
from engine.commands.people import disable_person
from engine.commands.scopes import ROLES, SCOPES, scopes_of
from engine.db.session import connect
from engine.queries.people import ApiKeyRow, api_keys, whose_key
from tests.cast import ADA, BO, OP, ROOT, engage

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def added(conn: Connection, username: str = "ada", **more: Any) -> ApiKeyAdded:
    outcome = add_api_key(conn, username, **{"actor": SYSTEM, "name": "import", **more})
    assert isinstance(outcome, ApiKeyAdded), outcome
    return outcome


def only_key(conn: Connection) -> ApiKeyRow:
    (key,) = api_keys(conn)
    return key


def refused(outcome: object, field: str) -> bool:
    return isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID and [p.field for p in outcome.problems] == [field]


def test_a_key_is_shown_once_known_by_its_ending_and_stored_as_a_hash(conn: Connection) -> None:
    made = added(conn, days=30, scopes=["start", "read"])
    key = only_key(conn)
    assert (key.ending, key.scopes, key.made_by, key.status) == (made.token[-ENDING:], ["read", "start"], "engine", "active")
    assert made.token.startswith("baton_") and key.expires_at == made.expires_at
    everything = conn.execute("SELECT k::text || coalesce(r::text, '') FROM api_key k LEFT JOIN audit r ON true").fetchall()
    assert made.token not in str(everything) and made.token[6:] not in str(everything)
    assert whose_key(conn, made.token) == key
    assert whose_key(conn, "baton_of_nobody") is None


def test_people_make_and_revoke_their_own_keys_and_nobody_else_s(conn: Connection) -> None:
    mine = added(conn, actor=ADA)
    other = add_api_key(conn, "ada", actor=BO, name="x")
    assert isinstance(other, Rejected) and other.refusal is Refusal.NOT_ALLOWED
    for stranger in (BO, OP):
        outcome = revoke_api_key(conn, mine.key_id, actor=stranger)
        assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_FOUND  # R13: as if it were not there
    assert only_key(conn).status == "active"
    assert revoke_api_key(conn, mine.key_id, actor=ADA) == ApiKeyRevoked(mine.key_id)
    assert (only_key(conn).status, only_key(conn).revoked_by) == ("revoked", "ada")


def test_an_administrator_revokes_anybody_s_key_and_twice_is_harmless(conn: Connection) -> None:
    made = added(conn)
    revoke_api_key(conn, made.key_id, actor=ROOT)
    before = only_key(conn)
    assert revoke_api_key(conn, made.key_id, actor=ADA) == ApiKeyRevoked(made.key_id)
    assert only_key(conn) == before
    noted = conn.execute("SELECT actor, action, detail->>'person' FROM audit ORDER BY id").fetchall()
    assert noted == [("engine", "api_key_added", "ada"), ("root", "api_key_revoked", "ada")]
    outcome = revoke_api_key(conn, uuid4(), actor=ROOT)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_FOUND


def test_a_key_never_has_a_scope_that_the_role_of_its_person_does_not_reach(conn: Connection) -> None:
    for username, role in (("ada", "user"), ("op", "operator"), ("root", "administrator")):
        for scope in SCOPES:
            outcome = add_api_key(conn, username, actor=SYSTEM, name=scope, scopes=[scope])
            assert isinstance(outcome, ApiKeyAdded) if scope in scopes_of(role) else refused(outcome, "scopes"), (username, scope)
    assert [len(scopes_of(role)) for role in ROLES] == [3, 7, 8]
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="x", scopes=[]), "scopes")
    assert refused(add_api_key(conn, "root", actor=SYSTEM, name="x", scopes=["everything"]), "scopes")


def test_the_database_knows_the_same_scopes(conn: Connection) -> None:
    made = added(conn, "root", scopes=list(SCOPES))
    assert only_key(conn).scopes == list(SCOPES)
    for wrong in (["everything"], []):
        with pytest.raises(errors.CheckViolation):
            conn.execute("UPDATE api_key SET scopes = %s WHERE id = %s", (wrong, made.key_id))


def test_a_key_holds_as_long_as_it_was_told_and_no_longer_than_the_house_allows(conn: Connection, clock: Any) -> None:
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="x", longest_days=30), "days")
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="x", days=31, longest_days=30), "days")
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="x", days=0), "days")
    added(conn, days=30, longest_days=30)
    clock.advance(days=29)
    assert only_key(conn).status == "active"
    clock.advance(days=2)
    assert only_key(conn).status == "expired"


def test_a_key_without_a_name_of_somebody_disabled_or_one_too_many_is_refused(conn: Connection) -> None:
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="  "), "name")
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="two\nlines"), "name")
    disable_person(conn, "bo", actor=SYSTEM)
    assert refused(add_api_key(conn, "bo", actor=SYSTEM, name="x"), "person")
    made = [added(conn, name=str(number)) for number in range(MOST)]
    assert refused(add_api_key(conn, "ada", actor=SYSTEM, name="x"), "person")
    revoke_api_key(conn, made[0].key_id, actor=SYSTEM)
    added(conn)
    nobody = add_api_key(conn, "nobody", actor=SYSTEM, name="x")
    assert isinstance(nobody, Rejected) and nobody.refusal is Refusal.NOT_FOUND


def test_R10_a_repeated_request_makes_no_second_key_and_does_not_show_the_first_again(conn: Connection) -> None:
    first = added(conn, actor=ADA, days=5, request_id="r")
    again = added(conn, actor=ADA, days=5, request_id="r")
    assert (again.key_id, again.token, again.repeated, again.expires_at) == (first.key_id, "", True, first.expires_at)
    assert only_key(conn).id == first.key_id
    assert first.token not in str(conn.execute("SELECT outcome FROM request").fetchall())
    assert added(conn, actor=ADA, days=6, request_id="r").key_id != first.key_id
    revoked = revoke_api_key(conn, first.key_id, actor=ADA, request_id="s")
    assert revoke_api_key(conn, first.key_id, actor=ADA, request_id="s") == revoked == ApiKeyRevoked(first.key_id)
