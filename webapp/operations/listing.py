"""What every list page of operations shares: its address for each other choice, its pager, its fragment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from flask import abort, request, url_for

from engine.queries.rows import Page

LONGEST = 200


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as templates want it: what was asked, what was found, the address of every other choice."""

    endpoint: str
    fragment_endpoint: str
    asked: Mapping[str, str]  # only what narrows it
    page: Page[Any]
    after: str | None = None
    extra: Mapping[str, str] | None = None  # stays in the fragment's address, not in the pager's

    def url(self, **changes: str | None) -> str:
        """The list with other choices, on its first page; None takes one away."""
        query = {name: value for name, value in {**self.asked, **changes}.items() if value}
        return url_for(self.endpoint) + (f"?{urlencode(query)}" if query else "")

    @property
    def next_url(self) -> str | None:
        return self.url(after=self.page.next_cursor) if self.page.next_cursor else None

    @property
    def first_url(self) -> str | None:
        return self.url() if self.after else None

    @property
    def here(self) -> str:
        return self.url(after=self.after)

    @property
    def fragment_url(self) -> str:
        query = {name: value for name, value in {**self.asked, "after": self.after, **(self.extra or {})}.items() if value}
        return url_for(self.fragment_endpoint) + (f"?{urlencode(query)}" if query else "")

    @property
    def narrowed(self) -> bool:
        """Whether an empty list means "nothing matches"."""
        return bool(self.asked) or self.after is not None

    def get(self, name: str) -> str:
        return self.asked.get(name, "")


def asked(*names: str) -> dict[str, str]:
    """The named choices of the query string, trimmed and bounded; what is empty is left out."""
    found = {name: request.args.get(name, "").replace("\0", "").strip()[:LONGEST] for name in names}
    return {name: value for name, value in found.items() if value}


def after() -> str | None:
    return request.args.get("after") or None


def id_asked(name: str) -> UUID | None:
    """The id that a choice of the query string names; 404 for what is no id."""
    text = request.args.get(name)
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        abort(404)
