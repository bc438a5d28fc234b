"""Two deployments of one form at once: each makes a version of its own, or both have the same."""

from __future__ import annotations

import pytest

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests import rows
from tests.cast import OP, engage
from tests.forms.schemas import component, schema
from tests.races.contest import Connection, contest

KEY = "SELECT baton_lock_keys(ARRAY[baton_key_number('', chr(29) || 'form', 'a')], '{}')"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def form(key: str, label: str = "A") -> bytes:
    return schema(component("textfield", "a", label=label), key=key)


def test_two_replicas_that_deploy_one_form_make_one_version(conn: Connection, database_url: str) -> None:
    press = lambda c: deploy(c, [("a.form", form("a"))], actor=OP)  # noqa: E731
    outcomes = contest(database_url, KEY, (), press, press)
    assert all(isinstance(outcome, Deployed) for outcome in outcomes)
    assert [outcome.forms[0].unchanged for outcome in outcomes] == [False, True]
    assert rows.one(conn, "SELECT count(*) FROM form_definition") == 1


def test_two_deployments_of_the_same_forms_in_opposite_orders_do_not_deadlock(conn: Connection, database_url: str) -> None:
    outcomes = contest(
        database_url,
        KEY,
        (),
        lambda c: deploy(c, [("a.form", form("a")), ("b.form", form("b"))], actor=OP),
        lambda c: deploy(c, [("b.form", form("b", "B")), ("a.form", form("a", "B"))], actor=OP),
    )
    assert [sorted(each.version for each in outcome.forms) for outcome in outcomes] == [[1, 1], [2, 2]]
