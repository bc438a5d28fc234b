"""Decisions for the screens: what to cook, and cases that asked for it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from tests.web.operations import MODELS, OLGA, started


def tables(name: str = "dinner_for_guests") -> bytes:
    return (MODELS / f"{name}.dmn").read_bytes()


def cooked(conn: psycopg.Connection[Any], *files: tuple[str, bytes]) -> Deployed:
    """The process and its decisions are deployed."""
    given = files or (("dinner_for_guests.bpmn", (MODELS / "dinner_for_guests.bpmn").read_bytes()), ("dinner_for_guests.dmn", tables()))
    outcome = deploy(conn, given, actor=OLGA)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def dinner(conn: psycopg.Connection[Any], *, degrees: float = 3, guests: int = 12, business_key: str | None = None) -> UUID:
    return started(conn, "dinner_for_guests", business_key=business_key, degrees=degrees, guests=guests)
