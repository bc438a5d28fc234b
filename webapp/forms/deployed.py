"""The deployed form that a step refers to: which version its page shows, and what is drawn between its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from flask import request

from engine.bpmn.definition import FormField, Node
from engine.core.values import Variable, native
from engine.db.forms import FoundForm, NoForm, form_of
from engine.forms.definition import Drawn
from engine.forms.references import reference_of
from webapp.auth.identity import current_actor
from webapp.db import command_connection

LAST = ""  # what is drawn behind the last field


def deployed_form(node: Node | None, definition_id: UUID, variables: Mapping[str, Variable]) -> FoundForm | NoForm | None:
    """What the element shows; what was sent is read by the version that its page showed."""
    reference = reference_of(node) if node is not None else None
    if reference is None:
        return None
    return form_of(
        command_connection(),
        reference,
        tenant_id=current_actor().tenant_id,
        definition_id=definition_id,
        variables={name: native(variable) for name, variable in variables.items()},
        shown=_shown(),
    )


def drawn_before(found: FoundForm | NoForm | None) -> dict[str, Sequence[Drawn]]:
    """By the field that follows, headings and texts of the form."""
    drawn: dict[str, list[Drawn]] = {}
    waiting: list[Drawn] = []
    for part in found.form.parts if isinstance(found, FoundForm) else ():
        if isinstance(part, FormField):
            drawn[part.id], waiting = waiting, []
        else:
            waiting.append(part)
    return {**drawn, LAST: waiting}


def _shown() -> UUID | None:
    """The version that a page sent along with what was typed."""
    try:
        return UUID(request.form.get("form_version", ""))
    except ValueError:
        return None
