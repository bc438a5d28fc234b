"""People, passwords and API keys: administrators only, and what ends with them."""

from __future__ import annotations

from uuid import uuid4

from engine.commands.outcome import SYSTEM, Actor, Refusal, Rejected
from engine.commands.people import (
    ApiKeyAdded,
    PersonSaved,
    add_api_key,
    add_person,
    change_person,
    disable_person,
    revoke_api_key,
    set_password,
)
from engine.queries.people import api_keys, people


def test_a_person_is_added_with_groups_and_listed_by_folded_name(committed_db):
    add_person(committed_db, "zoe", actor=SYSTEM, display_name="Zoë Abel", groups=["office"])
    saved = add_person(committed_db, "emil", actor=SYSTEM, display_name="Émile Abel", role="operator", groups=["b", "a", "a"])
    assert isinstance(saved, PersonSaved)
    emil, zoe = people(committed_db)
    assert (emil.username, emil.groups, emil.role, emil.may_sign_in) == ("emil", ["a", "b"], "operator", False)
    assert zoe.groups == ["office"]


def test_a_taken_name_is_refused_and_changes_nothing(committed_db):
    add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada")
    again = add_person(committed_db, "ada", actor=SYSTEM, display_name="Another", groups=["x"])
    assert isinstance(again, Rejected)
    assert again.refusal is Refusal.INVALID
    assert again.problems[0].field == "username"
    (only,) = people(committed_db)
    assert (only.display_name, only.groups) == ("Ada", [])


def test_every_invalid_field_is_named_at_once(committed_db):
    refused = add_person(committed_db, "Ada Lovelace", actor=SYSTEM, display_name=" ", role="king", groups=["a b"])
    assert isinstance(refused, Rejected)
    assert [problem.field for problem in refused.problems] == ["username", "display_name", "role", "groups"]


def test_only_an_administrator_changes_people_and_keys(committed_db):
    add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada")
    olga = Actor("olga", role="operator")
    refusals = [
        add_person(committed_db, "bo", actor=olga, display_name="Bo"),
        change_person(committed_db, "ada", actor=olga, role="administrator"),
        set_password(committed_db, "ada", actor=olga, password_hash="x"),
        disable_person(committed_db, "ada", actor=olga),
        add_api_key(committed_db, "ada", actor=olga, name="x"),
        revoke_api_key(committed_db, uuid4(), actor=olga),
    ]
    assert {refused.refusal for refused in refusals} == {Refusal.NOT_ALLOWED}
    assert committed_db.execute("SELECT count(*) FROM audit").fetchone() == (1,)


def test_a_new_password_and_disabling_end_the_sessions(committed_db):
    saved = add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada", password_hash="old")
    assert isinstance(saved, PersonSaved)
    for end in (
        lambda: set_password(committed_db, "ada", actor=SYSTEM, password_hash="new"),
        lambda: disable_person(committed_db, "ada", actor=SYSTEM),
    ):
        committed_db.execute(
            "INSERT INTO web_session (token_hash, person_id, expires_at) VALUES ('t', %s, baton_clock() + interval '1 h')",
            (saved.person_id,),
        )
        end()
        assert committed_db.execute("SELECT count(*) FROM web_session").fetchone() == (0,)
    assert people(committed_db)[0].disabled_at is not None
    disable_person(committed_db, "ada", actor=SYSTEM, disabled=False)
    assert people(committed_db)[0].disabled_at is None


def test_a_change_leaves_alone_what_is_not_given(committed_db):
    add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada", groups=["a"])
    change_person(committed_db, "ada", actor=SYSTEM, role="operator")
    change_person(committed_db, "ada", actor=SYSTEM, groups=["b"])
    (ada,) = people(committed_db)
    assert (ada.display_name, ada.role, ada.groups) == ("Ada", "operator", ["b"])


def test_an_api_key_is_shown_once_and_revoked_for_good(committed_db):
    add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada")
    added = add_api_key(committed_db, "ada", actor=SYSTEM, name="nightly import", days=30)
    assert isinstance(added, ApiKeyAdded)
    assert added.token.encode() not in committed_db.execute("SELECT token_hash FROM api_key").fetchone()[0]
    revoke_api_key(committed_db, added.key_id, actor=SYSTEM)
    (key,) = api_keys(committed_db, username="ada")
    revoked_at = key.revoked_at
    assert revoked_at is not None
    revoke_api_key(committed_db, added.key_id, actor=SYSTEM)
    assert api_keys(committed_db)[0].revoked_at == revoked_at


def test_what_is_not_there_is_not_found(committed_db):
    assert set_password(committed_db, "nobody", actor=SYSTEM, password_hash="x").refusal is Refusal.NOT_FOUND
    assert add_api_key(committed_db, "nobody", actor=SYSTEM, name="x").refusal is Refusal.NOT_FOUND
    assert revoke_api_key(committed_db, uuid4(), actor=SYSTEM).refusal is Refusal.NOT_FOUND
