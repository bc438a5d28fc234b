"""The page of a case says of each step whether a service account took it, and whether it came by the command line."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from engine.commands.outcome import SYSTEM, Actor
from engine.commands.people import add_person
from engine.commands.tasks import claim
from engine.db.session import connect
from tests.commands.cases import the_task
from tests.web.conftest import Browser
from tests.web.operations import deployed, started


def test_a_service_account_and_the_command_line_are_named_in_the_timeline(
    client_for: Callable[[str], Browser], committed_db: psycopg.Connection, database_url: str
) -> None:
    add_person(committed_db, "robot", actor=SYSTEM, display_name="Robot", groups=["billing"], kind="service")
    deployed(committed_db, "a_group_task")
    case = started(committed_db, "a_group_task")
    with connect(database_url, application_name="baton-cli") as by_cli:
        claim(by_cli, the_task(committed_db, "check"), actor=Actor("robot", groups=frozenset({"billing"})), request_id=None)
    page = client_for("olga").get(f"/operations/instances/{case}").text
    claimed = page.split("<strong>Robot</strong> claimed")[1].split("</li>")[0]
    assert "service account" in claimed and "by the command line" in claimed
    begun = page.split("<strong>Ada Moreno</strong> started")[1].split("</li>")[0]
    assert "service account" not in begun and "by the command line" not in begun
