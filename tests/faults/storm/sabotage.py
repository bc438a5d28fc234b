"""Eight ways to break the engine; each must be reported."""

from __future__ import annotations

from typing import Any

import psycopg


def in_the_database(conn: psycopg.Connection[Any], number: int) -> None: ...


def in_a_process(number: int) -> None: ...
