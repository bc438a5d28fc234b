"""What callers send, read strictly: known fields of the right kind, or 422 that names each field that is wrong.

A `Reader` is called with a value and returns it checked, or raises `Wrong` with what it expected; its `schema` says the same
to the description (webapp.api.openapi). Pure but for `json_body`, `multipart`, `query` and `request_id`, which read the request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flask import abort, request

from webapp.errors import problem

DEPTH = 64
TEXT = 4_000
NAME = 255
WHOLE = 2**63


class Wrong(ValueError):
    """What was expected instead."""


class Word(str):
    """A value of a query string, where a number is its digits and a truth is its name; in a body neither is."""


@dataclass(frozen=True, slots=True)
class Reader:
    """`schema`: what it accepts, as JSON Schema 2020-12. What no schema can say (depth, surrogates) only `read` knows."""

    read: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __call__(self, value: Any) -> Any:
        return self.read(value)


def accepting(schema: Mapping[str, Any]) -> Callable[[Callable[[Any], Any]], Reader]:
    """Makes a function a reader that accepts `schema`."""
    return lambda read: Reader(read, schema)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a body or a query string. Without a default it is required. `about` and `example` are for the description."""

    read: Reader
    default: Any = ...
    _: KW_ONLY
    about: str = ""
    example: Any = ...

    @property
    def required(self) -> bool:
        return self.default is ...


# ---- from the request


def json_body(**fields: Field) -> dict[str, Any]:
    """The body's fields, checked; 415 for what is not JSON, 422 for what is wrong in it. No body counts as `{}`."""
    data = request.get_data()
    # What was sent is asked too: the check of a session's CSRF token has read a form's body by now.
    if (data or request.content_length) and request.mimetype != "application/json":
        abort(problem(415, "unsupported_media_type", f"expected application/json, found {request.mimetype or 'no content type'}"))
    try:
        value = json.loads(data, parse_constant=_no_constant) if data else {}
    except (ValueError, RecursionError) as error:
        abort(problem(422, "invalid", f"body: expected JSON ({error})", problems=[{"field": "", "message": "expected JSON"}]))
    return _refusing(check, value, fields)


