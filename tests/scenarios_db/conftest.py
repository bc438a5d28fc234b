"""`stage`: an empty house with the cast engaged."""

from __future__ import annotations

import psycopg
import pytest

from tests.lock_order import watched
from tests.scenarios_db.stage import Stage

__all__ = ["watched"]


@pytest.fixture
def stage(committed_db: psycopg.Connection) -> Stage:
    return Stage(committed_db)
