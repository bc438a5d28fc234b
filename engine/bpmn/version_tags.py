"""What the author of a process calls this version of it; calls that are bound to a version tag mean the newest that has it."""

from __future__ import annotations

from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.names import BATON, CAMUNDA_LIKE, ZEEBE, Element


def version_tag(process: Element, context: Context) -> str | None:
    """camunda:versionTag, or the value of zeebe:versionTag."""
    tag = context.attribute(process, "versionTag", BATON, *CAMUNDA_LIKE)
    extension = context.extension(process, "versionTag", ZEEBE)
    if tag is None and extension is not None:
        tag = extension.get("value")
    tag = (tag or "").strip()
    if len(tag) > MAX_NAME:
        context.problem(process, f"{named(process)} has too long a version tag", f"at most {MAX_NAME} characters")
    return tag or None
