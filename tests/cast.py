"""One fixed cast: Ada and Bo in billing, Cy outside, Op who operates, Root who administers."""

from __future__ import annotations

import psycopg

from engine.commands.outcome import Actor
from engine.ids import new_id

ADA = Actor("ada", groups=frozenset({"billing"}), display_name="Ada Lovelace")
BO = Actor("bo", groups=frozenset({"billing"}), display_name="Bo Diddley")
CY = Actor("cy", groups=frozenset({"warehouse"}), display_name="Cy Twombly")
OP = Actor("op", role="operator", display_name="Op Erator")
ROOT = Actor("root", role="administrator", display_name="Ro Ot")
CAST = (ADA, BO, CY, OP, ROOT)


def engage(conn: psycopg.Connection) -> None:
    """Put the cast into `person` and its groups."""
    for actor in CAST:
        key = new_id()
        conn.execute(
            "INSERT INTO person (id, username, display_name, sort_key, role) VALUES (%s, %s, %s, %s, %s)",
            (key, actor.username, actor.display_name, actor.display_name.casefold(), actor.role),
        )
        for group in actor.groups:
            conn.execute("INSERT INTO person_group (person_id, group_key) VALUES (%s, %s)", (key, group))
