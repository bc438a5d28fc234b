"""Jobs and external tasks by status, kind and handler."""

from __future__ import annotations

from typing import Any

from flask import Response, render_template

from engine.core.lifecycle import WORK
from engine.queries.due import lanes
from engine.queries.rows import reading
from engine.queries.work import JOB_KINDS, counts_by_status, work_items
from webapp.auth.identity import current_actor
from webapp.db import reader
from webapp.fragments import tagged
from webapp.operations.blueprint import blueprint
from webapp.operations.listing import Listing, after, asked

STATUSES = tuple(status for status in WORK if status not in ("completed", "cancelled"))
"""Finished items are deleted by the command that ends them; their past is in the history."""


@blueprint.get("/jobs")
def jobs() -> str:
    return render_template("operations/jobs.html", **_context(), here="jobs")


@blueprint.get("/jobs/list")
def jobs_list() -> Response:
    context = _context()
    shown = [
        (row.id, row.status, row.lease_number, row.attempts, row.available_at, row.wait_seconds > 0) for row in context["list"].page.items
    ]
    return tagged([shown, context["list"].asked, context["counts"]], lambda: render_template("operations/_jobs_list.html", **context))


def _context() -> dict[str, Any]:
    wanted = asked("status", "kind", "topic", "due")
    tenant = current_actor().tenant_id
    filters: dict[str, Any] = {**wanted, "due": bool(wanted.get("due"))}
    with reading(reader()) as conn:
        page = work_items(conn, tenant_id=tenant, cursor=after(), **filters)
        counts = counts_by_status(conn, tenant_id=tenant)
        due = [lane for lane in lanes(conn, tenant_id=tenant) if lane.work != "delivery"]
    return {
        "list": Listing("operations.jobs", "operations.jobs_list", wanted, page, after()),
        "counts": counts,
        "lanes": due,
        "statuses": STATUSES,
        "kinds": (*JOB_KINDS, "external"),
    }
