"""One version of a process, as addresses name it: by key and number."""

from __future__ import annotations

from flask import abort

from engine.queries.processes import DefinitionRow, definition
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import reader


def version_or_404(key: str, version: int) -> DefinitionRow:
    """That of the actor's tenant."""
    with reading(reader()) as conn:
        row = definition(conn, key, version, tenant_id=current_actor().tenant_id)
    if row is None:
        abort(404)
    return row
