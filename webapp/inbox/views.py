"""The inbox: the list, its fragment, the numbers beside the views, and Take next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Flask, abort, current_app, g, make_response, redirect, render_template, request, url_for
from flask.blueprints import BlueprintSetupState

from engine.commands.outcome import Claimed
from engine.commands.tasks import take_next
from engine.config import Settings
from engine.queries.inbox import (
    ASSIGNEES,
    CAP,
    DUES,
    SORTS,
    VIEWS,
    InboxCounts,
    InboxFilter,
    InboxPage,
    inbox_counts,
    inbox_page,
    process_choices,
)
from engine.queries.rows import BadCursor, reading
from webapp.auth.identity import current_actor, identity, is_operator
from webapp.db import command_connection, reader
from webapp.fragments import tagged
from webapp.navigation import operations_nav
from webapp.security import local_path

blueprint = Blueprint("inbox", __name__)

TITLES = {
    "mine": "My tasks",
    "groups": "My groups",
    "today": "Due today",
    "overdue": "Overdue",
    "all": "All I may see",
    "done": "Completed by me",
}
ICONS = {"mine": "user", "groups": "users", "today": "calendar", "overdue": "clock", "all": "list", "done": "done"}
FALLS = frozenset({"priority", "age", "ended"})  # columns whose first press sorts downwards


@dataclass(frozen=True, slots=True)
class TaskList:
    """A list as templates want it: what was asked, what was found, and the address of every other choice."""

    wanted: InboxFilter
    page: InboxPage
    title: str

    @property
    def view(self) -> str:
        return self.wanted.view

    @property
    def sort(self) -> str:
        return self.wanted.sort

    @property
    def descending(self) -> bool:
        return self.wanted.descending

    @property
    def url(self) -> str:
        return inbox_url(self.wanted)

    @property
    def fragment_url(self) -> str:
        return url_for("inbox.fragment") + self.url.removeprefix(url_for("inbox.index"))

    def sort_url(self, column: str) -> str:
        """Pressing the sorted column turns it around; another begins in its own direction, on the first page."""
        down = not self.descending if column == self.sort else column in FALLS
        return inbox_url(replace(self.wanted, sort=column, descending=down, after=None, before=None))

    def page_url(self, *, after: str | None = None, before: str | None = None) -> str:
        return inbox_url(replace(self.wanted, after=after, before=before))

    def without(self, name: str) -> str:
        """The same list with one filter taken away."""
        plain: dict[str, Any] = {"after": None, "before": None, name: getattr(InboxFilter(), name)}
        return inbox_url(replace(self.wanted, **plain))

    @property
    def bare_url(self) -> str:
        return inbox_url(InboxFilter(view=self.view))


@blueprint.get("/")
def home() -> Any:
    return redirect(url_for("inbox.index"))


@blueprint.get("/inbox")
def index() -> Any:
    return render_template("inbox/index.html", **_context())


@blueprint.get("/inbox/list")
def fragment() -> Any:
    """The list alone; an open page fetches it again when something changed."""
    context = _context()
    found: TaskList = context["list"]
    return tagged((found.wanted, found.page, current_actor()), lambda: render_template("inbox/_list.html", **context))


@blueprint.get("/inbox/views")
def views() -> Any:
    """The views with their numbers, as they stand in the navigation."""
    here = request.args.get("here", "")
    shown = (navigation_counts(), here if here in VIEWS else "")
    return tagged(shown, lambda: render_template("inbox/_views.html", here=shown[1]))


@blueprint.post("/inbox/next")
def take() -> Any:
    """The best free task of my groups becomes mine, and opens."""
    back = local_path(request.form.get("back"), url_for("inbox.index"))
    outcome = take_next(command_connection(), actor=current_actor(), request_id=request.form.get("request_id") or None)
    if isinstance(outcome, Claimed):
        return redirect(url_for("tasks.show", task_id=outcome.task_id, back=back), code=303)
    return make_response(render_template("inbox/nothing_free.html", back=back, here="groups"), outcome.status)


# ---- what pages and fragments share


def _context() -> dict[str, Any]:
    wanted = _wanted(request.args)
    actor = current_actor()
    with reading(reader()) as conn:
        try:
            page = inbox_page(conn, actor, wanted)
        except BadCursor:
            abort(400)
        processes = process_choices(conn, actor)
    return {"list": TaskList(wanted, page, TITLES[wanted.view]), "processes": processes, "cap": CAP, "here": wanted.view}


def _wanted(args: Mapping[str, str]) -> InboxFilter:
    view = _one_of(args.get("view"), VIEWS, _first_view())
    sort = _one_of(args.get("sort"), tuple(SORTS), "ended" if view == "done" else "priority")
    direction = _one_of(args.get("dir"), ("asc", "desc"), "desc" if sort in FALLS else "asc")
    return InboxFilter(
        view=view,
        q=args.get("q", "").replace("\0", "").strip()[:200],
        process=args.get("process", "").replace("\0", "")[:200],
        assignee=_one_of(args.get("assignee"), ASSIGNEES, "any"),
        due=_one_of(args.get("due"), DUES, "any"),
        sort=sort,
        descending=direction == "desc",
        after=args.get("after") or None,
        before=None if args.get("after") else args.get("before") or None,
        zone=_zone(),
    )


def _first_view() -> str:
    """Where somebody begins: at their groups' tasks; an operator without groups at all of them."""
    actor = current_actor()
    return "all" if is_operator(actor) and not actor.groups else "groups"


def inbox_url(wanted: InboxFilter) -> str:
    """The address of a list: only what differs from the plain view, so that it stays short enough to share."""
    plain = InboxFilter(view=wanted.view, sort="ended" if wanted.view == "done" else "priority")
    query = {"view": wanted.view}
    query |= {name: getattr(wanted, name) for name in ("q", "process", "assignee", "due") if getattr(wanted, name) != getattr(plain, name)}
    if (wanted.sort, wanted.descending) != (plain.sort, plain.descending):
        query |= {"sort": wanted.sort, "dir": "desc" if wanted.descending else "asc"}
    query |= {name: getattr(wanted, name) for name in ("after", "before") if getattr(wanted, name)}
    return f"{url_for('inbox.index')}?{urlencode(query)}"


def list_title(url: str) -> str:
    """The name of the list behind an address that `inbox_url` made, for "back to …"."""
    return TITLES[view_of(url)]


def view_of(url: str) -> str:
    """Which view the address of a list shows."""
    return next((name for name in VIEWS if f"view={name}" in url), _first_view())


def navigation_counts() -> InboxCounts | None:
    """The numbers beside the views, read once a request; None for guests."""
    if identity() is None:
        return None
    if "inbox_counts" not in g:
        with reading(reader()) as conn:
            g.inbox_counts = inbox_counts(conn, current_actor(), zone=_zone())
    return g.inbox_counts  # type: ignore[no-any-return]  # flask.g is untyped


def _zone() -> str:
    settings: Settings = current_app.config["BATON"]
    return settings.time_zone


def _one_of(value: str | None, allowed: tuple[str, ...], default: str) -> str:
    return value if value in allowed else default


@blueprint.record_once
def _globals(state: BlueprintSetupState) -> None:
    app = state.app
    assert isinstance(app, Flask), "expected the application itself"
    app.jinja_env.globals.update(
        navigation_counts=navigation_counts,
        operations_nav=operations_nav,
        inbox_views=[(view, TITLES[view], ICONS[view]) for view in VIEWS],
        count_cap=CAP,
        list_title=list_title,
    )
