"""Bring a database to the newest schema. Safe from several replicas at once: an advisory lock lets one migrate."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from engine.db.session import make_engine
from engine.paths import shipped

LOCK = 7_265_001  # any fixed number: "baton migrates"


def migrations_folder() -> Path:
    """Where the migrations lie, in a checkout and in an installed wheel alike."""
    return shipped("migrations")


def migrate(url: str) -> None:
    """Upgrade to head. Waits while another process migrates."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    engine = make_engine(url, pool_size=2, application_name="baton-migrate")
    with engine.connect() as guard:
        guard.execute(text("SELECT pg_advisory_lock(:n)"), {"n": LOCK})
        try:
            with engine.connect() as connection:
                connection = connection.execution_options(isolation_level="READ COMMITTED")
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        finally:
            guard.execute(text("SELECT pg_advisory_unlock(:n)"), {"n": LOCK})
    engine.dispose()
