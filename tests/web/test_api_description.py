"""What each route of the API declares: closed unless it does, and every declared type has a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pytest
from flask import Flask

from webapp.api.describing import SCOPES, Raw, operation, operation_of
from webapp.api.schemas import Listed, Moment, Schemas, words

T = TypeVar("T")


def declarations(app: Flask) -> Mapping[str, Any]:
    """rule and methods -> what its view declared."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/")]
    assert rules
    return {f"{sorted(rule.methods or ())} {rule.rule}": operation_of(app.view_functions[rule.endpoint]) for rule in rules}


def test_every_route_declares_its_scope_its_summary_and_its_answers(app: Flask) -> None:
    found = declarations(app)
    assert [route for route, declared in found.items() if declared is None] == []
    for route, declared in found.items():
        assert declared.scope in SCOPES, route
        assert declared.summary.endswith("."), f"{route}: the docstring's first line is the summary"
        assert "\n" not in declared.summary, f"{route}: one line, then a blank one"
        assert declared.answers, route


def test_every_answer_has_a_schema(app: Flask) -> None:
    schemas = Schemas()
    for declared in declarations(app).values():
        for kind in declared.answers.values():
            if kind is not None and not isinstance(kind, Raw):
                assert schemas.of(kind)
    assert schemas.named["Task"]["properties"]["due_at"] == {"type": ["string", "null"], "format": "date-time"}


def test_a_scope_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of read, tasks"):
        operation(scope="everything", answers=None)  # type: ignore[arg-type]  # that is what is tested


class LeafShape(TypedDict):
    """A leaf
    of the tree."""

    colour: Literal["red", "green"]
    seen: NotRequired[Moment]
    kind: Annotated[str, words("oak")] | None


class TreeShape(TypedDict, Generic[T]):
    fruit: T
    branches: list[TreeShape[T]]
    about: dict[str, Any]


def test_a_type_becomes_a_schema_with_names() -> None:
    schemas = Schemas()
    assert schemas.of(Listed[LeafShape]) == {"$ref": "#/components/schemas/ListedLeaf"}
    assert schemas.named["Leaf"] == {
        "type": "object",
        "description": "A leaf of the tree.",
        "properties": {
            "colour": {"enum": ["red", "green"]},
            "seen": {"type": "string", "format": "date-time"},
            "kind": {"type": ["string", "null"], "enum": ["oak", None]},
        },
        "required": ["colour", "kind"],
    }
    assert schemas.named["ListedLeaf"]["properties"]["items"] == {"type": "array", "items": {"$ref": "#/components/schemas/Leaf"}}
    assert schemas.of(int | str | None) == {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}


def test_a_generic_type_may_hold_itself() -> None:
    schemas = Schemas()
    schemas.of(TreeShape[UUID])
    assert schemas.named["TreeUUID"]["properties"] == {
        "fruit": {"type": "string", "format": "uuid"},
        "branches": {"type": "array", "items": {"$ref": "#/components/schemas/TreeUUID"}},
        "about": {"type": "object"},
    }


def test_a_type_that_no_schema_is_known_for_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a type that"):
        Schemas().of(bytes)
