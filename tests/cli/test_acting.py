"""The command line as a person types it: tasks, instances, messages, what is stuck, what rests; who acts, and what is said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from click.testing import CliRunner, Result

from cli.completing import SHELLS
from cli.main import baton
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.outcome import Actor
from engine.db.session import connect
from tests.cast import ADA, OP, engage
from tests.cli.test_commands import HERE
from tests.commands.cases import the_task
from tests.rows import one
from tests.web.operations import deployed, failed_external_task, started

Run = Callable[..., Result]


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


@pytest.fixture
def run(conn: psycopg.Connection[Any], database_url: str, tmp_path: Path) -> Run:
    def run(*arguments: object) -> Result:
        environment = {"DATABASE_URL": database_url, "BATON_HOME": str(tmp_path)}
        return CliRunner().invoke(baton, [str(each) for each in arguments], env=environment)

    return run


@pytest.fixture
def task(conn: psycopg.Connection[Any]) -> UUID:
    """A task that those in billing may take."""
    deployed(conn, "a_group_task")
    started(conn, "a_group_task", actor=ADA, business_key="INV-1")
    return the_task(conn, "check")


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result, code: int = 1) -> str:
    """The one sentence of a refusal; nothing is printed besides it."""
    assert result.exit_code == code and isinstance(result.exception, SystemExit), (result.output, result.exception)
    assert result.stdout == "" and result.stderr.splitlines()[-1].startswith("Error: "), result.output
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


# ---- tasks


def test_a_task_is_listed_claimed_and_completed_as_somebody_and_the_history_says_how(
    run: Run, conn: psycopg.Connection[Any], task: UUID
) -> None:
    (listed,) = document(run("task", "list", "--as", "ada", "--json"))
    assert (listed["id"], listed["status"], listed["business_key"]) == (str(task), "open", "INV-1")
    assert document(run("task", "list", "--as", "cy", "--json")) == []
    claimed = run("task", "claim", task, "--as", "ada")
    assert (claimed.exit_code, claimed.output) == (0, f"task {task} is claimed\n")
    assert "assignee: ada" in run("task", "show", task).output
    assert run("task", "complete", task, "--as", "ada", "--variable", "net=12.5", "--variable", "note=fine").exit_code == 0
    told = conn.execute("SELECT kind, actor, via FROM history WHERE item_id = %s AND actor = 'ada' ORDER BY id", (task,)).fetchall()
    assert told == [("task_claimed", "ada", "baton-cli"), ("task_completed", "ada", "baton-cli")]
    instance = one(conn, "SELECT id FROM process_instance")
    assert document(run("instance", "show", instance, "--json"))["variables"] == {"net": 12.5, "note": "fine"}
    assert "baton-cli" in run("instance", "history", instance).output


def test_who_came_late_is_told_who_was_first(run: Run, task: UUID) -> None:
    run("task", "claim", task, "--as", "ada")
    late = refused(run("task", "claim", task, "--as", "bo"))
    assert late.startswith(f"task {task}: already claimed, by Ada Lovelace, at 20")
    assert "not yours" in refused(run("task", "complete", task, "--as", "bo"))


def test_permissions_are_those_of_whom_it_acts_as(run: Run, task: UUID) -> None:
    assert refused(run("task", "claim", task, "--as", "cy")) == f"task {task}: not found"
    assert refused(run("task", "show", task, "--as", "cy")) == f"task {task}: not found"
    assert refused(run("task", "claim", task, "--as", "nobody")) == "--as: expected somebody who may come in, found 'nobody'"
    assert "Missing option '--as'" in refused(run("task", "claim", task), 2)
    assert "found cy, whose role is user" in refused(run("jobs", "--as", "cy"))
    assert "not allowed" in refused(run("signal", "X", "--as", "cy"))


def test_a_task_is_taken_given_back_and_handed_on(run: Run, conn: psycopg.Connection[Any], task: UUID) -> None:
    assert run("task", "next", "--as", "bo").stdout == f"{task}\n"
    assert "nothing free" in refused(run("task", "next", "--as", "ada"))
    assert run("task", "unclaim", task, "--as", "bo").exit_code == 0
    assert run("task", "claim", task, "--as", "ada", "--request-id", "r").exit_code == 0
    assert run("task", "assign", task, "--to", "bo", "--as", "ada").output == f"task {task} is assigned to bo\n"
    assert run("task", "claim", task, "--as", "ada", "--request-id", "r").exit_code == 0  # the same press: its first answer
    assert one(conn, "SELECT assignee FROM user_task") == "bo"
    assert run("task", "assign", task, "--nobody").exit_code == 0
    assert one(conn, "SELECT assignee FROM user_task") is None
    assert "found neither" in refused(run("task", "assign", task), 2)
    assert "expected NAME=VALUE, found 'x'" in refused(run("task", "complete", task, "--as", "ada", "--variable", "x"), 2)


# ---- instances, messages


def test_an_instance_is_found_suspended_resumed_and_cancelled(run: Run, conn: psycopg.Connection[Any], task: UUID) -> None:
    (found,) = document(run("instance", "list", "--process", "a_group_task", "--business-key", "INV-1", "--json"))
    assert document(run("instance", "list", "--status", "completed", "--json")) == []
    assert run("instance", "suspend", found["id"], "--reason", "audit", "--as", "op").exit_code == 0
    assert "instance suspended, by Op Erator" in refused(run("task", "claim", task, "--as", "ada"))
    assert run("instance", "resume", found["id"]).exit_code == 0
    assert "not suspended" in refused(run("instance", "resume", found["id"]))
    assert run("instance", "cancel", found["id"], "--reason", "a mistake", "--as", "op").exit_code == 0
    assert "already cancelled" in refused(run("instance", "cancel", found["id"], "--reason", "again"))
    assert conn.execute("SELECT action, actor, via FROM audit WHERE actor = 'op' ORDER BY id").fetchall() == [
        ("suspend", "op", "baton-cli"),
        ("cancel", "op", "baton-cli"),
    ]
    assert refused(run("instance", "show", uuid4())).endswith(": not found")


def test_a_message_is_had_by_who_waits_stored_or_refused(run: Run, conn: psycopg.Connection[Any]) -> None:
    deployed(conn, "a_message_starts_and_another_ends_it")
    assert run("message", "NEW", "--id", "7").output.startswith("it started instance ")
    assert run("message", "NEW", "--id", "7").output.startswith("sent before: it started instance ")
    assert one(conn, "SELECT count(*) FROM process_instance") == 1
    assert "no subscription" in refused(run("message", "NOBODY"))
    assert run("message", "NOBODY", "--keep", "60").output.startswith("stored as ")
    assert document(run("message", "NOBODY", "--keep", "60", "--json"))["outcome"] == "stored"
    assert "time_to_live" in refused(run("message", "NOBODY", "--keep", 10**12))


def test_a_signal_reaches_whoever_starts_by_it(run: Run, conn: psycopg.Connection[Any]) -> None:
    assert run("signal", "ALARM", "--variable", "floor=3").output == "signal ALARM is thrown\n"
    assert one(conn, "SELECT payload->>'name' FROM job WHERE kind = 'throw'") == "ALARM"


# ---- what is stuck, what rests


def test_what_failed_is_listed_and_retried(run: Run, conn: psycopg.Connection[Any]) -> None:
    deployed(conn, "an_external_task")
    first, second = failed_external_task(conn), failed_external_task(conn, business_key="ORD-2")
    assert {each["id"] for each in document(run("incidents", "--json"))} == {str(first), str(second)}
    assert "CarrierDown: 503" in run("incidents").output
    assert [each["status"] for each in document(run("jobs", "--kind", "external", "--json"))] == ["failed", "failed"]
    assert run("retry", first).stdout == f"{first}: retried\n"
    assert "has not failed, or was dealt with" in refused(run("retry", first))
    assert [each["outcome"] for each in document(run("retry", "--all", "--process", "shipping", "--attempts", "2", "--json"))] == [
        "retried"
    ]
    assert document(run("incidents", "--json")) == []
    assert "expected ids, or --all" in refused(run("retry"), 2)
    assert "expected ids, or --all" in refused(run("retry", first, "--all"), 2)


def test_a_lease_is_taken_from_its_holder_with_a_reason(run: Run, conn: psycopg.Connection[Any]) -> None:
    deployed(conn, "an_external_task")
    started(conn, "shipping", actor=ADA)
    operator = Actor("op", role="operator")
    [held] = acquire_external_tasks(conn, actor=operator, worker_id="w", topics=["ship"], limit=1)
    assert run("release", held.id, "--reason", "it hangs", "--as", "op").exit_code == 0
    assert "not leased" in refused(run("release", held.id, "--reason", "again"))
    assert one(conn, "SELECT reason FROM audit WHERE action = 'release'") == "it hangs"
    assert "not found" in refused(run("release", uuid4(), "--reason", "x"))


def test_a_delivery_is_skipped_and_sent_again(run: Run, conn: psycopg.Connection[Any]) -> None:
    deployed(conn, "a_task_a_delivery_a_task")
    started(conn, one(conn, "SELECT key FROM process_definition"), actor=ADA)
    task = the_task(conn, one(conn, "SELECT element_id FROM user_task"))
    for step in ("claim", "complete"):
        assert run("task", step, task, "--as", "op").exit_code == 0
    sent = one(conn, "SELECT id FROM delivery")
    assert run("delivery", "skip", sent, "--reason", "by hand").output == f"delivery {sent} is skipped\n"
    assert run("delivery", "replay", sent, "--reason", "after all").output.startswith("it is sent again as ")
    assert "not found" in refused(run("delivery", "replay", uuid4(), "--reason", "x"))


def test_work_is_paused_and_goes_on(run: Run, conn: psycopg.Connection[Any]) -> None:
    assert run("pause", "add", "service", "mail.send", "--reason", "it is down", "--as", "op").exit_code == 0
    (pause,) = document(run("pause", "list", "--json"))
    assert (pause["kind"], pause["topic"], pause["paused_by"], pause["reason"]) == ("service", "mail.send", "op", "it is down")
    assert "already paused, by Op Erator" in refused(run("pause", "add", "service", "mail.send"))
    assert run("pause", "remove", "service", "mail.send").output == "service mail.send: goes on\n"
    assert "not paused" in refused(run("pause", "remove", "service", "mail.send"))
    assert "topic: expected none for timer" in refused(run("pause", "add", "timer", "x"))
    assert "'plumber' is not one of" in refused(run("pause", "add", "plumber"), 2)


def test_a_version_is_listed_suspended_and_resumed(run: Run, task: UUID) -> None:
    (version,) = document(run("definition", "list", "--json"))
    assert (version["key"], version["version"], version["status"]) == ("a_group_task", 1, "active")
    assert "suspended with its instances" in run("definition", "suspend", "a_group_task", 1, "--with-instances").output
    assert document(run("definition", "list", "a_group_task", "--json"))[0]["status"] == "suspended"
    assert "suspended" in refused(run("start", "a_group_task"))
    assert run("definition", "resume", "a_group_task", 1).exit_code == 0
    assert "expected a process nothing with a version 1" in refused(run("definition", "resume", "nothing", 1))


# ---- the command line itself


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_and_options(run: Run, shell: str) -> None:
    script = run("completion", shell)
    assert script.exit_code == 0 and "_BATON_COMPLETE" in script.stdout
    environment = {"PATH": "/usr/bin:/bin", "_BATON_COMPLETE": f"{shell}_complete", "COMP_WORDS": "baton task c", "COMP_CWORD": "2"}
    if shell == "fish":
        environment["COMP_CWORD"] = "c"
    found = subprocess.run(
        [sys.executable, "-m", "cli.main"], cwd=HERE, env=environment, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "claim" in found and "complete" in found and "unclaim" not in found


def test_a_wrong_id_and_a_wrong_option_are_named(run: Run) -> None:
    assert "'41' is not a valid UUID" in refused(run("task", "show", "41"), 2)
    assert "No such option" in refused(run("jobs", "--colour"), 2)


def test_a_list_that_is_long_is_read_page_by_page(run: Run, conn: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.acting.PAGE", 2)
    deployed(conn, "a_group_task")
    for _ in range(5):
        started(conn, "a_group_task", actor=OP)
    assert len(document(run("instance", "list", "--json"))) == 5
    assert len(document(run("instance", "list", "--limit", "3", "--json"))) == 3