def multipart(files: str, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Uploads, one or more, as `files`: a list of (file name, content); beside them text fields. 415, 422 as `json_body`."""
    if request.mimetype != "multipart/form-data":
        abort(problem(415, "unsupported_media_type", f"expected multipart/form-data, found {request.mimetype or 'no content type'}"))
    known = (files, *fields)
    wrong = [
        (name, f"unknown field; expected {' or '.join(known)}") for name in sorted({*request.files, *request.form} - {*known, "csrf_token"})
    ]
    uploads = request.files.getlist(files)
    if not uploads and not wrong:
        wrong.append((files, "expected at least one file, found none"))
    named = [(upload.filename or f"{files} {place}", upload) for place, upload in enumerate(uploads, start=1)]
    wrong += [
        (f"{files} {place}", "expected text without the character U+0000") for place, (name, _) in enumerate(named, start=1) if "\0" in name
    ]
    found, more = check({name: value for name, value in request.form.items() if name in fields}, fields)
    if wrong or more:
        abort(_invalid([*wrong, *more]))
    return {files: [(name, upload.read()) for name, upload in named], **found}


def query(**fields: Field) -> dict[str, Any]:
    """The query string's fields, checked in the same way. A name that is given twice is wrong."""
    doubled = [name for name, values in request.args.lists() if len(values) > 1]
    if doubled:
        abort(_invalid([(name, "expected once") for name in doubled]))
    return _refusing(check, {name: Word(value) for name, value in request.args.items()}, fields)


def request_id() -> str | None:
    """The Idempotency-Key, if one was sent."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 0 < len(key) <= NAME or not key.isprintable():
        abort(_invalid([("Idempotency-Key", f"expected 1 to {NAME} printable characters")]))
    return key


def check(value: Any, fields: Mapping[str, Field]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """(the checked values, every problem as (field, what was expected))."""
    if not isinstance(value, dict):
        return {}, [("", f"expected an object, found {kind_of(value)}")]
    problems = [(name, f"unknown field; expected one of {', '.join(fields) or 'none'}") for name in value if name not in fields]
    found = {}
    for name, field in fields.items():
        if name not in value:
            if field.required:
                problems.append((name, "expected, not found"))
            found[name] = None if field.required else field.default
            continue
        try:
            found[name] = field.read(value[name])
        except Wrong as wrong:
            problems.append((name, str(wrong)))
    return found, problems


# ---- readers


def text(*, longest: int = NAME, empty: bool = False, nullable: bool = False) -> Reader:
    def read(value: Any) -> str | None:
        if value is None and nullable:
            return None
        if not isinstance(value, str):
            raise Wrong(f"expected text, found {kind_of(value)}")
        if not value and not empty:
            raise Wrong("expected text, found none")
        if len(value) > longest:
            raise Wrong(f"expected at most {longest:,} characters, found {len(value):,}")
        if "\0" in value:
            raise Wrong("expected text without the character U+0000")
        if any("\ud800" <= sign <= "\udfff" for sign in value):
            raise Wrong("expected text, found half of a surrogate pair")
        return value

    return Reader(read, _nullable({"type": "string", **({} if empty else {"minLength": 1}), "maxLength": longest}, nullable))


def whole(*, least: int = 0, most: int = WHOLE - 1, nullable: bool = False) -> Reader:
    """A whole number; in a query string, its digits."""

    def read(value: Any) -> int | None:
        if value is None and nullable:
            return None
        if isinstance(value, Word) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"expected a whole number, found {kind_of(value)}")
        if not least <= value <= most:
            raise Wrong(f"expected {least} to {most}, found {shortened(value)}")
        return value

    return Reader(read, _nullable({"type": "integer", "minimum": least, "maximum": most}, nullable))


def number(*, least: float = 0, most: float = 1e9, nullable: bool = False) -> Reader:
    def read(value: Any) -> float | None:
        if value is None and nullable:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong(f"expected a number, found {kind_of(value)}")
        if not least <= value <= most:
            raise Wrong(f"expected {least:.12g} to {most:.12g}, found {shortened(value)}")
        return float(value)

    return Reader(read, _nullable({"type": "number", "minimum": least, "maximum": most}, nullable))


@accepting({"type": "boolean"})
def truth(value: Any) -> bool:
    if isinstance(value, Word) and value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise Wrong(f"expected true or false, found {kind_of(value)}")
    return value


def one_of(*words: str) -> Reader:
    def read(value: Any) -> str:
        if value not in words:
            raise Wrong(f"expected one of {', '.join(words)}")
        return str(value)

    return Reader(read, {"type": "string", "enum": list(words)})


@accepting({"type": "string", "format": "uuid"})
def uuid(value: Any) -> UUID:
    try:
        return UUID(value)
    except (AttributeError, TypeError, ValueError):
        raise Wrong("expected a UUID") from None


@accepting({"type": "string", "format": "date-time"})
def instant(value: Any) -> datetime:
    """A time of RFC 3339, with its zone."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Wrong("expected a time with a zone, such as 2026-11-30T09:15:00+00:00")
    return found


def names(*, least: int = 1, most: int = 100, nullable: bool = False) -> Reader:
    """A list of texts that are not empty."""
    read_one = text()

    def read(value: Any) -> list[str] | None:
        if value is None and nullable:
            return None
        if not isinstance(value, list) or len(value) < least:
            raise Wrong("expected a list of at least one text" if least else "expected a list of texts")
        if len(value) > most:
            raise Wrong(f"expected at most {most} texts, found {len(value)}")
        return [read_one(item) for item in value]

    return Reader(read, _nullable({"type": "array", "items": read_one.schema, "minItems": least, "maxItems": most}, nullable))


@accepting({"type": "object", "propertyNames": {"minLength": 1, "maxLength": NAME}})
def variables(value: Any) -> dict[str, Any]:
    """An object of JSON values: names of 1 to 255 characters, numbers within 64 bits, not deeper than 64 levels."""
    if not isinstance(value, dict):
        raise Wrong(f"expected an object, found {kind_of(value)}")
    for name in value:
        if not 0 < len(name) <= NAME or "\0" in name:
            raise Wrong(f"expected names of 1 to {NAME} characters, found {name[:40]!r}")
    _check_plain(value, DEPTH)
    return value


def _nullable(schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]} if nullable else schema


def _check_plain(value: Any, depth: int) -> None:
    if depth == 0:
        raise Wrong(f"expected at most {DEPTH} levels")
    match value:
        case dict():
            for name, inner in value.items():
                _check_text(name)
                _check_plain(inner, depth - 1)
        case list():
            for inner in value:
                _check_plain(inner, depth - 1)
        case str():
            _check_text(value)
        case bool() | None:
            pass
        case int() if not -WHOLE <= value < WHOLE:
            raise Wrong("expected whole numbers within 64 bits")
        case float() if not math.isfinite(value):
            raise Wrong("expected numbers that a double can hold")


def _check_text(value: str) -> None:
    if "\0" in value:
        raise Wrong("expected text without the character U+0000")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise Wrong("expected text, found half of a surrogate pair")


def kind_of(value: Any) -> str:
    """A JSON value's kind, as people say it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
    return type(value).__name__


def shortened(value: float) -> str:
    """A number for a message: JSON knows whole numbers of thousands of digits, which no float can hold."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}… ({len(text):,} characters)"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _refusing(
    checker: Callable[..., tuple[dict[str, Any], list[tuple[str, str]]]], value: Any, fields: Mapping[str, Field]
) -> dict[str, Any]:
    found, problems = checker(value, fields)
    if problems:
        abort(_invalid(problems))
    return found


def _invalid(problems: list[tuple[str, str]]) -> Any:
    named = [{"field": name, "message": message} for name, message in problems]
    detail = "; ".join(f"{name or 'body'}: {message}" for name, message in problems)
    return problem(422, "invalid", detail, problems=named)
