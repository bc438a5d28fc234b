"""The plpgsql functions of engine/db/sql: read from their files, installed by migrations, compared by a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "sql"


def function_files() -> dict[str, str]:
    """name -> CREATE OR REPLACE text, in name order. One function a file, the file named as the function."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.sql"))}


def install_functions(cursor: Any) -> None:
    """What a migration says whose functions changed. They come after the last migration, all at once: `create_functions`.

    Between two migrations the database is at work (each commits by itself), and a function may name what only a later one adds.
    """


def create_functions(cursor: Any) -> None:
    """Create or replace all of them. `cursor`: any DB-API cursor; the caller commits."""
    for text in function_files().values():
        cursor.execute(text)
