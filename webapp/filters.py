"""How values read on screens: times, people, numbers, badges, variables. The only place that words them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask, current_app, g, request
from markupsafe import Markup, escape
from sqlalchemy import text

from engine.config import Settings
from engine.core.values import Variable
from engine.ids import new_id
from webapp.auth.identity import identity, is_operator
from webapp.db import reader

THEME_COOKIE = "baton_theme"
THEMES = ("system", "light", "dark")
MINUTE, HOUR, DAY = 60, 3600, 86400
PRIORITIES = ((90, "urgent", "Urgent", "urgent"), (60, "high", "High", "chup"), (40, "", "Normal", "minus"), (0, "", "Low", "down"))
BADGES = {  # status -> kind of badge; every status of engine.core.lifecycle, tested
    "open": "",
    "claimed": "accent",
    "running": "accent",
    "available": "",
    "leased": "accent",
    "completed": "ok",
    "failed": "danger",
    "cancelled": "",
    "skipped": "",
    "waiting": "",
    "joining": "",
    "listening": "",
    "active": "ok",
    "suspended": "warn",
    "suspending": "warn",
    "cancelling": "warn",
    "deleting": "warn",
}


def init_app(app: Flask) -> None:
    app.jinja_env.filters.update(
        ago=ago,
        due=due,
        age=age,
        exact=exact,
        iso=iso,
        initials=initials,
        number=number,
        shown=shown,
        priority=priority,
        badge_kind=badge_kind,
        plain_time=plain_time,
        to_the_second=to_the_second,
        ago_words=ago_words,
    )
    app.jinja_env.globals.update(new_request_id=lambda: str(new_id()), identity=identity, is_operator=is_operator, icon=icon, now=now)
    app.context_processor(_whose_page)


def _whose_page() -> dict[str, Any]:
    """`me` and `theme` in every template. A guest's theme comes from the cookie that their last choice left."""
    who = identity()
    if who is not None:
        return {"me": who.actor, "theme": who.theme}
    kept = request.cookies.get(THEME_COOKIE, "")
    return {"me": None, "theme": kept if kept in THEMES else "system"}


def now() -> datetime:
    """The database's clock, read once a request: what the page calls "ago" agrees with what commands wrote."""
    who = identity()
    if who is not None:
        return who.now
    if "now" not in g:
        g.now = reader().execute(text("SELECT baton_now()")).scalar_one()
    return g.now  # type: ignore[no-any-return]  # flask.g is untyped


def zone() -> ZoneInfo:
    settings: Settings = current_app.config["BATON"]
    return ZoneInfo(settings.time_zone)


# ---- times


def iso(at: datetime) -> str:
    return at.astimezone(zone()).isoformat(timespec="seconds")


def exact(at: datetime) -> str:
    """Mon 30 Nov 2026, 14:26:09 CET"""
    local = at.astimezone(zone())
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M:%S %Z}"


def plain_time(at: datetime) -> str:
    local = at.astimezone(zone())
    return f"{local.day} {local:%b %Y, %H:%M}"


def to_the_second(at: datetime) -> str:
    """14:26:09"""
    return f"{at.astimezone(zone()):%H:%M:%S}"


def age(at: datetime, *, since: datetime | None = None) -> str:
    """How long ago, short: "4 min", "5 h", "3 d"."""
    return _span((since or now()) - at)


def ago(at: datetime) -> Markup:
    """A <time> in words: "2 seconds ago"; the script keeps it true while the page stands."""
    return _time(at, ago_words(at), live="ago")


def ago_words(at: datetime) -> str:
    return _ago_words(max((now() - at).total_seconds(), 0), at)


def due(at: datetime) -> Markup:
    """A <time> of a due date: "3 h overdue" in red, "in 1 h" in amber below two hours, then the day."""
    left = (at - now()).total_seconds()
    if left < 0:
        return _time(at, f"{_span(timedelta(seconds=-left))} overdue", kind="late", live="due")
    if left < 2 * HOUR:
        return _time(at, f"in {_span(timedelta(seconds=left))}", kind="soon", live="due")
    return _time(at, _day_words(at, left))


