"""People and service accounts: administrators only, and what ends with them."""

from __future__ import annotations

import pytest
from psycopg import errors

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import SYSTEM, Actor, PersonSaved, Refusal, Rejected
from engine.commands.people import add_person, change_person, disable_person, set_password
from engine.db.session import connect
from engine.queries.people import people


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


def test_a_service_account_has_groups_and_a_role_and_never_a_password(committed_db):
    saved = add_person(committed_db, "robot", actor=SYSTEM, display_name="Robot", role="operator", groups=["office"], kind="service")
    assert isinstance(saved, PersonSaved)
    (robot,) = people(committed_db)
    assert (robot.kind, robot.role, robot.groups, robot.may_sign_in) == ("service", "operator", ["office"], False)
    with_one = add_person(committed_db, "other", actor=SYSTEM, display_name="Other", kind="service", password_hash="x")
    later = set_password(committed_db, "robot", actor=SYSTEM, password_hash="x")
    assert isinstance(with_one, Rejected) and isinstance(later, Rejected)
    assert (with_one.problems[0].field, later.problems[0].field) == ("password", "password")
    with pytest.raises(errors.CheckViolation):
        committed_db.execute("UPDATE person SET password_hash = 'x'")


def test_nobody_takes_their_own_role_away_or_shuts_themselves_out(committed_db):
    add_person(committed_db, "root", actor=SYSTEM, display_name="Ro Ot", role="administrator")
    root = Actor("root", role="administrator")
    assert change_person(committed_db, "root", actor=root, role="user").problems[0].field == "role"
    assert disable_person(committed_db, "root", actor=root).problems[0].field == "username"
    assert isinstance(change_person(committed_db, "root", actor=root, role="administrator", display_name="Root"), PersonSaved)
    (person,) = people(committed_db)
    assert (person.display_name, person.role, person.disabled_at) == ("Root", "administrator", None)


def test_the_name_under_which_baton_itself_is_recorded_is_nobody_s(committed_db):
    assert add_person(committed_db, "engine", actor=SYSTEM, display_name="Engine").problems[0].field == "username"


def test_R10_the_same_press_twice_has_one_effect_and_one_answer(committed_db):
    def press() -> list[object]:
        return [
            add_person(committed_db, "ada", actor=SYSTEM, display_name="Ada", groups=["a"], request_id="1"),
            change_person(committed_db, "ada", actor=SYSTEM, groups=["b"], request_id="2"),
            disable_person(committed_db, "ada", actor=SYSTEM, request_id="3"),
        ]

    first = press()
    assert press() == first
    assert all(isinstance(outcome, PersonSaved) for outcome in first)
    assert committed_db.execute("SELECT array_agg(action ORDER BY id) FROM audit").fetchone()[0] == [
        "person_added",
        "person_changed",
        "person_disabled",
    ]
    # The same id with another payload is judged afresh.
    assert isinstance(add_person(committed_db, "ada", actor=SYSTEM, display_name="Other", request_id="1"), Rejected)


def test_records_say_by_which_program_they_came(committed_db, database_url):
    with connect(database_url, application_name="baton-cli") as by_cli:
        add_person(by_cli, "ada", actor=SYSTEM, display_name="Ada")
    assert committed_db.execute("SELECT via FROM audit").fetchall() == [("baton-cli",)]


def test_what_is_not_there_is_not_found(committed_db):
    assert set_password(committed_db, "nobody", actor=SYSTEM, password_hash="x").refusal is Refusal.NOT_FOUND
    assert change_person(committed_db, "nobody", actor=SYSTEM, role="user").refusal is Refusal.NOT_FOUND
    assert disable_person(committed_db, "nobody", actor=SYSTEM).refusal is Refusal.NOT_FOUND
