"""Two deployments of one decision at once: each makes a version of its own, or both have the same."""

from __future__ import annotations

import pytest

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests import rows
from tests.cast import OP, engage
from tests.dmn.models import decision, file, literal
from tests.races.contest import Connection, contest

KEY = "SELECT baton_lock_keys(ARRAY[baton_key_number('', chr(29) || 'decision', 'a')], '{}')"


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def tables(*keys: str, text: str = "1") -> bytes:
    return file(*[decision(key, literal(text)) for key in keys])


def test_two_replicas_that_deploy_one_file_of_decisions_make_one_version(conn: Connection, database_url: str) -> None:
    press = lambda c: deploy(c, [("a.dmn", tables("a"))], actor=OP)  # noqa: E731
    outcomes = contest(database_url, KEY, (), press, press)
    assert all(isinstance(outcome, Deployed) for outcome in outcomes)
    assert [outcome.decisions[0].unchanged for outcome in outcomes] == [False, True]
    assert rows.one(conn, "SELECT count(*) FROM decision_definition") == 1


def test_two_files_that_bring_the_same_decisions_in_opposite_orders_do_not_deadlock(conn: Connection, database_url: str) -> None:
    outcomes = contest(
        database_url,
        KEY,
        (),
        lambda c: deploy(c, [("a.dmn", tables("a")), ("b.dmn", tables("b"))], actor=OP),
        lambda c: deploy(c, [("b.dmn", tables("b", text="2")), ("a.dmn", tables("a", text="2"))], actor=OP),
    )
    assert [sorted(each.version for each in outcome.decisions) for outcome in outcomes] == [[1, 1], [2, 2]]


def test_R10_one_deployment_of_decisions_pressed_twice_is_done_once(conn: Connection, database_url: str) -> None:
    press = lambda c: deploy(c, [("a.dmn", tables("a"))], actor=OP, request_id="1")  # noqa: E731
    first, second = contest(database_url, KEY, (), press, press)
    assert isinstance(first, Deployed) and isinstance(second, Deployed)
    assert first.decisions[0].id == second.decisions[0].id
    assert rows.one(conn, "SELECT count(*) FROM deployment") == 1
