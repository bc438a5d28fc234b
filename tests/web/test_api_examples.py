"""docs/api.md: its blocks run from top to bottom, as they stand, against a real server, and answer what the page says."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.commands.api_keys import add_api_key
from engine.commands.outcome import ApiKeyAdded
from tests.cast import ROOT, engage
from tests.web.processes import WebProcess

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
ANY = "…"


@pytest.fixture
def asked(committed_db: psycopg.Connection, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebProcess]:
    """A server, the keys that the page speaks of, and a folder of its own, which is the current one."""
    engage(committed_db)
    committed_db.execute("UPDATE person_group SET group_key = 'clerks'")
    for variable, username in (("ADA", "ada"), ("BO", "bo"), ("OPERATOR", "op")):
        made = add_api_key(committed_db, username, actor=ROOT, name="the page", days=1)
        assert isinstance(made, ApiKeyAdded), made
        monkeypatch.setenv(variable, made.token)
    monkeypatch.chdir(tmp_path)
    with WebProcess(database_url, tmp_path / "web.log") as web:
        monkeypatch.setenv("BATON", web.ready().url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield web


def test_the_blocks_of_the_page_run_in_order_and_answer_what_it_says(asked: WebProcess, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    answer, compared = "", 0
    for language, text in BLOCKS:
        match language:
            case "xml":
                (tmp_path / "leave.bpmn").write_text(text, encoding="utf-8")
            case "sh":
                answer = shell(text)
            case "python":
                answer = python(text, names)
            case "json":
                assert fits(json.loads(answer), json.loads(text)), f"expected {text}, found {answer}"
                compared += 1
            case "text":
                assert answer == text
                compared += 1
            case _:
                raise AssertionError(f"no block of this page is in {language!r}")
    assert compared == len(BLOCKS) // 2
    assert "Traceback" not in asked.text()


def shell(text: str) -> str:
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=dict(os.environ), capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def python(text: str, names: dict[str, Any]) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(text, str(PAGE), "exec"), names)
    return said.getvalue()


def fits(found: Any, said: Any) -> bool:
    """The same, but for texts that the page leaves open."""
    match said:
        case dict():
            return isinstance(found, dict) and set(found) == set(said) and all(fits(found[name], said[name]) for name in said)
        case list():
            return isinstance(found, list) and len(found) == len(said) and all(map(fits, found, said))
    return isinstance(found, str) if said == ANY else bool(found == said and type(found) is type(said))


def test_an_answer_that_differs_does_not_fit() -> None:
    said = {"id": ANY, "items": [{"n": 1}], "on": True}
    assert fits({"id": "x", "items": [{"n": 1}], "on": True}, said)
    for other in ({"id": None}, {"items": []}, {"items": [{"n": 2}]}, {"items": [{"n": 1, "m": 1}]}, {"on": 1}):
        assert not fits({"id": "x", "items": [{"n": 1}], "on": True, **other}, said), other
