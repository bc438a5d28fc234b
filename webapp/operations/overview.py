"""The overview: what needs someone, the numbers, the last day."""

from __future__ import annotations

from typing import Any

from flask import Response, render_template
from psycopg.errors import QueryCanceled
from sqlalchemy.exc import DBAPIError

from engine.db.workers import SILENT_AFTER_SECONDS
from engine.queries.alarms import alarms, history_taken
from engine.queries.crew import workers
from engine.queries.overview import Bucket, overview, throughput
from engine.queries.processes import definitions
from engine.queries.rows import reading
from engine.queries.work import failed_items
from webapp.auth.identity import current_actor
from webapp.db import reader
from webapp.fragments import tagged
from webapp.operations.blueprint import blueprint
from webapp.operations.charts import Bars, Line, bars, line
from webapp.operations.failed import grouped

OLDEST_DUE_LIMIT = 60.0
"""Seconds after which due work that nobody took is shown as late."""


@blueprint.get("")
def index() -> str:
    return render_template("operations/overview.html", **_numbers(), **_charts(), here="overview")


@blueprint.get("/overview/numbers")
def overview_numbers() -> Response:
    context = _numbers()
    leasing = sum(1 for row in context["crew"] if row.leases)
    wrong = [(alarm.name, alarm.about, alarm.seconds and alarm.seconds // 60) for alarm in context["alarms"]]
    shown = [_without_now(context["shown"]), context["groups"], leasing, wrong, context["history"]]
    return tagged(shown, lambda: render_template("operations/_overview_numbers.html", **context))


@blueprint.get("/overview/lists")
def overview_lists() -> Response:
    context = _numbers()
    beats = [(row.id, row.busy, row.slots, row.draining, row.age_seconds > SILENT_AFTER_SECONDS) for row in context["crew"]]
    due = [(lane.work, lane.kind, lane.topic, lane.due, int(lane.oldest_seconds) // 5) for lane in context["shown"].lanes]
    return tagged([beats, due, context["processes"]], lambda: render_template("operations/_overview_lists.html", **context))


@blueprint.get("/overview/charts")
def overview_charts() -> Response:
    context = _charts()
    return tagged(list(context.values()), lambda: render_template("operations/_overview_charts.html", **context))


def _numbers() -> dict[str, Any]:
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        shown = overview(conn, tenant_id=tenant)
        failed = failed_items(conn, tenant_id=tenant, limit=200)
        crew = workers(conn)
        processes = definitions(conn, tenant_id=tenant)
        wrong, history = alarms(conn), history_taken(conn)
    return {
        "shown": shown,
        "groups": grouped(failed.items)[:3],
        "crew": crew,
        "alarms": wrong,
        "history": history,
        "processes": processes,
        "due_limit": OLDEST_DUE_LIMIT,
        "silent_after": SILENT_AFTER_SECONDS,
    }


def _charts() -> dict[str, Any]:
    """The last day in halves of an hour; None when there is more of it than can be counted in time."""
    slices: list[Bucket] | None
    try:
        with reading(reader(), seconds=2) as conn:
            slices = throughput(conn, tenant_id=current_actor().tenant_id)
    except DBAPIError as error:
        if not isinstance(error.orig, QueryCanceled):
            raise
        slices = None
    return {"done_chart": _done(slices), "failed_chart": _failed(slices)}


def _done(slices: list[Bucket] | None) -> Line | None:
    return None if slices is None else line([bucket.at for bucket in slices], [bucket.done for bucket in slices])


def _failed(slices: list[Bucket] | None) -> Bars | None:
    if slices is None:
        return None
    return bars([bucket.at for bucket in slices], [bucket.retried for bucket in slices], [bucket.exhausted for bucket in slices])


def _without_now(shown: Any) -> Any:
    """What the entity tag is made of: not the clock, and ages only by the minute, or no answer would ever be 304."""
    n = shown.numbers
    ages = [shown.oldest_due_seconds, shown.outbox_lag_seconds, n.expired_oldest_seconds]
    return [getattr(n, name) for name in n.__slots__ if name not in ("now", "expired_oldest_seconds")] + [
        shown.due,
        *(None if age is None else int(age) // 5 for age in ages),
    ]
