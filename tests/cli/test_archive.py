"""`baton export` and `baton import`: what a Baton knows, brought to another one without secrets, and never over what is there."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import baton
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM, Deployed
from engine.commands.people import add_person, disable_person
from engine.db.session import connect
from engine.queries.people import people
from tests.cli.test_commands import MODEL
from tests.rows import one

HERE = Path(__file__).parents[2]
DISHES = (HERE / "tests" / "models" / "what_to_cook.dmn").read_bytes()
Run = Callable[..., Result]


def runner(url: str, home: Path) -> Run:
    def run(*arguments: str) -> Result:
        return CliRunner().invoke(baton, list(arguments), env={"DATABASE_URL": url, "BATON_HOME": str(home)})

    return run


@pytest.fixture
def there(database_url: str, tmp_path: Path) -> Run:
    """A Baton with a model of two versions, a decision, people and a service account."""
    with connect(database_url) as conn:
        for text in (MODEL.read_bytes(), MODEL.read_bytes().replace(b"Check invoice", b"Check it")):
            assert isinstance(deploy(conn, [("invoice.bpmn", text), ("dishes.dmn", DISHES)], actor=SYSTEM, name="first"), Deployed)
        add_person(conn, "ada", actor=SYSTEM, display_name="Ada", groups=["office"], password_hash="the-secret-hash")
        add_person(conn, "robot", actor=SYSTEM, display_name="Robot", role="operator", kind="service")
        add_person(conn, "zoe", actor=SYSTEM, display_name="Zoë")
        disable_person(conn, "zoe", actor=SYSTEM)
    return runner(database_url, tmp_path)


@pytest.fixture
def elsewhere(databases: Any) -> Any:
    url = databases.lend()
    yield url
    databases.take_back(url)


def actions(result: Result) -> list[tuple[str, str]]:
    found = json.loads(result.stdout)
    return [(each["name"], each["action"]) for each in found]


@pytest.mark.parametrize("name", ["all.zip", "all"])
def test_what_is_exported_arrives_once_and_again_is_harmless(there: Run, elsewhere: str, tmp_path: Path, name: str) -> None:
    archive = str(tmp_path / name)
    assert there("export", archive).exit_code == 0
    here = runner(elsewhere, tmp_path)

    dry = here("import", archive, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    everything = [("decision dish, decision season", "add"), ("process invoice-approval", "add")]
    assert sorted(actions(dry)) == sorted([*everything, ("ada", "add"), ("robot", "add"), ("zoe", "add")])
    with connect(elsewhere) as conn:
        assert one(conn, "SELECT count(*) FROM process_definition") == one(conn, "SELECT count(*) FROM person") == 0

    assert here("import", archive).exit_code == 0
    again = here("import", archive, "--json")
    assert {action for _, action in actions(again)} == {"unchanged"}
    with connect(elsewhere) as conn:
        assert conn.execute("SELECT key, version, position('Check it'::bytea in xml) > 0 FROM process_definition").fetchall() == [
            ("invoice-approval", 1, True)
        ]
        ada, robot, zoe = people(conn)
        assert (ada.groups, ada.may_sign_in, robot.kind, robot.role, zoe.disabled_at is None) == (
            ["office"],
            False,
            "service",
            "operator",
            False,
        )


def test_no_secret_is_in_an_archive(there: Run, tmp_path: Path) -> None:
    token = there("key", "add", "robot", "--name", "x").stdout.strip()
    there("export", str(tmp_path / "all"))
    written = b"".join(path.read_bytes() for path in (tmp_path / "all").rglob("*") if path.is_file())
    assert b"the-secret-hash" not in written and token.encode() not in written
    assert not there("export", str(tmp_path / "less"), "--without-people").exit_code and not (tmp_path / "less" / "people.json").exists()


def test_what_differs_is_named_and_nothing_is_imported_unless_asked_for(there: Run, elsewhere: str, tmp_path: Path) -> None:
    archive = str(tmp_path / "all.zip")
    there("export", archive)
    with connect(elsewhere) as conn:
        deploy(conn, [("invoice.bpmn", MODEL.read_bytes())], actor=SYSTEM)
        add_person(conn, "ada", actor=SYSTEM, display_name="Ada", role="administrator")
    here = runner(elsewhere, tmp_path)
    refused = here("import", archive)
    assert refused.exit_code == 1
    assert "version 1 here is another" in refused.output and "role: 'administrator' here, 'user' there" in refused.output
    assert "2 of 5 differ from what is here, nothing was imported; --replace" in refused.output
    with connect(elsewhere) as conn:
        assert one(conn, "SELECT count(*) FROM decision_definition") == 0 and len(people(conn)) == 1
        assert here("import", archive, "--replace").exit_code == 0
        assert one(conn, "SELECT max(version) FROM process_definition") == 2
        assert people(conn)[0].role == "user"
    assert {action for _, action in actions(here("import", archive, "--json"))} == {"unchanged"}


def test_a_person_does_not_become_a_service_account_by_an_import(there: Run, elsewhere: str, tmp_path: Path) -> None:
    there("export", str(tmp_path / "all"))
    with connect(elsewhere) as conn:
        add_person(conn, "robot", actor=SYSTEM, display_name="Robot", password_hash="x")
    refused = runner(elsewhere, tmp_path)("import", str(tmp_path / "all"), "--replace")
    assert refused.exit_code == 1 and "kind: 'person' here, 'service' there" in refused.output


def test_an_export_writes_over_nothing(there: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for target in ("mine.zip", "full"):
        refused = there("export", str(tmp_path / target))
        assert refused.exit_code == 1 and "would be overwritten" in refused.output
    assert (tmp_path / "mine.zip").read_text() == "mine"


def test_what_is_no_archive_is_refused_in_a_sentence(there: Run, tmp_path: Path) -> None:
    def told(make: Callable[[Path], object]) -> str:
        folder = tmp_path / "wrong"
        folder.mkdir(exist_ok=True)
        make(folder)
        result = there("import", str(folder))
        assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
        return result.output

    (tmp_path / "no.zip").write_text("no")
    assert "expected a folder or a .zip" in there("import", str(tmp_path / "no.zip")).output
    assert "found no baton.json" in told(lambda folder: None)
    assert "expected JSON" in told(lambda folder: (folder / "baton.json").write_text("{"))
    assert "expected format 1, found 7" in told(lambda folder: (folder / "baton.json").write_text('{"format": 7}'))
    assert "not whole: 'deployments'" in told(lambda folder: (folder / "baton.json").write_text('{"format": 1}'))
    stands = {"kind": "process", "key": "x", "version": 1, "file": "x", "hash": "", "content_hash": ""}
    outside = {"format": 1, "deployments": [{"name": "", "files": {"../../secret": "x.bpmn"}, "stands_for": [stands]}]}
    assert "lies outside" in told(lambda folder: (folder / "baton.json").write_text(json.dumps(outside)))
    outside["deployments"][0]["files"] = {"gone": "x.bpmn"}  # type: ignore[index]  # as written three lines above
    assert "not whole" in told(lambda folder: (folder / "baton.json").write_text(json.dumps(outside)))


def test_names_of_files_become_no_paths(database_url: str, tmp_path: Path) -> None:
    with connect(database_url) as conn:
        assert isinstance(deploy(conn, [("../../evil.bpmn", MODEL.read_bytes())], actor=SYSTEM), Deployed)
    run = runner(database_url, tmp_path)
    (tmp_path / "in").mkdir()
    assert run("export", str(tmp_path / "in" / "all")).exit_code == 0
    assert not list(tmp_path.glob("evil*")) and not list((tmp_path / "in").glob("evil*"))
    assert run("export", str(tmp_path / "all.zip")).exit_code == 0
    assert all(
        name.startswith(("baton.json", "people.json", "deployments/0001/001")) for name in zipfile.ZipFile(tmp_path / "all.zip").namelist()
    )
