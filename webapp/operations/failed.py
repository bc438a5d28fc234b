"""Failed work: grouped by error, retried one by one or all that are ticked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Response, abort, make_response, render_template, request, url_for

from engine.commands.outcome import ItemRetried, Rejected
from engine.commands.retry import retry_item
from engine.queries.instance import item_history
from engine.queries.processes import definitions
from engine.queries.rows import reading
from engine.queries.work import FailedItem, failed_items
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.operations import actions
from webapp.operations.blueprint import blueprint
from webapp.operations.listing import Listing, after, asked
from webapp.operations.words import element_name, first_line

KINDS = ("job", "external_task", "delivery", "token")
ATTEMPTS = 3
LINE = 240  # characters of an error that the list shows


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Items that failed in the same way at the same element. `title`: what comes before the first colon of the error."""

    title: str
    rest: str
    element_id: str | None
    definition_id: UUID | None
    definition_name: str | None
    items: tuple[FailedItem, ...]

    @property
    def newest(self) -> FailedItem:
        return self.items[0]

    @property
    def oldest(self) -> FailedItem:
        return self.items[-1]


def grouped(items: Iterable[FailedItem]) -> list[ErrorGroup]:
    """The most frequent first; within a group the newest first."""
    found: dict[tuple[Any, ...], list[FailedItem]] = {}
    for item in items:
        title, rest = split_error(item.message)
        found.setdefault((title, rest, item.element_id, item.definition_id), []).append(item)
    groups = [
        ErrorGroup(title, rest, element, definition, members[0].definition_name, tuple(members))
        for (title, rest, element, definition), members in found.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.items), group.title))


def shortened(line: str) -> str:
    """A long line up to the end of a word; the page of the item has all of it."""
    return line if len(line) <= LINE else line[:LINE].rsplit(" ", 1)[0] + " …"


def split_error(message: str) -> tuple[str, str]:
    """("LedgerTimeout", "no answer from ledger.example"): an exception's name, or the whole line."""
    line = shortened(first_line(message))
    title, colon, rest = line.partition(": ")
    return (title, rest) if colon and " " not in title else (line, "")


@blueprint.get("/failed")
def failed() -> str:
    return render_template("operations/failed.html", **_context(), here="failed")


@blueprint.get("/failed/list")
def failed_list() -> Response:
    context = _context()
    return tagged((context["list"].page, context["list"].asked), lambda: render_template("operations/_failed_list.html", **context))


@blueprint.get("/failed/<any(job, external_task, delivery, token):kind>/<uuid:item_id>")
def failed_item(kind: str, item_id: UUID) -> str:
    """One item: its error in full, its attempts, its past."""
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        found = failed_items(conn, tenant_id=tenant, work=kind, item_id=item_id).items
        past = item_history(conn, item_id, tenant_id=tenant)
    if not found and not past:
        abort(404)
    item = found[0] if found else None
    return render_template(
        "operations/failed_item.html", item=item, kind=kind, item_id=item_id, past=past, attempts=ATTEMPTS, here="failed"
    )


@blueprint.post("/failed/<any(job, external_task, delivery, token):kind>/<uuid:item_id>/retry")
def retry(kind: str, item_id: UUID) -> Response:
    """New attempts for what used them all up. The second of two operators gets 409 with the first one's name."""
    attempts = _attempts()
    row = _row(kind, item_id)
    outcome = retry_item(command_connection(), kind, item_id, actor=current_actor(), attempts=attempts, request_id=actions.request_id())
    back = actions.back_to(url_for("operations.failed"))
    shared: dict[str, Any] = {"item": row and row.item, "kind": kind, "item_id": item_id}
    fragment = "operations/_failed_row.html" if row else "operations/_failed_gone.html"
    if isinstance(outcome, Rejected):
        return actions.refused(outcome, back=back, what=f"retry {row.name}" if row else "retry it", fragment=fragment, **shared)
    plural = "" if attempts == 1 else "s"
    said = f"{row.name if row else 'It'} runs again, with {attempts} more attempt{plural}."
    return actions.done(said, back=back, fragment=fragment, **shared)


@blueprint.post("/failed/retry")
def retry_many() -> Response:
    """Everything that is ticked, one command an item; the answer says of each what came of it."""
    attempts = _attempts()
    results = []
    for place, choice in enumerate(request.form.getlist("item")[:200]):
        kind, item_id = _choice(choice)
        row = _row(kind, item_id)
        press = actions.request_id()
        outcome = retry_item(
            command_connection(), kind, item_id, actor=current_actor(), attempts=attempts,
            request_id=f"{press}.{place}"[:255] if press else None,
        )  # fmt: skip
        results.append((row, _told(outcome)))
    if not results:
        abort(422)
    page = render_template(
        "operations/retried.html", results=results, back=actions.back_to(url_for("operations.failed")), attempts=attempts, here="failed"
    )
    return make_response(page, 200 if any(refusal is None for _, refusal in results) else 409)


def _told(outcome: ItemRetried | Rejected) -> actions.Told | None:
    """None for what was done. In a list of results even 404 is a line: of what was ticked, not of what may be seen."""
    if not isinstance(outcome, Rejected):
        return None
    if outcome.status == 404:
        return actions.Told("not_found", 404, "There is no such item any more.", "", None, "", ())
    return actions.tell(outcome)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a row needs of an item even after it is no longer failed."""

    item: FailedItem
    name: str


def _row(kind: str, item_id: UUID) -> Shown | None:
    with reading(reader()) as conn:
        found = failed_items(conn, tenant_id=current_actor().tenant_id, work=kind, item_id=item_id).items
    if not found:
        return None
    item = found[0]
    name = element_name(item.definition_id, item.element_id) or item.topic
    return Shown(item, f"{name} of {item.business_key}" if item.business_key else name)


def _context() -> dict[str, Any]:
    wanted = asked("q", "key", "work")
    q, key, work = (wanted.get(name, "") for name in ("q", "key", "work"))
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        page = failed_items(conn, tenant_id=tenant, q=q, key=key, work=work, cursor=after())
        processes = definitions(conn, tenant_id=tenant)
    return {
        "list": Listing("operations.failed", "operations.failed_list", wanted, page, after()),
        "groups": grouped(page.items),
        "processes": processes,
        "attempts": ATTEMPTS,
    }


def _attempts() -> int:
    given = request.form.get("attempts", str(ATTEMPTS))
    if not given.isascii() or not given.isdigit() or len(given) > 3 or not 1 <= int(given) <= 100:
        abort(422)
    return int(given)


def _choice(choice: str) -> tuple[str, UUID]:
    kind, _, id = choice.partition(":")
    try:
        item_id = UUID(id)
    except ValueError:
        abort(422)
    if kind not in KINDS:
        abort(422)
    return kind, item_id
