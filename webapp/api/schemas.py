"""The JSON Schema of an answer, from its type: a TypedDict beside the function that makes it, so that mypy compares the two.

What it knows: TypedDicts (generic ones and NotRequired too), lists, dicts with text keys, Literal, unions, None, UUID, the plain
types, and Annotated with an `Also`. Anything else is a TypeError when the description is made.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: types must be hashable, mappings are not
class Also:
    """For `Annotated[…, Also({…})]`: what is added to the schema of the type."""

    schema: Mapping[str, Any]


Moment = Annotated[str, Also({"format": "date-time"})]
"""RFC 3339 with the offset."""

PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    UUID: {"type": "string", "format": "uuid"},
    types.NoneType: {"type": "null"},
    Any: {},
}


class Listed(TypedDict, Generic[T]):
    """One page of a list. `next_cursor`: for the next page, with the same filters; null on the last one."""

    items: list[T]
    next_cursor: str | None


class Items(TypedDict, Generic[T]):
    """A whole list."""

    items: list[T]


def words(*allowed: str) -> Also:
    """For `Annotated[str, words(…)]`: one of these texts."""
    return Also({"enum": list(allowed)})


class Schemas:
    """The named schemas of one description, gathered while it is made."""

    def __init__(self) -> None:
        self.named: dict[str, dict[str, Any]] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type; that of a TypedDict is a reference to its name."""
        if kind in PLAIN:
            return dict(PLAIN[kind])
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(inner)
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, types.UnionType):
            return self._any_of([self.of(each) for each in inner])
        if origin is list:
            return {"type": "array", "items": self.of(inner[0])}
        if origin is dict and inner[0] is str:
            value = self.of(inner[1])
            return {"type": "object", **({"additionalProperties": value} if value else {})}
        if hasattr(origin or kind, "__required_keys__"):
            return self._object(kind, origin or kind, inner)
        raise TypeError(f"{kind!r}: expected a type that webapp.api.schemas knows")

    def _annotated(self, inner: tuple[Any, ...]) -> dict[str, Any]:
        found = self.of(inner[0])
        for also in inner[1:]:
            found |= also.schema
        return found

    def _any_of(self, schemas: list[dict[str, Any]]) -> dict[str, Any]:
        """`["string", "null"]` where that says it all."""
        null = {"type": "null"}
        if len(schemas) == 2 and null in schemas:
            [other] = [each for each in schemas if each != null] or [null]
            if isinstance(other.get("type"), str):
                enum = {"enum": [*other["enum"], None]} if "enum" in other else {}
                return {**other, "type": [other["type"], "null"], **enum}
        return {"anyOf": schemas}

    def _object(self, kind: Any, declared: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
        name = name_of(kind)
        if name not in self.named:
            self.named[name] = {}  # a type may hold itself
            given: dict[Any, Any] = dict(zip(_parameters(declared), inner, strict=True))
            hints = get_type_hints(declared, include_extras=True)
            properties = {field: self.of(_filled(_bare(hint), given)) for field, hint in hints.items()}
            about = {"description": " ".join(declared.__doc__.split())} if declared.__doc__ else {}
            required = [field for field in hints if field in declared.__required_keys__ and get_origin(hints[field]) is not NotRequired]
            self.named[name] = {"type": "object", **about, "properties": properties, "required": required}
        return {"$ref": f"#/components/schemas/{name}"}


def name_of(kind: Any) -> str:
    """`TaskShape` is called Task, `Listed[TaskShape]` ListedTask."""
    name = str((get_origin(kind) or kind).__name__).removesuffix("Shape")
    return name + "".join(name_of(each) for each in get_args(kind))


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint


def _filled(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The hint with the type variables of a generic TypedDict replaced."""
    if hint in given:
        return given[hint]
    if given and (open_still := _parameters(hint)):
        return hint[tuple(given[each] for each in open_still)]
    return hint


def _parameters(kind: Any) -> tuple[Any, ...]:
    """The type variables that are still open in a type."""
    found: Any = getattr(kind, "__parameters__", None)
    return tuple(found or ())