def _time(at: datetime, words: str, *, kind: str = "", live: str = "") -> Markup:
    css = Markup(' class="{}"').format(kind) if kind else ""
    mark = Markup(' data-live="{}"').format(live) if live else ""
    return Markup('<time{}{} datetime="{}" title="{}">{}</time>').format(css, mark, iso(at), exact(at), words)


def _ago_words(seconds: float, at: datetime) -> str:
    whole = int(seconds)
    if whole < 1:
        return "just now"
    if whole < MINUTE:
        return f"{whole} second{'' if whole == 1 else 's'} ago"
    if whole < HOUR:
        return f"{whole // MINUTE} minute{'' if whole < 2 * MINUTE else 's'} ago"
    if whole < DAY:
        return f"{whole // HOUR} hour{'' if whole < 2 * HOUR else 's'} ago"
    if whole < 7 * DAY:
        return f"{whole // DAY} day{'' if whole < 2 * DAY else 's'} ago"
    local = at.astimezone(zone())
    return f"on {local.day} {local:%b %Y}"


def _day_words(at: datetime, left: float) -> str:
    local, today = at.astimezone(zone()), now().astimezone(zone()).date()
    days = (local.date() - today).days
    if days == 0:
        return f"today, {local:%H:%M}" if left > 6 * HOUR else f"in {_span(timedelta(seconds=left))}"
    if days == 1:
        return "tomorrow"
    if days < 7:
        return f"{local:%a}"
    return f"{local.day} {local:%b}" if local.year == today.year else f"{local.day} {local:%b %Y}"


def _span(length: timedelta) -> str:
    seconds = max(int(length.total_seconds()), 0)
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < 2 * DAY:
        return f"{seconds // HOUR} h"
    return f"{seconds // DAY} d"


# ---- people, numbers, states


def initials(name: str) -> str:
    """Ada Moreno -> AM."""
    words = [word for word in name.replace(".", " ").split() if word]
    return ("".join(word[0] for word in (words[:1] + words[-1:] if len(words) > 1 else words)) or "?").upper()


def number(value: float, *, cap: int | None = None) -> str:
    """1284 -> 1,284; a capped count that reached its cap -> 999+."""
    return f"{cap:,}+" if cap is not None and value > cap else f"{value:,}"


def priority(level: int) -> tuple[str, str, str]:
    """(css kind, word, icon) of a task's priority, 0 to 100."""
    return next((kind, word, sign) for least, kind, word, sign in PRIORITIES if level >= least)


def badge_kind(status: str) -> str:
    return BADGES[status]


def icon(name: str, css: str = "") -> Markup:
    asset: Callable[[str], str] = current_app.jinja_env.globals["asset"]  # type: ignore[assignment]  # put there by webapp.assets
    css = f"i {css}".strip()
    return Markup('<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>').format(css, asset("icons.svg"), name)


# ---- variables


def shown(value: Any) -> Markup:
    """A variable as people read it. Text only: markup in a value is shown, never interpreted (S66)."""
    plain = value.value if isinstance(value, Variable) else value
    match plain:
        case None:
            return Markup('<span class="muted">empty</span>')
        case bool():
            return Markup("Yes") if plain else Markup("No")
        case int() | Decimal():
            return escape(f"{plain:,}")
        case float():
            return escape(f"{plain:,.2f}" if plain == round(plain, 2) else f"{plain:,}")
        case dict() | list():
            return Markup("<pre>{}</pre>").format(json.dumps(plain, ensure_ascii=False, indent=1))
        case date() | datetime():
            return escape(str(plain))
    kind = value.type if isinstance(value, Variable) else "string"
    return _shown_text(str(plain), kind)


def _shown_text(value: str, kind: str) -> Markup:
    if kind == "date":
        day = date.fromisoformat(value)
        return Markup('<time datetime="{}">{} {}</time>').format(value, day.day, f"{day:%b %Y}")
    if kind == "datetime":
        at = datetime.fromisoformat(value)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        try:
            return _time(at, plain_time(at))
        except OverflowError:  # at either end of the calendar, where the zone of the pages has no such time
            return escape(value)
    return escape(value)
