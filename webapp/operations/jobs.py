"""Jobs and external tasks by status, kind and handler."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, abort, render_template

from engine.core.lifecycle import WORK
from engine.queries.attempts import attempts
from engine.queries.due import lanes
from engine.queries.instance import item_history
from engine.queries.rows import reading
from engine.queries.work import JOB_KINDS, counts_by_status, leases, work_items
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


@blueprint.get("/jobs/<uuid:item_id>")
def job(item_id: UUID) -> str:
    """One job or external task: what it waits for or does, its attempts with what they said, its past. Also when it has ended."""
    return render_template("operations/job.html", **_one(item_id), here="jobs")


@blueprint.get("/jobs/<uuid:item_id>/part")
def job_part(item_id: UUID) -> Response:
    context = _one(item_id)
    return tagged((context["item"], context["tries"], context["past"]), lambda: render_template("operations/_job.html", **context))


def _one(item_id: UUID) -> dict[str, Any]:
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        found = work_items(conn, tenant_id=tenant, item_id=item_id).items
        lease = leases(conn, tenant_id=tenant, item_id=item_id).items
        past = item_history(conn, item_id, tenant_id=tenant)
        tries = attempts(conn, item_id, tenant_id=tenant)
    if not found and not (past and past[0].kind.startswith(("job_", "external_task_", "incident_", "timer_"))):
        abort(404)
    return {"item": found[0] if found else None, "lease": lease[0] if lease else None, "item_id": item_id, "past": past, "tries": tries}


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
