"""Lists: which filters, sort orders and page were asked for. A filter that is not served is refused by its name, never ignored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from engine.queries.rest.listing import MOST, OPERATORS, Filter, Listing, TooMany, Wanted
from webapp.engine_rest.blueprint import told
from webapp.engine_rest.reading import Sent, ids_of, uuid_of
from webapp.engine_rest.values import Wrong, read_value

PAGE = frozenset({"firstResult", "maxResults", "sortBy", "sortOrder", "sorting"})
HARMLESS = frozenset({"variableNamesIgnoreCase", "variableValuesIgnoreCase"})
"""They change a list only when they are true; then they are refused like any other."""
NOBODY = UUID(int=0)
"""An id that is none of ours names nothing."""


@contextmanager
def listed() -> Iterator[None]:
    """A list that is too long without a page is refused."""
    try:
        yield
    except TooMany as found:
        raise told(400, str(found)) from found


def wanted(sent: Sent, listing: Listing, *, page: Sent | None = None, aside: frozenset[str] = frozenset()) -> Wanted:
    """What a query string or a body asks of this list. `page`: the query string of a POST, which has nothing but the page.
    `aside`: keys that the caller reads itself.
    """
    given = {}
    for key in sent.values:
        if not sent.has(key) or key in PAGE or key in aside:
            continue
        found = listing.filters.get(key)
        if found is None:
            if key in HARMLESS and not sent.truth(key):
                continue
            raise told(400, f"{key} is not supported by this list; supported are {', '.join(sorted(listing.filters))}")
        if found.kind != "truth" or sent.truth(key):
            given[key] = _read(sent, key, found)
    paged = page if page is not None and (page.has("firstResult") or page.has("maxResults")) else sent
    first = paged.whole("firstResult", 0, least=0)
    most = paged.whole("maxResults", least=0, most=MOST)
    return Wanted(given, tuple(_sort(sent, listing)), first or 0, most)


def _read(sent: Sent, key: str, found: Filter) -> Any:
    match found.kind:
        case "text":
            return sent.text(key)
        case "names":
            return sent.names(key)
        case "id":
            return uuid_of(sent.text(key)) or NOBODY
        case "ids":
            return ids_of(sent.names(key))
        case "whole":
            return sent.whole(key)
        case "moment":
            return sent.moment(key)
        case "truth":
            return True
        case "variables":
            return json.dumps(list(_variables(sent, key)))
    raise ValueError(f"filter {key}: expected a kind, found {found.kind!r}")


def _variables(sent: Sent, key: str) -> Iterator[dict[str, Any]]:
    """`name_operator_value,…` in a query string, whose values are texts; `[{name, operator, value}]` in a body."""
    value = sent.values[key]
    if isinstance(value, str):
        for part in filter(None, value.split(",")):
            name, operator, text = _split(key, part)
            yield {"name": name, "operator": operator, "value": text}
        return
    for each in sent.objects(key):
        operator = each.need("operator")
        if operator not in OPERATORS:
            raise told(400, f"{key}: expected an operator of {', '.join(OPERATORS)}, found {operator!r:.40}")
        try:
            yield {"name": each.need("name"), "operator": operator, "value": read_value({"value": each.values.get("value")}).value}
        except Wrong as wrong:
            raise told(400, f"{key}: {wrong}") from wrong


def _split(key: str, part: str) -> tuple[str, str, str]:
    """The first operator in the middle divides: names may have underscores too."""
    pieces = part.split("_")
    for place in range(1, len(pieces) - 1):
        if pieces[place] in OPERATORS:
            return "_".join(pieces[:place]), pieces[place], "_".join(pieces[place + 1 :])
    raise told(400, f"{key}: expected NAME_OPERATOR_VALUE with an operator of {', '.join(OPERATORS)}, found {part[:60]!r}")


def _sort(sent: Sent, listing: Listing) -> Iterator[tuple[str, bool]]:
    asked = sent.objects("sorting")
    if sent.has("sortBy") or sent.has("sortOrder"):
        asked = [sent, *asked]
    for each in asked:
        by, order = each.need("sortBy"), each.text("sortOrder", "asc")
        if by not in listing.sorts:
            raise told(400, f"sortBy: expected one of {', '.join(sorted(listing.sorts))}, found {by!r:.60}")
        if order not in ("asc", "desc"):
            raise told(400, f"sortOrder: expected asc or desc, found {order!r:.40}")
        yield by, order == "desc"
