"""Leases: who holds what, until when; take one away. The seconds count down in the page; the fragment follows hints."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, render_template, request, url_for

from engine.commands.leases import release_by_operator
from engine.commands.outcome import Rejected
from engine.queries.crew import workers
from engine.queries.instance import item_history
from engine.queries.rows import reading
from engine.queries.work import LeaseRow, late_completions, lease_counts
from engine.queries.work import leases as leased
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.listing import Listing, after, asked, id_asked
from webapp.operations.words import element_name
from webapp.security import wants_fragment

REASON = 500


@blueprint.get("/leases")
def leases() -> str:
    return render_template("operations/leases.html", **_context(), here="leases")


@blueprint.get("/leases/list")
def leases_list() -> Response:
    context = _context()
    return tagged(_shown(context), lambda: render_template("operations/_leases_list.html", **context))


@blueprint.post("/leases/<any(job, external_task, delivery):kind>/<uuid:item_id>/release")
def release(kind: str, item_id: UUID) -> Response:
    """The lease ends now, its attempt stays spent; whoever holds it is refused when it answers."""
    reason = request.form.get("reason", "").strip()[:REASON]
    name = _name(item_id)
    outcome = release_by_operator(
        command_connection(), kind, item_id, actor=current_actor(), reason=reason, request_id=actions.request_id()
    )
    back = actions.back_to(url_for("operations.leases"))
    fragment = "operations/_leases_list.html" if wants_fragment() else None
    context = _context() if fragment else {}
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=f"release {name}", fragment=fragment, **context)
    said = f"{name} was released. The next free worker takes it, if it has an attempt left."
    return actions.done(said, back=back, fragment=fragment, **context)


def _context() -> dict[str, Any]:
    wanted = asked("q", "work", "owner", "expired")
    tenant = current_actor().tenant_id
    chosen = id_asked("release")
    looked_at = id_asked("item")
    filters: dict[str, Any] = {**wanted, "expired": bool(wanted.get("expired"))}
    with reading(reader()) as conn:
        page = leased(conn, tenant_id=tenant, cursor=after(), **filters)
        counts = lease_counts(conn, tenant_id=tenant)
        crew = workers(conn)
        late = late_completions(conn, tenant_id=tenant).items
        past = item_history(conn, looked_at, tenant_id=tenant) if looked_at else []
    extra = {"release": str(chosen or ""), "item": str(looked_at or "")}
    return {
        "list": Listing("operations.leases", "operations.leases_list", wanted, page, after(), extra),
        "counts": counts,
        "crew": crew,
        "late": late,
        "chosen": chosen,
        "looked_at": looked_at,
        "past": past,
    }


def _shown(context: dict[str, Any]) -> list[Any]:
    """What the entity tag is made of: which leases, under which number, until when. Not the seconds, which the page counts."""
    rows: tuple[LeaseRow, ...] = context["list"].page.items
    held = [(row.id, row.number, row.expires_at, row.attempts, row.left_seconds < 0, (row.heartbeat_age_seconds or 0) > 30) for row in rows]
    return [held, context["list"].asked, context["chosen"], context["looked_at"], len(context["past"]), context["late"], context["counts"]]


def _name(item_id: UUID) -> str:
    with reading(reader()) as conn:
        found = leased(conn, tenant_id=current_actor().tenant_id, item_id=item_id).items
    if not found:
        return "the item"
    name = element_name(found[0].definition_id, found[0].element_id) or found[0].topic
    return f"{name} of {found[0].business_key}" if found[0].business_key else name
