"""Which form an element means, when somebody looks at it: latest is the newest now, the other bindings stay what they were.

A row of a form never changes and never goes, so nothing is locked; what was read of it is kept by the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import FormReference
from engine.db.definitions import KEPT
from engine.db.session import cursor_of
from engine.expressions import ExpressionError
from engine.forms.definition import Form
from engine.forms.reader import read_forms
from engine.forms.references import form_in

BY_DEPLOYMENT = "AND f.created_at <= (SELECT b.created_at FROM process_definition b WHERE b.id = %(definition_id)s)"
_FIND = """
SELECT f.id, f.key, f.version, f.resource_name, f.content FROM form_definition f
WHERE f.tenant_id = %(tenant_id)s AND {which} ORDER BY f.created_at DESC, f.version DESC LIMIT 1
"""
_SHOWN = """
SELECT f.id, f.key, f.version, f.resource_name, f.content FROM form_definition f
WHERE f.tenant_id = %(tenant_id)s AND f.key = %(key)s AND f.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class FoundForm:
    """The form of an element. `id` None: it stands in the model. `newer`: the version that took its place since."""

    form: Form
    id: UUID | None = None
    version: int | None = None
    newer: int | None = None


@dataclass(frozen=True, slots=True)
class NoForm:
    """An element refers to a form that cannot be shown.

    `why`: missing, refused (today's rules refuse what is stored, or what the model embeds), unknown (its key is an expression of no value).
    """

    name: str
    why: str = "missing"
    which: str = ""  # of its versions
    detail: str = ""


def form_of(
    conn: psycopg.Connection[Any],
    reference: FormReference,
    *,
    tenant_id: str,
    definition_id: UUID,
    variables: Mapping[str, Any],
    shown: UUID | None = None,
) -> FoundForm | NoForm:
    """The form that a reference means; `shown`: the version that a page was made of, if it is one of the same form."""
    if reference.embedded is not None:
        form = form_in(reference)
        return NoForm(reference.name, "refused") if form is None else FoundForm(form)
    try:
        name, which, params = _question(reference, variables)
    except ExpressionError as error:
        return NoForm(reference.key.text if reference.key else reference.file, "unknown", detail=str(error))
    params |= {"tenant_id": tenant_id, "definition_id": definition_id}
    row = cursor_of(conn).execute(_FIND.format(which=which), params).fetchone()
    if row is None:
        return NoForm(name, "missing", _words(reference, params))
    now = row
    if shown is not None and shown != now[0]:
        row = cursor_of(conn).execute(_SHOWN, {"tenant_id": tenant_id, "key": now[1], "id": shown}).fetchone() or now
    row_id, key, version, resource, content = row
    form = _read(resource, bytes(content))
    return NoForm(f"{key} {version}", "refused") if form is None else FoundForm(form, row_id, version, now[2] if now is not row else None)


def _question(reference: FormReference, variables: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """How people call the form, and how the database finds it."""
    if reference.file:
        return reference.file, f"f.resource_name = %(file)s {BY_DEPLOYMENT}", {"file": reference.file}
    assert reference.key is not None, "a reference has a key, a file or the form itself"
    key = _text(reference.key.evaluate(variables))
    which, params = "f.key = %(key)s", {"key": key}
    match reference.binding:
        case "deployment":
            which += f" {BY_DEPLOYMENT}"
        case "version":
            assert reference.version is not None, "the reader wants one"
            which += " AND f.version::text = %(version)s"
            params["version"] = _text(reference.version.evaluate(variables))
        case "tag":
            assert reference.tag is not None, "the reader wants one"
            which += " AND f.version_tag = %(tag)s"
            params["tag"] = _text(reference.tag.evaluate(variables))
    return key, which, params


def _text(value: Any) -> str:
    return str(value).replace("\0", "")


def _words(reference: FormReference, params: Mapping[str, Any]) -> str:
    """Which version was asked for, for whoever reads that it is not there."""
    return str({"version": params.get("version", ""), "tag": params.get("tag", "")}.get(reference.binding, ""))


@lru_cache(maxsize=KEPT)
def _read(resource: str, content: bytes) -> Form | None:
    read = read_forms([(resource, content)])
    return None if read.problems else read.files[0].form
