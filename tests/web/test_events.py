"""The stream of process events: nothing that commits late is passed over, nothing is told twice, and who waits holds no thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from engine.commands.start import start_instance
from engine.db.session import connect
from tests.races.contest import held_at
from tests.web.operations import ADA, api_key, deployed, one, started
from tests.web.processes import WebProcess
from tests.web.test_api_contract import program as program
from tests.worker.processes import eventually

Conn = psycopg.Connection[Any]
Settled = Callable[[], object]

# What is written but by whom is still at it, in any database of the server: tests that run beside this one hold the stream up, too.
SETTLED = "SELECT coalesce(max(xid) < pg_snapshot_xmin(pg_current_snapshot()), true) FROM history"


@pytest.fixture
def settled(committed_db: Conn) -> Settled:
    """Call it before asking: everything that was committed can be read."""
    return lambda: eventually(lambda: one(committed_db, SETTLED), "other transactions of the server to end", seconds=120)


def told(caller: Any, cursor: str | None = None, **asked: Any) -> tuple[list[Any], str]:
    query = "&".join(f"{name}={value}" for name, value in {**asked, **({"cursor": cursor} if cursor else {})}.items())
    answer = caller.get(f"/events?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json["items"], answer.json["next_cursor"]


def test_from_now_on_nothing_is_told_and_then_what_happens_is_told_once(program: Any, committed_db: Conn, settled: Settled) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping", business_key="before")
    olga = program("olga")
    settled()
    nothing, cursor = told(olga)
    assert nothing == []
    case = started(committed_db, "shipping", business_key="ORD-1")
    settled()
    events, cursor = told(olga, cursor)
    assert events[0]["kind"] == "instance_started"
    assert {event["process_instance_id"] for event in events} == {str(case)}
    assert {(event["process_definition_key"], event["version"], event["business_key"]) for event in events} == {("shipping", 1, "ORD-1")}
    assert told(olga, cursor)[0] == []
    everything, _ = told(olga, **{"from": "start"})
    assert everything[-len(events) :] == events and len(everything) > len(events)


def test_a_page_at_a_time_tells_the_same_as_all_at_once(program: Any, committed_db: Conn, settled: Settled) -> None:
    deployed(committed_db, "an_external_task")
    for _ in range(4):
        started(committed_db, "shipping")
    olga = program("olga")
    settled()
    everything, _ = told(olga, **{"from": "start"}, limit=1000)
    found, cursor = told(olga, **{"from": "start"}, limit=3)
    while True:
        more, cursor = told(olga, cursor, limit=3)
        if not more:
            break
        found += more
    assert found == everything


def test_what_commits_late_is_told_later_and_never_passed_over(
    program: Any, committed_db: Conn, database_url: str, tmp_path: Path, settled: Settled
) -> None:
    """The first start has drawn its ids and has not committed while the second commits: by id alone it would be lost."""
    deployed(committed_db, "an_external_task")
    olga = program("olga")
    _, cursor = told(olga)
    late = lambda conn: start_instance(conn, "shipping", actor=ADA, variables={}, business_key="late")  # noqa: E731
    with held_at(database_url, "command.before_commit", late, tmp_path) as held:
        with connect(database_url) as other:
            started(other, "shipping", business_key="early")
        between, cursor = told(olga, cursor)
        assert "late" not in {event["business_key"] for event in between}
    held.outcome()
    settled()
    after, _ = told(olga, cursor)
    keys = [event["business_key"] for event in [*between, *after]]
    assert set(keys) == {"late", "early"}
    ids = [event["id"] for event in [*between, *after]]
    assert (
        len(ids) == len(set(ids)) == one(committed_db, "SELECT count(*) FROM history WHERE kind <> 'deployed' AND instance_id IS NOT NULL")
    )


def test_events_are_chosen_by_kind_process_and_case(program: Any, committed_db: Conn, settled: Settled) -> None:
    deployed(committed_db, "an_external_task", "a_task_a_delivery_a_task")
    case = started(committed_db, "shipping")
    started(committed_db, "relay")
    olga = program("olga")
    settled()
    start = {"from": "start"}
    kinds = {event["kind"] for event in told(olga, **start, kinds="instance_started,external_task_created")[0]}
    assert kinds == {"instance_started", "external_task_created"}
    assert {event["process_definition_key"] for event in told(olga, **start, process_definition_key="relay")[0]} == {"relay"}
    assert {event["root_instance_id"] for event in told(olga, **start, root_instance_id=case)[0]} == {str(case)}
    _, cursor = told(olga, **start, kinds="nothing_of_this_kind")
    assert told(olga, cursor)[0] == [], "what was not wanted is behind the cursor, not before it"


def test_who_may_not_and_what_is_no_cursor(program: Any, committed_db: Conn) -> None:
    assert program("ada").get("/events").status_code == 403
    olga = program("olga")
    for wrong in ("x", "MS4y.", "LTEuMQ", "OTk5OTk5OTk5OTk5OTk5OTk5OTkuMQ"):
        answer = olga.get(f"/events?cursor={wrong}")
        assert (answer.status_code, answer.json["problems"][0]["field"]) == (422, "cursor"), wrong
    elsewhere = olga.get("/events?cursor=OTk5OTk5OTk5OTkuMQ")
    assert elsewhere.status_code == 422 and "restored" in elsewhere.json["problems"][0]["message"]
    for query in ("kinds=a,,b", "wait_seconds=51", "limit=0", "from=yesterday", "root_instance_id=x"):
        assert olga.get(f"/events?{query}").status_code == 422, query


@pytest.fixture
def web(database_url: str, people: dict[str, UUID], tmp_path: Path) -> Iterator[WebProcess]:
    with WebProcess(database_url, tmp_path / "web.log", web_threads="4", pool_size="3") as web:
        yield web.ready()
        assert "Traceback" not in web.text()


def waiting(web: WebProcess) -> int:
    lines = httpx.get(f"{web.url}/metrics", trust_env=False, timeout=20).text.splitlines()
    return next((int(float(line.split()[1])) for line in lines if line.startswith("baton_web_event_polls ")), 0)


@pytest.mark.slow
def test_more_who_wait_than_there_are_threads_hear_of_an_event_and_others_are_answered_meanwhile(
    web: WebProcess, committed_db: Conn
) -> None:
    deployed(committed_db, "an_external_task")
    headers = {"Authorization": f"Bearer {api_key(committed_db, 'olga')}"}
    over = threading.Event()

    def listen(kind: str) -> list[str]:
        """Until an event came, or nobody expects one any more."""
        with httpx.Client(base_url=web.url, headers=headers, trust_env=False, timeout=70) as client:
            cursor = client.get("/api/v1/events").json()["next_cursor"]
            while not over.is_set():
                answer = client.get("/api/v1/events", params={"cursor": cursor, "wait_seconds": 2, "kinds": kind}).json()
                cursor = answer["next_cursor"]
                if answer["items"]:
                    return [event["kind"] for event in answer["items"]]
        return []

    with ThreadPoolExecutor(24) as threads:
        hears = [threads.submit(listen, "instance_started") for _ in range(20)]
        deaf = [threads.submit(listen, "instance_cancelled") for _ in range(4)]
        eventually(lambda: waiting(web) >= 20, "more than four threads to wait", seconds=60)
        assert httpx.get(f"{web.url}/health/ready", trust_env=False, timeout=20).status_code == 200
        started(committed_db, "shipping")
        assert [each.result(60) for each in hears] == [["instance_started"]] * 20
        over.set()
        assert [each.result(60) for each in deaf] == [[]] * 4
