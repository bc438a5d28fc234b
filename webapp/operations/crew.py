"""Workers, the outbox, messages, and sign-ins that failed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, render_template, request, url_for

from engine.commands.deliveries import replay_delivery, skip_delivery
from engine.commands.outcome import Rejected
from engine.commands.retry import retry_item
from engine.core.lifecycle import DELIVERY
from engine.db.workers import SILENT_AFTER_SECONDS
from engine.queries.crew import (
    SHARED_MINUTES,
    deliveries,
    expired_messages,
    external_workers,
    failed_logins,
    open_subscriptions,
    outbox_counts,
    stored_messages,
)
from engine.queries.crew import workers as crew_of
from engine.queries.destinations import DestinationRow, destinations
from engine.queries.due import lanes
from engine.queries.near_misses import Lost, near_receivers
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.listing import Listing, after, asked, id_asked

DELIVERY_ATTEMPTS = 3


@blueprint.get("/workers")
def workers() -> str:
    return render_template("operations/workers.html", **_workers(), here="workers")


@blueprint.get("/workers/list")
def workers_list() -> Response:
    context = _workers()
    shown = [
        (row.id, row.busy, row.slots, row.leases, row.draining, row.stopped_at, row.longest_gap, row.age_seconds > SILENT_AFTER_SECONDS)
        for row in context["crew"]
    ]
    outside = [(row.worker_id, row.addresses, row.present, row.last_seen_at, row.leases) for row in context["outside"]]
    return tagged([shown, outside], lambda: render_template("operations/_workers_list.html", **context))


def _workers() -> dict[str, Any]:
    stopped = bool(request.args.get("stopped"))
    with reading(reader()) as conn:
        crew = crew_of(conn, stopped=stopped)
        outside = external_workers(conn, tenant_id=current_actor().tenant_id)
    return {"crew": crew, "outside": outside, "stopped": stopped, "silent_after": SILENT_AFTER_SECONDS, "shared_minutes": SHARED_MINUTES}


@blueprint.get("/outbox")
def outbox() -> str:
    return render_template("operations/outbox.html", **_outbox(), here="outbox")


@blueprint.get("/outbox/list")
def outbox_list() -> Response:
    context = _outbox()
    shown = [(row.id, row.status, row.attempts, row.available_at, row.last_error, row.ended_at) for row in context["list"].page.items]
    return tagged(
        [shown, context["list"].asked, context["counts"], context["chosen"], context["again"], _places(context["places"])],
        lambda: render_template("operations/_outbox_list.html", **context),
    )


def _places(found: list[DestinationRow]) -> list[Any]:
    """What the entity tag is made of: not the seconds of a lag, which would be others at each look."""
    return [(row.name, row.changed_at, row.paused_at, row.due, row.in_line, row.sending, int(row.lag_seconds or 0) // 10) for row in found]


@blueprint.post("/outbox/<uuid:item_id>/retry")
def retry_one_delivery(item_id: UUID) -> Response:
    outcome = retry_item(
        command_connection(), "delivery", item_id, actor=current_actor(), attempts=DELIVERY_ATTEMPTS, request_id=actions.request_id()
    )
    return _delivered(item_id, outcome, said="It is sent again, under the same delivery id.", what="send it again")


@blueprint.post("/outbox/<uuid:item_id>/skip")
def skip_one_delivery(item_id: UUID) -> Response:
    outcome = skip_delivery(
        command_connection(), item_id, actor=current_actor(), reason=request.form.get("reason", "").strip()[:500],
        request_id=actions.request_id(),
    )  # fmt: skip
    return _delivered(item_id, outcome, said="It is skipped and will not be sent.", what="skip it")


@blueprint.post("/outbox/<uuid:item_id>/replay")
def replay_one_delivery(item_id: UUID) -> Response:
    outcome = replay_delivery(
        command_connection(), item_id, actor=current_actor(), reason=request.form.get("reason", "").strip()[:500],
        request_id=actions.request_id(),
    )  # fmt: skip
    return _delivered(item_id, outcome, said="It is sent again, as a new delivery with an id of its own.", what="send it again")


def _delivered(item_id: UUID, outcome: Any, *, said: str, what: str) -> Response:
    back = actions.back_to(url_for("operations.outbox"))
    with reading(reader()) as conn:
        found = deliveries(conn, tenant_id=current_actor().tenant_id, item_id=item_id).items
    shared = {"row": found[0] if found else None, "list": None, "skipping": False, "sending_again": False}
    fragment = "operations/_outbox_row.html" if found else None
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=what, fragment=fragment, **shared)
    return actions.done(said, back=back, fragment=fragment, **shared)


def _outbox() -> dict[str, Any]:
    wanted = asked("q", "status", "to", "due")
    chosen, again = id_asked("skip"), id_asked("again")
    tenant = current_actor().tenant_id
    filters: dict[str, Any] = {**wanted, "due": bool(wanted.get("due"))}
    open_forms = {"skip": str(chosen or ""), "again": str(again or "")}
    with reading(reader()) as conn:
        page = deliveries(conn, tenant_id=tenant, cursor=after(), **filters)
        counts = outbox_counts(conn, tenant_id=tenant)
        places = destinations(conn, tenant_id=tenant)
        lag = max((lane.oldest_seconds for lane in lanes(conn, tenant_id=tenant) if lane.work == "delivery"), default=None)
    return {
        "list": Listing("operations.outbox", "operations.outbox_list", wanted, page, after(), open_forms),
        "chosen": chosen,
        "again": again,
        "places": places,
        "counts": counts,
        "lag": lag,
        "statuses": tuple(DELIVERY),
    }


@blueprint.get("/messages")
def messages() -> str:
    wanted = asked("q")
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        waiting = open_subscriptions(conn, tenant_id=tenant, cursor=after(), q=wanted.get("q", ""))
        stored = stored_messages(conn, tenant_id=tenant, q=wanted.get("q", "")).items
        expired = expired_messages(conn, tenant_id=tenant, q=wanted.get("q", "")).items
        lost = [
            Lost(row.name, row.correlation_key, row.left_seconds > 0, None if row.left_seconds > 0 else row.expires_at) for row in stored
        ]
        lost += [Lost(row.name, row.correlation_key, expired_at=row.expires_at) for row in expired]
        found = near_receivers(conn, lost, tenant_id=tenant)
    near = dict(zip([*(row.id for row in stored), *(row.id for row in expired)], found, strict=True))
    listing = Listing("operations.messages", "operations.messages", wanted, waiting, after())
    return render_template("operations/messages.html", list=listing, stored=stored, expired=expired, near=near, here="messages")


@blueprint.get("/sign-ins")
def sign_ins() -> str:
    """Wrong passwords of the last day, by name and address (S71)."""
    with reading(reader()) as conn:
        found = failed_logins(conn, tenant_id=current_actor().tenant_id)
    return render_template("operations/sign_ins.html", tries=found, here="sign_ins")
