"""Programs outside on the page of workers: their names and addresses, and a warning where two addresses share a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from flask import Flask

from tests.conftest import Clock
from tests.web.conftest import Browser
from tests.web.operations import api_key, deployed, one, started
from webapp.outside import Seen

Client = Callable[[str], Browser]
WARNING = "addresses ask as"


@pytest.fixture
def ask(app: Flask, people: Any, committed_db: psycopg.Connection) -> Callable[..., int]:
    """ask("w", "10.0.0.1"): a fetch of external tasks under this name from this address; its status."""
    keys = {name: api_key(committed_db, name) for name in ("olga", "ada")}

    def fetch(worker: str, address: str, who: str = "olga", *, path: str = "/engine-rest/external-task/fetchAndLock") -> int:
        camunda = {"workerId": worker, "maxTasks": 1, "topics": [{"topicName": "ship", "lockDuration": 60_000}]}
        ours = {"worker_id": worker, "topics": ["ship"]}
        answer = app.test_client().post(
            path,
            json=camunda if path.startswith("/engine-rest") else ours,
            headers={"Authorization": f"Bearer {keys[who]}"},
            environ_base={"REMOTE_ADDR": address},
        )
        return answer.status_code

    return fetch


def test_two_addresses_that_share_a_name_are_warned_about_until_one_is_gone_for_a_while(
    ask: Callable[..., int], client_for: Client, committed_db: psycopg.Connection, clock: Clock
) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    olga = client_for("olga")
    assert "Outside" not in olga.get("/operations/workers").text
    assert ask("lorry", "10.0.0.1") == 200
    assert ask("van", "10.0.0.1") == 200
    page = olga.get("/operations/workers").text
    assert "lorry" in page and "10.0.0.1" in page and WARNING not in page
    assert 'aria-label="1 leases of lorry"' in page
    assert ask("lorry", "10.0.0.2", path="/api/v1/external-tasks/acquire") == 200
    fragment = olga.get("/operations/workers/list").text
    assert f"2 {WARNING} <code>lorry</code>" in fragment
    assert "10.0.0.2" in fragment and "shared name" in fragment
    assert fragment.index("lorry") < fragment.index("van")
    clock.advance(minutes=6)
    assert WARNING not in olga.get("/operations/workers/list").text
    clock.advance(days=1)
    assert "lorry" not in olga.get("/operations/workers/list").text


def test_who_is_seen_again_soon_is_not_written_again_and_who_may_not_work_is_not_seen(
    ask: Callable[..., int], committed_db: psycopg.Connection, clock: Clock
) -> None:
    ask("lorry", "10.0.0.1")
    seen = one(committed_db, "SELECT last_seen_at FROM external_worker")
    clock.advance(seconds=30)
    ask("lorry", "10.0.0.1")
    assert one(committed_db, "SELECT last_seen_at FROM external_worker") == seen
    assert ask("boat", "10.0.0.1", who="ada") == 403
    assert one(committed_db, "SELECT count(*) FROM external_worker") == 1


def test_what_a_process_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.outside.REMEMBERED", 2)
    seen = Seen()
    assert [seen.is_news(("", name, "x")) for name in ("a", "b", "a", "c", "b", "a")] == [True, True, False, True, False, True]


def test_a_name_with_markup_is_text(ask: Callable[..., int], client_for: Client) -> None:
    ask("<b>w</b>", "10.0.0.1")
    ask("<b>w</b>", "10.0.0.2")
    assert "<b>w</b>" not in client_for("olga").get("/operations/workers").text
