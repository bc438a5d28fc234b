"""An example of an answer, made from its schema: the same one each time, and valid under it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KNOWN: Mapping[str, Any] = {
    "assignee": "ada",
    "actor": "ada",
    "by": "ada",
    "by_name": "Ada Moreno",
    "username": "ada",
    "display_name": "Ada Moreno",
    "business_key": "INV-2041",
    "correlation_key": "INV-2041",
    "candidate_groups": ["clerks"],
    "groups": ["clerks"],
    "key": "invoice",
    "definition_key": "invoice",
    "process_definition_key": "invoice",
    "element_id": "check",
    "name": "Check invoice",
    "message_name": "Payment received",
    "topic": "print",
    "file": "invoice.bpmn",
    "variables": {"amount": 120.5},
    "next_cursor": None,
    "ended_at": None,
    "version": 1,
    "detail": "…",
}
"""Field -> a value that reads like one of a real case. It is taken where the schema allows it."""


def example_of(schema: Mapping[str, Any], named: Mapping[str, Any], *, field: str = "", depth: int = 6) -> Any:
    """A value of this schema."""
    if "$ref" in schema:
        return example_of(named[schema["$ref"].rpartition("/")[2]], named, field=field, depth=depth)
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], named, field=field, depth=depth)
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if field in KNOWN and _kind(KNOWN[field]) in kinds and "format" not in schema:
        return KNOWN[field]
    return _of_kind(kinds[0], schema, named, field=field, depth=depth)


def _of_kind(kind: str, schema: Mapping[str, Any], named: Mapping[str, Any], *, field: str, depth: int) -> Any:
    match kind:
        case "string":
            return {"uuid": "0196f0c2-7d1e-7b3a-9c54-2f6b1e0a8d11", "date-time": "2026-11-30T09:15:00+00:00"}.get(
                schema.get("format", ""), "text"
            )
        case "integer":
            return max(1, schema.get("minimum", 1))
        case "number":
            return 1.0
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            return [] if depth == 0 else [example_of(schema["items"], named, field=field, depth=depth - 1)]
    properties = schema.get("properties", {})
    return {name: example_of(inner, named, field=name, depth=depth - 1) for name, inner in properties.items()} if depth else {}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"
