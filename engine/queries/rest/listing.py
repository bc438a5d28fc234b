"""Lists with Camunda 7's filters: a table of those that are served, by their names there, each with its condition in SQL.

Whoever asks for another one is refused by who reads the request: a filter that is ignored makes a list of something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection

from engine.queries.rows import rows, scalar

MOST = 1_000
"""Rows of one answer. A list that has more and names no page is refused, not cut."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filter:
    """`kind`: how its value is read (text, names, id, ids, truth, whole, moment, variables). In `sql`, `{}` is the value.

    Truths have none: they count when they are true.
    """

    kind: str
    sql: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """`given`: filters by name with their values. `sort`: (name, whether descending). `most` None: all of them."""

    given: Mapping[str, Any] = field(default_factory=dict)
    sort: tuple[tuple[str, bool], ...] = ()
    first: int = 0
    most: int | None = None


class TooMany(ValueError):
    """No page was named and the list has more than MOST rows."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list. `always`: what holds for every row of it, permission included. `unique`: what ends each order."""

    columns: str
    source: str
    always: str
    filters: Mapping[str, Filter]
    sorts: Mapping[str, str]
    unique: str

    def rows(self, conn: Connection, row_type: type[T], wanted: Wanted, params: Mapping[str, Any]) -> list[T]:
        """Raises TooMany."""
        condition, values = self._where(wanted)
        order = [f"{self.sorts[name]}{' DESC' if descending else ''}" for name, descending in wanted.sort]
        most = MOST + 1 if wanted.most is None else wanted.most
        sql = (
            f"SELECT {self.columns} FROM {self.source} WHERE {condition}"
            f" ORDER BY {', '.join([*order, self.unique])} OFFSET :first LIMIT :most"
        )
        found = rows(conn, row_type, sql, {**params, **values, "first": wanted.first, "most": most})
        if wanted.most is None and len(found) > MOST:
            raise TooMany(f"more than {MOST:,} results: expected firstResult and maxResults")
        return found

    def one(self, conn: Connection, row_type: type[T], condition: str, params: Mapping[str, Any]) -> T | None:
        """The row that meets a condition of its own, whatever its list would ask besides `always`."""
        sql = f"SELECT {self.columns} FROM {self.source} WHERE {self.always} AND {condition} LIMIT 1"
        found = rows(conn, row_type, sql, dict(params))
        return found[0] if found else None

    def count(self, conn: Connection, wanted: Wanted, params: Mapping[str, Any]) -> int:
        condition, values = self._where(wanted)
        return int(scalar(conn, f"SELECT count(*) FROM {self.source} WHERE {condition}", {**params, **values}))

    def _where(self, wanted: Wanted) -> tuple[str, dict[str, Any]]:
        conditions, values = [self.always], {}
        for name, value in wanted.given.items():
            found = self.filters[name]
            conditions.append(found.sql.format(f":f_{name}"))
            if found.kind != "truth":
                values[f"f_{name}"] = value
        return " AND ".join(conditions), values


# ---- conditions that many lists have


def is_in(column: str) -> Filter:
    return Filter("names", f"{column} = ANY (CAST({{}} AS text[]))")


def is_id(column: str) -> Filter:
    return Filter("id", f"{column} = CAST({{}} AS uuid)")


def is_id_in(column: str) -> Filter:
    return Filter("ids", f"{column} = ANY (CAST({{}} AS uuid[]))")


def equals(column: str) -> Filter:
    return Filter("text", f"{column} = {{}}")


def like(column: str) -> Filter:
    """`%` and `_` as in SQL, as there."""
    return Filter("text", f"{column} LIKE {{}}")


def before(column: str) -> Filter:
    return Filter("moment", f"{column} < CAST({{}} AS timestamptz)")


def after(column: str) -> Filter:
    return Filter("moment", f"{column} > CAST({{}} AS timestamptz)")


def at(column: str) -> Filter:
    return Filter("moment", f"date_trunc('milliseconds', {column}) = CAST({{}} AS timestamptz)")


def tenants(column: str) -> dict[str, Filter]:
    """The tenant without a name is no tenant there."""
    return {"tenantIdIn": is_in(column), "withoutTenantId": Filter("truth", f"{column} = ''")}


def variables_of(scope_where: str) -> Filter:
    """[{name, operator, value}] of variables of the scopes `s` that meet `scope_where`; all must hold.

    Compared as JSON values, so 42 is 42.0 and "42" is neither; an order is asked of values of one kind.
    """
    return Filter(
        "variables",
        "NOT EXISTS (SELECT FROM jsonb_array_elements(CAST({} AS jsonb)) w WHERE NOT EXISTS ("
        f"SELECT FROM scope s JOIN variable v ON v.scope_id = s.id WHERE {scope_where} AND v.name = w ->> 'name'"
        " AND CASE w ->> 'operator' WHEN 'eq' THEN v.value = w -> 'value' WHEN 'neq' THEN v.value <> w -> 'value'"
        " WHEN 'like' THEN v.type = 'string' AND v.value #>> '{{}}' LIKE w ->> 'value'"
        " ELSE jsonb_typeof(v.value) = jsonb_typeof(w -> 'value') AND CASE w ->> 'operator'"
        " WHEN 'gt' THEN v.value > w -> 'value' WHEN 'gteq' THEN v.value >= w -> 'value'"
        " WHEN 'lt' THEN v.value < w -> 'value' ELSE v.value <= w -> 'value' END END))",
    )


OPERATORS = ("eq", "neq", "gt", "gteq", "lt", "lteq", "like")
