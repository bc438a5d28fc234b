"""People and groups, as administrators page through them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from engine.queries.rows import Page, row
from engine.queries.sort import Key, keyed_page
from engine.text import sort_key


@dataclass(frozen=True, slots=True)
class Member:
    """One person, or one service account (`kind`). `may_sign_in`: there is a password, and nobody disabled them."""

    id: UUID
    username: str
    display_name: str
    kind: str
    role: str
    groups: list[str]
    may_sign_in: bool
    created_at: datetime
    disabled_at: datetime | None
    sorted_by: str


@dataclass(frozen=True, slots=True)
class Group:
    """`members`: people who are not disabled."""

    key: str
    members: int


def members(
    conn: Connection, *, tenant_id: str = "", q: str = "", group: str | None = None, kind: str | None = None, cursor: str | None = None,
    limit: int = 50,
) -> Page[Member]:  # fmt: skip
    """One page of everybody, disabled people too, by name. Raises BadCursor.

    `q`: part of a name, of either kind; `kind`: person | service.
    """
    return keyed_page(
        conn, Member, MEMBERS, {"tenant": tenant_id, "q": q, "folded": sort_key(q), "group": group, "kind": kind},
        keys=BY_NAME, place=lambda found: {"name": found.sorted_by, "username": found.username}, after=cursor, limit=limit,
    )  # fmt: skip


def member(conn: Connection, username: str, *, tenant_id: str = "") -> Member | None:
    """One person."""
    return row(conn, Member, f"{_MEMBER} AND p.username = :username", {"tenant": tenant_id, "username": username})


def groups(conn: Connection, *, tenant_id: str = "", cursor: str | None = None, limit: int = 50) -> Page[Group]:
    """One page of the groups that anybody is in, by key. Raises BadCursor."""
    return keyed_page(
        conn, Group, GROUPS, {"tenant": tenant_id}, keys=BY_KEY, place=lambda found: {"key": found.key}, after=cursor, limit=limit
    )


BY_NAME = (Key("name", 'p.sort_key COLLATE "C"', "text"), Key("username", 'p.username COLLATE "C"', "text"))
BY_KEY = (Key("key", 'g.group_key COLLATE "C"', "text"),)

_MEMBER = """
SELECT p.id, p.username, p.display_name, p.kind, p.role,
       ARRAY(SELECT group_key FROM person_group WHERE person_id = p.id ORDER BY 1) AS groups,
       p.password_hash IS NOT NULL AND p.disabled_at IS NULL AS may_sign_in, p.created_at, p.disabled_at, p.sort_key AS sorted_by
  FROM person AS p
 WHERE p.tenant_id = :tenant
"""

MEMBERS = f"""{_MEMBER}
   AND (:q = '' OR strpos(lower(p.username), lower(:q)) > 0 OR (:folded <> '' AND strpos(p.sort_key, :folded) > 0))
   AND (CAST(:group AS text) IS NULL OR EXISTS (SELECT FROM person_group WHERE person_id = p.id AND group_key = :group))
   AND (CAST(:kind AS text) IS NULL OR p.kind = :kind)
   AND {{behind}}
 ORDER BY {{order}} LIMIT :limit
"""

GROUPS = """
SELECT g.group_key AS key, (count(*) FILTER (WHERE p.disabled_at IS NULL))::int AS members
  FROM person_group AS g JOIN person AS p ON p.id = g.person_id
 WHERE g.tenant_id = :tenant AND {behind}
 GROUP BY g.group_key ORDER BY {order} LIMIT :limit
"""
