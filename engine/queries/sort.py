"""Keyset paging over several keys: the order, the condition that begins behind a place, and the cursor that names it.

Every key is free of nulls (a blank is a key of its own, so that blanks stand last in both directions), and the last key
is unique. `turns` says which keys the reader's choice of direction turns around.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DataError

from engine.queries.rows import BadCursor, Page, rows, unpacked

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Key:
    """One part of an order. `expression` and `type` are fixed SQL, never a reader's words."""

    name: str
    expression: str
    type: str
    turns: bool = False


def order(keys: Sequence[Key], *, descending: bool, backward: bool = False) -> str:
    """The ORDER BY of a page; `backward` reads towards the beginning."""
    return ", ".join(f"{key.expression} {'DESC' if _down(key, descending, backward) else 'ASC'}" for key in keys)


def keyset(keys: Sequence[Key], after: str | None, *, descending: bool, backward: bool = False) -> tuple[str, dict[str, Any]]:
    """The condition for what stands behind the place `after`, and its parameters; without a place, everything does."""
    if after is None:
        return "true", {}
    values = _decode(after, keys)
    condition = "false"
    for key in reversed(keys):
        at = f"CAST(:place_{key.name} AS {key.type})"
        beyond = f"{key.expression} {'<' if _down(key, descending, backward) else '>'} {at}"
        condition = f"({beyond} OR ({key.expression} = {at} AND {condition}))"
    return condition, {f"place_{name}": value for name, value in values.items()}


def cursor(keys: Sequence[Key], place: Mapping[str, Any]) -> str:
    """The place of a row as one word for an address."""
    plain = json.dumps([_text(place[key.name]) for key in keys], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def keyed_page(
    conn: Connection,
    row_type: type[T],
    sql: str,
    params: Mapping[str, Any],
    *,
    keys: Sequence[Key],
    place: Callable[[T], Mapping[str, Any]],
    after: str | None,
    limit: int,
) -> Page[T]:
    """One page of `sql`, which holds `{behind}` as a condition and `{order}`, and takes :limit. `place`: a row's values of the keys.

    Raises BadCursor: a cursor's values are cast by the server, and what it cannot cast was not made by this list.
    """
    behind, values = keyset(keys, after, descending=False)
    statement = sql.format(behind=behind, order=order(keys, descending=False))
    try:
        found = rows(conn, row_type, statement, {**params, **values, "limit": limit + 1})
    except DataError as error:
        if after is None:
            raise
        raise BadCursor("expected a cursor of this list") from error
    if len(found) <= limit:
        return Page(tuple(found))
    return Page(tuple(found[:limit]), cursor(keys, place(found[limit - 1])))


def _down(key: Key, descending: bool, backward: bool) -> bool:
    return (key.turns and descending) != backward


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _decode(cursor: str, keys: Sequence[Key]) -> dict[str, str]:
    values = unpacked(cursor)
    if (
        not isinstance(values, list)
        or len(values) != len(keys)
        or not all(isinstance(value, str) and "\0" not in value for value in values)
    ):
        raise BadCursor(f"expected a cursor of {len(keys)} values")
    return {key.name: value for key, value in zip(keys, values, strict=True)}
