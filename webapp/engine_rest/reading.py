"""What programs send, read as they send it: nulls as nothing, unknown keys ignored, whole numbers as truths, texts as numbers.

One `Sent` for a body and for a query string, so that a GET and its POST twin share their readers. What cannot be read ends
the request with 400, naming the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flask import request

from engine.core.values import Variable
from webapp.engine_rest.blueprint import told
from webapp.engine_rest.times import read as read_time
from webapp.engine_rest.values import read_variables

LONGEST = 4_000  # characters of a text, where nothing else is said
MOST = 1_000  # members of a list


@dataclass(frozen=True, slots=True)
class Sent:
    """Keys and values of one request. Each reader takes a key and gives its value, or the default for null and nothing."""

    values: Mapping[str, Any]

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def text(self, key: str, default: str | None = None, *, longest: int = LONGEST) -> str | None:
        value = self.values.get(key)
        return default if value is None else _text(key, value, longest)

    def need(self, key: str, *, longest: int = 255) -> str:
        """A text that must be there and not be empty."""
        found = self.text(key, longest=longest)
        if not found or not found.strip():
            raise told(400, f"{key}: expected text, found none")
        return found

    def whole(self, key: str, default: int | None = None, *, least: int = -(2**31), most: int = 2**31 - 1) -> int | None:
        value = self.values.get(key)
        if value is None or value == "":
            return default
        number = _whole(value)
        if number is None or not least <= number <= most:
            raise told(400, f"{key}: expected a whole number from {least} to {most}, found {_shown(value)}")
        return number

    def truth(self, key: str, default: bool | None = None) -> bool | None:
        """`true`, 1 and "true" are true."""
        value = self.values.get(key)
        match value:
            case None | "":
                return default
            case bool():
                return value
            case 0 | 1:
                return bool(value)
            case str() if value.lower() in ("true", "false", "1", "0"):
                return value.lower() in ("true", "1")
        raise told(400, f"{key}: expected true or false, found {_shown(value)}")

    def names(self, key: str, *, most: int = MOST) -> list[str] | None:
        """A list of texts; in a query string, and where a body has a text, what commas separate. None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        found = [part for part in value.split(",") if part] if isinstance(value, str) else value
        if not isinstance(found, list) or len(found) > most:
            raise told(400, f"{key}: expected a list of at most {most} texts, found {_shown(value)}")
        return [_text(key, each, LONGEST) for each in found]

    def moment(self, key: str) -> datetime | None:
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return read_time(value if isinstance(value, str) else str(value))
        except ValueError as error:
            raise told(400, f"{key}: {error}") from error

    def variables(self, key: str) -> dict[str, Variable]:
        return read_variables(self.values.get(key), where=key)

    def objects(self, key: str, *, most: int = MOST) -> list[Sent]:
        """A list of objects; null is none."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most or not all(isinstance(each, dict) for each in value):
            raise told(400, f"{key}: expected a list of at most {most} objects, found {_shown(value)}")
        return [Sent(each) for each in value]


def body() -> Sent:
    """The JSON object of the request. No body is an empty one, whatever its content type says."""
    data = request.get_data()
    if not data.strip():
        return Sent({})
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise told(400, f"expected JSON, found what is none ({error})") from error
    if not isinstance(value, dict | None):
        raise told(400, f"expected a JSON object, found {_shown(value)}")
    return Sent(value or {})


def query() -> Sent:
    """The query string: the first value of each name."""
    return Sent(request.args.to_dict())


def uuid_of(value: str | None) -> UUID | None:
    """An id of ours, or None for what is none and so names nothing."""
    try:
        return UUID(value) if value is not None else None
    except ValueError:
        return None


def ids_of(values: list[str] | None) -> list[UUID] | None:
    """Those of a list that are ids of ours; None where no list was given."""
    return None if values is None else [found for each in values if (found := uuid_of(each)) is not None]


def _text(key: str, value: Any, longest: int) -> str:
    """A text; a whole number is taken as its digits."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise told(400, f"{key}: expected text, found {_shown(value)}")
    text = value if isinstance(value, str) else _shown(value)
    if len(text) > longest:
        raise told(400, f"{key}: expected at most {longest:,} characters, found {len(text):,}")
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise told(400, f"{key}: expected text without the character U+0000 and without half of a surrogate pair")
    return text


def _whole(value: Any) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case str() if len(value) < 20:
            try:
                return int(value)
            except ValueError:
                return None
    return None


def _shown(value: Any) -> str:
    """A value for a message: short, and without what no answer can hold."""
    text = str(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of more than 40 digits"
    return text[:80].encode("utf-8", "replace").decode()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
