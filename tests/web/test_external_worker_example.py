"""The worker of docs/from-camunda-7.md, against the application itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
from flask import Flask

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.bpmn.models import around
from tests.web.operations import OLGA, api_key, one, started

PAGE = (Path(__file__).parents[2] / "docs" / "from-camunda-7.md").read_text(encoding="utf-8")


def test_the_worker_of_the_page_completes_what_waits_and_finds_nothing_more(
    app: Flask, people: dict[str, UUID], committed_db: psycopg.Connection[Any]
) -> None:
    model = around('<serviceTask id="x" camunda:type="external" camunda:topic="shipping"/>')
    assert isinstance(deploy(committed_db, [("p.bpmn", model)], actor=OLGA), Deployed)
    case = started(committed_db, "p")
    (code,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def ship_one" in text]
    module: dict[str, Any] = {}
    exec(code, module)
    headers = {"Authorization": f"Bearer {api_key(committed_db, 'olga')}"}
    with httpx.Client(transport=httpx.WSGITransport(app=app), base_url="http://baton.test", headers=headers) as client:
        assert (module["ship_one"](client), module["ship_one"](client)) == (1, 0)
    assert one(committed_db, "SELECT status FROM process_instance WHERE id = %s", case) == "completed"
