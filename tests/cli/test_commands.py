"""`baton …` as a person types it: what it prints, how it refuses, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.database import secret_key
from cli.main import COMMANDS, baton
from engine.config import Settings

HERE = Path(__file__).parents[2]
MODEL = HERE / "cli" / "samples" / "invoice-approval.bpmn"


@pytest.fixture
def run(database_url, tmp_path):
    """Runs a command on a fresh database."""

    def run(*arguments: str, typed: str | None = None) -> Result:
        environment = {"DATABASE_URL": database_url, "BATON_HOME": str(tmp_path)}
        return CliRunner().invoke(baton, list(arguments), input=typed, env=environment)

    return run


def in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`baton` as the operating system sees it, with no configuration but `environment`."""
    command = [sys.executable, "-m", "cli.main", *arguments]
    return subprocess.run(
        command, cwd=HERE, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_command_loads_and_says_what_it_does():
    for name in COMMANDS:
        result = CliRunner().invoke(baton, [name, "--help"])
        assert result.exit_code == 0, name
    assert all(name in CliRunner().invoke(baton, ["--help"]).output for name in COMMANDS)


def test_signing_secrets_are_made_of_the_key_of_the_baton_up_whose_database_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("BATON_HOME", str(tmp_path))
    for name in ("DATABASE_URL", "BATON_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert secret_key() is None
    (tmp_path / "secret-key").write_text("kept beside it\n")
    assert secret_key() == "kept beside it"
    monkeypatch.setenv("BATON_SECRET_KEY", "k" * 40)
    assert secret_key() == "k" * 40
    monkeypatch.delenv("BATON_SECRET_KEY")
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/baton")
    assert secret_key() is None, "another database has other workers, and they another key"


def test_what_changes_people_keys_and_versions_says_it_as_json_too(run):
    def said(*arguments: str, typed: str | None = None) -> dict[str, object]:
        result = run(*arguments, "--json", typed=typed)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    secret = "a long password of hers\n"
    person = said("user", "add", "ada", "--display-name", "Ada", "--password-stdin", typed=secret)
    assert person["username"] == "ada" and secret.strip() not in str(person)
    for change in (("change", "ada", "--role", "operator"), ("disable", "ada"), ("enable", "ada")):
        assert said("user", *change) == person
    assert said("user", "set-password", "ada", "--password-stdin", typed=secret) == person
    key = said("key", "add", "ada", "--name", "a program")
    assert said("key", "revoke", str(key["id"])) == {"key_id": key["id"]}
    assert run("deploy", str(MODEL)).exit_code == 0
    assert said("delete", "invoice-approval", "1", "--reason", "tried out")["version"] == 1


@pytest.mark.parametrize("command", ["web", "worker", "migrate"])
def test_without_a_database_it_refuses_to_start_and_names_the_variable(command, tmp_path):
    result = in_a_process(command, BATON_HOME=str(tmp_path))
    assert result.returncode == 2
    assert result.stderr.startswith("baton: DATABASE_URL: expected postgresql://")
    assert "Traceback" not in result.stderr


def test_every_wrong_variable_is_named_at_start():
    result = in_a_process("web", BATON_LISTEN="here", BATON_WEB_THREADS="many", DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert result.returncode == 2
    assert [line.split(":")[1].strip() for line in result.stderr.splitlines()] == ["BATON_LISTEN", "BATON_WEB_THREADS"]


def test_up_refuses_production():
    result = in_a_process("up", BATON_ENV="production", BATON_SECRET_KEY="k" * 32)
    assert result.returncode == 1
    assert "baton web" in result.stderr


def test_a_database_that_does_not_answer_is_said_in_one_line():
    for command in (["migrate"], ["user", "list"]):
        result = in_a_process(*command, DATABASE_URL="postgresql://127.0.0.1:1/nothing")
        assert result.returncode == 1
        assert "does not answer" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_database_without_the_schema_is_told_apart(server_url, tmp_path):
    result = in_a_process("user", "list", DATABASE_URL=server_url)
    assert result.returncode == 1
    assert "baton migrate" in result.stderr


def test_migrate_twice_is_harmless(run):
    assert run("migrate").exit_code == 0
    assert run("migrate").exit_code == 0


def test_the_first_administrator_is_made_with_a_password_from_standard_input(run):
    added = run(
        "user",
        "add",
        "ada",
        "--display-name",
        "Ada Moreno",
        "--role",
        "administrator",
        "--group",
        "office",
        "--password-stdin",
        typed="secret-enough\n",
    )
    assert (added.exit_code, added.output) == (0, "ada may sign in.\n")
    (ada,) = json.loads(run("user", "list", "--json").output)
    assert (ada["username"], ada["role"], ada["groups"], ada["may_sign_in"]) == ("ada", "administrator", ["office"], True)
    assert "Ada Moreno" in run("user", "list").output


def test_a_short_password_a_taken_name_and_a_wrong_name_are_refused_in_words(run):
    def add(name: str, password: str = "secret-enough") -> Result:
        return run("user", "add", name, "--display-name", "Ada", "--password-stdin", typed=f"{password}\n")

    assert "at least 8 characters, found 5" in add("ada", "short").output
    assert add("ada").exit_code == 0
    assert "exists already" in add("ada").output
    assert "username: expected small letters" in add("Ada Moreno").output
    assert add("ada").exit_code == 1


def test_a_person_is_changed_disabled_and_enabled(run):
    run("user", "add", "bo", "--display-name", "Bo", "--password-stdin", typed="secret-enough\n")
    assert run("user", "change", "bo", "--role", "operator", "--group", "a", "--group", "b").exit_code == 0
    assert run("user", "disable", "bo").exit_code == 0
    (bo,) = json.loads(run("user", "list", "--json").output)
    assert (bo["role"], bo["groups"], bo["disabled_at"] is None) == ("operator", ["a", "b"], False)
    assert run("user", "enable", "bo").exit_code == 0
    assert run("user", "set-password", "bo", "--password-stdin", typed="another-secret\n").exit_code == 0
    missing = run("user", "disable", "nobody")
    assert (missing.exit_code, missing.output) == (1, "Error: nobody is called nobody\n")


def test_a_key_is_printed_once_on_a_line_of_its_own_and_revoked(run):
    run("user", "add", "ada", "--display-name", "Ada", "--password-stdin", typed="secret-enough\n")
    added = run("key", "add", "ada", "--name", "import", "--days", "30")
    assert added.exit_code == 0
    token = added.stdout.strip()
    assert token.startswith("baton_")
    (key,) = json.loads(run("key", "list", "--json").output)
    assert token not in json.dumps(key)
    assert run("key", "revoke", key["id"]).exit_code == 0
    assert json.loads(run("key", "list", "--person", "ada", "--json").output)[0]["revoked_at"]


def test_a_key_is_limited_holds_ninety_days_by_itself_and_is_found_by_its_text(run):
    assert run("user", "add", "robot", "--display-name", "Robot", "--role", "operator", "--service").exit_code == 0
    assert json.loads(run("user", "list", "--json").output)[0]["kind"] == "service"
    made = json.loads(run("key", "add", "robot", "--name", "import", "--scope", "read", "--scope", "messages", "--json").stdout)
    (key,) = json.loads(run("key", "list", "--json").output)
    assert (key["scopes"], key["ending"]) == (["read", "messages"], made["key"][-4:])
    assert (date.fromisoformat(key["expires_at"][:10]) - date.fromisoformat(key["created_at"][:10])).days == 90
    found = run("key", "find", typed=f"{made['key']}\n")
    assert found.output == f"{made['id']} of robot, 'import': active, never used\n"
    assert "no key of this database" in run("key", "find", typed="baton_other\n").output
    assert "begins with baton_" in run("key", "find", typed="secret\n").output
    beyond = run("key", "add", "robot", "--name", "x", "--scope", "administer")
    assert beyond.exit_code == 1 and "found administer" in beyond.output
    assert "both" in run("key", "add", "robot", "--name", "x", "--days", "3", "--never-expires").output


def test_a_key_holds_no_longer_than_the_house_allows(run, monkeypatch):
    monkeypatch.setenv("BATON_KEY_MAX_DAYS", "30")
    run("user", "add", "ada", "--display-name", "Ada", "--password-stdin", typed="secret-enough\n")
    assert "expected 1 to 30 days, found no end" in run("key", "add", "ada", "--name", "x", "--never-expires").output
    assert run("key", "add", "ada", "--name", "x").exit_code == 0


def test_check_names_every_problem_with_its_place(tmp_path):
    assert CliRunner().invoke(baton, ["check", str(MODEL)]).output == "invoice-approval: may be deployed\n"
    broken = tmp_path / "broken.bpmn"
    broken.write_text(
        MODEL.read_text().replace('targetRef="check"', 'targetRef="nowhere"').replace("${amount &gt; 1000}", "${amount &gt;}")
    )
    result = CliRunner().invoke(baton, ["check", str(broken)])
    assert result.exit_code == 1
    assert "nowhere" in result.output
    assert "broken.bpmn:" in result.output
    found = json.loads(CliRunner().invoke(baton, ["check", str(broken), "--json"]).output)
    assert len(found["problems"]) >= 2
    assert all(problem["line"] for problem in found["problems"])


def test_a_model_is_deployed_once_and_started_by_its_key(run):
    assert "invoice-approval version 1\n" in run("deploy", str(MODEL)).output
    assert "invoice-approval version 1 (unchanged)\n" in run("deploy", str(MODEL)).output
    started = run(
        "start",
        "invoice-approval",
        "--business-key",
        "INV-1",
        "--variable",
        "amount=12.5",
        "--variable",
        "vendor=Holm",
        "--variable",
        "payBy=soon",
    )
    assert started.exit_code == 0, started.output
    assert len(started.output.strip()) == 36
    missing = run("start", "nothing-like-that")
    assert missing.exit_code == 1
    wrong = run("start", "invoice-approval", "--variable", "amount")
    assert wrong.exit_code == 2


def test_a_folder_is_deployed_as_one_with_the_names_that_files_have_in_it(run, tmp_path):
    models = tmp_path / "models"
    (models / "deep").mkdir(parents=True)
    (models / "deep" / "invoice.bpmn").write_bytes(MODEL.read_bytes())
    (models / "dishes.dmn").write_bytes((HERE / "tests" / "models" / "what_to_cook.dmn").read_bytes())
    told = run("deploy", str(models)).output
    assert "invoice-approval version 1\n" in told
    assert "dish version 1\n" in told
    nothing = run("deploy", str(tmp_path / "models" / "deep" / "invoice.bpmn"), str(HERE / "requirements"))
    assert nothing.exit_code == 2
    assert "expected files that end in" in nothing.output


def test_a_version_is_deleted_with_a_reason_unless_instances_of_it_run(run):
    run("deploy", str(MODEL))
    assert run("start", "invoice-approval").exit_code == 0
    used = run("delete", "invoice-approval", "1", "--reason", "a mistake")
    assert used.exit_code == 1 and "1 instance of version 1 of invoice-approval still runs" in used.output
    assert "expected a process nothing with a version 1" in run("delete", "nothing", "1", "--reason", "x").output
    assert run("delete", "invoice-approval", "1").exit_code == 2


def test_the_configuration_is_printed_as_a_table():
    output = CliRunner().invoke(baton, ["config"]).output
    assert all(f"`{each.metadata['name']}`" in output for each in Settings.__dataclass_fields__.values())
