"""The page of a job, and the API for what attempts say: read by operators, reported by clients."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg

from engine.commands.attempt_log import Line, Report, keep_reports, report_attempt
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task, fail_external_task
from tests.web.operations import OLGA, Client, deployed, started
from tests.web.test_api_contract import program as program

Conn = psycopg.Connection[Any]


def acquired(conn: Conn) -> Any:
    deployed(conn, "an_external_task")
    started(conn, "shipping", business_key="ORD-1")
    return again(conn)


def again(conn: Conn) -> Any:
    conn.execute("UPDATE external_task SET available_at = baton_clock() - interval '1 second' WHERE status = 'available'")
    [task] = acquire_external_tasks(conn, actor=OLGA, worker_id="printer-1", topics=["ship"], limit=1)
    return task


def test_the_page_of_a_job_shows_each_attempt_with_what_it_said(client_for: Client, committed_db: Conn) -> None:
    task = acquired(committed_db)
    report_attempt(committed_db, task.id, actor=OLGA, lease_number=1, progress=0.4, doing="page 2", lines=[Line("<b>jam</b>", "warning")])
    fail_external_task(committed_db, task.id, actor=OLGA, lease_number=1, error="PaperJam: tray 2", retry_in=1)
    task = again(committed_db)
    report_attempt(committed_db, task.id, actor=OLGA, lease_number=2, lines=[Line(str(n)) for n in range(200)])
    report_attempt(committed_db, task.id, actor=OLGA, lease_number=2, lines=[Line("one too many")])
    page = client_for("olga").get(f"/operations/jobs/{task.id}").text
    assert page.index("Attempt 2") < page.index("Attempt 1")
    for words in (
        "running",
        "PaperJam: tray 2",
        "<strong>40 %</strong> page 2",
        "&lt;b&gt;jam&lt;/b&gt;",
        "1 further line not kept",
        "printer-1",
    ):
        assert words in page, words
    assert "<b>jam" not in page and "one too many" not in page
    complete_external_task(committed_db, task.id, actor=OLGA, lease_number=2, variables={})
    ended = client_for("olga").get(f"/operations/jobs/{task.id}/part").text
    assert "ended" in ended and "1 further line not kept" in ended
    assert f"/operations/jobs/{task.id}" not in client_for("olga").get("/operations/jobs/list").text


def test_the_page_of_what_nobody_has_begun_says_so_and_the_list_leads_there(client_for: Client, committed_db: Conn) -> None:
    deployed(committed_db, "an_external_task")
    started(committed_db, "shipping")
    [(task,)] = committed_db.execute("SELECT id FROM external_task").fetchall()
    olga = client_for("olga")
    assert f"/operations/jobs/{task}" in olga.get("/operations/jobs").text
    assert "Nobody has begun it yet" in olga.get(f"/operations/jobs/{task}").text
    for nobodys in (uuid4(), committed_db.execute("SELECT id FROM process_instance").fetchall()[0][0]):
        assert olga.get(f"/operations/jobs/{nobodys}").status_code == 404
    ada = client_for("ada")
    assert ada.get(f"/operations/jobs/{task}").status_code == 403
    assert ada.get(f"/operations/jobs/{task}/part").status_code == 403


def test_a_client_reports_and_an_operator_reads(program: Any, committed_db: Conn) -> None:
    task = acquired(committed_db)
    caller = program("olga")
    body = {"lease_number": 1, "progress": 0.5, "doing": "page 5", "lines": [{"text": "short", "level": "warning"}, {"text": "ok"}]}
    answer = caller.post(f"/external-tasks/{task.id}/report", body)
    assert (answer.status_code, answer.json) == (200, {"id": str(task.id), "status": "leased", "lines": 2})
    [attempt] = caller.get(f"/jobs/{task.id}/attempts").json["items"]
    shown = [attempt[name] for name in ("lease_number", "attempt", "owner", "outcome", "progress", "doing", "lines_not_kept")]
    assert shown == [1, 1, "printer-1", "running", 0.5, "page 5", 0]
    assert [(line["level"], line["text"]) for line in attempt["lines"]] == [("warning", "short"), ("info", "ok")]
    assert caller.get(f"/jobs/{uuid4()}/attempts").status_code == 404
    assert program("ada").get(f"/jobs/{task.id}/attempts").status_code == 403


def test_a_report_that_is_wrong_or_late_is_refused_by_field_or_reason(program: Any, committed_db: Conn) -> None:
    task = acquired(committed_db)
    caller = program("olga")

    def problems(**body: Any) -> Any:
        answer = caller.post(f"/external-tasks/{task.id}/report", {"lease_number": 1, **body})
        assert answer.status_code == 422, answer.text
        return {problem["field"]: problem["message"] for problem in answer.json["problems"]}

    assert problems(progress=2) == {"progress": "expected 0 to 1, found 2"}
    assert problems() == {"lines": "expected a line or `progress`, found neither"}
    assert problems(lines=[{"text": "a"}, {"text": ""}]) == {"lines": "line 2: expected text, found none"}
    assert problems(lines=["a"]) == {"lines": 'line 1: expected an object of "text" and, if need be, "level"'}
    assert "debug, info, warning, error" in problems(lines=[{"text": "a", "level": "loud"}])["lines"]
    late = caller.post(f"/external-tasks/{task.id}/report", {"lease_number": 2, "progress": 1})
    assert (late.status_code, late.json["reason"]) == (409, "lease_lost")


def test_attempts_whose_end_is_not_recorded_are_shown_as_that(committed_db: Conn, program: Any) -> None:
    """The history may be gone before what an attempt said is."""
    item = uuid4()
    keep_reports(committed_db, [Report(item, 7, progress=1.0, doing="done", lines=[Line("kept")])])
    [attempt] = program("olga").get(f"/jobs/{item}/attempts").json["items"]
    assert (attempt["lease_number"], attempt["outcome"], attempt["lines"][0]["text"]) == (7, None, "kept")
