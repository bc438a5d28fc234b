"""The sample people. They exist under `baton up` alone: their password is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from engine.commands.outcome import SYSTEM, Rejected
from engine.commands.people import add_person, set_password
from webapp.auth.passwords import matches, rehash


@dataclass(frozen=True)
class SamplePerson:
    username: str
    display_name: str
    groups: tuple[str, ...]
    role: str = "user"


PEOPLE = (
    SamplePerson("ada", "Ada Moreno", ("office",)),
    SamplePerson("bo", "Bo Lindqvist", ("office",)),
    SamplePerson("cy", "Cy Okafor", ("management",)),
    SamplePerson("olga", "Olga Petrova", (), role="operator"),
)


def make_sample_people(conn: psycopg.Connection[Any], password: str) -> None:
    """Add who is missing and see to it that all have this password. Groups and roles changed since are left alone."""
    hashed = None
    for person in PEOPLE:
        found = conn.execute("SELECT password_hash FROM person WHERE tenant_id = '' AND username = %s", (person.username,)).fetchone()
        if found is not None and matches(found[0], password):
            continue
        hashed = hashed or rehash(password)
        outcome = (
            add_person(
                conn,
                person.username,
                actor=SYSTEM,
                display_name=person.display_name,
                role=person.role,
                groups=person.groups,
                password_hash=hashed,
            )
            if found is None
            else set_password(conn, person.username, actor=SYSTEM, password_hash=hashed)
        )
        if isinstance(outcome, Rejected):
            raise RuntimeError(f"sample person {person.username}: {outcome.refusal}: {outcome.problems}")
