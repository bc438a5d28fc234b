"""Typed values both ways: `{"type", "value", "valueInfo"}` as Camunda 7 has them, and the variables of engine/core/values.py.

What has no type here is kept as what it is nearest to: a file and bytes as an object of one key, XML as text, what is JSON
as JSON. `valueInfo` is always an object. A value that says `transient` is stored like any other (docs/engine-rest.md).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from engine.core.values import Variable, accept, typed
from webapp.engine_rest.blueprint import told
from webapp.engine_rest.times import read as read_time
from webapp.engine_rest.times import written, written_date

FILE, BYTES = "engine-rest:file", "engine-rest:bytes"
"""The only key of an object that stands for a file, or for bytes."""

RANGES = {"short": 2**15, "integer": 2**31, "long": 2**63}


class Wrong(ValueError):
    """What was expected of a value, and what was found."""


# ---- from programs


def read_variables(sent: Any, *, where: str = "variables") -> dict[str, Variable]:
    """`{name: {value, type?, valueInfo?}}`, null or nothing, as variables. What is wrong ends the request with 400, all of it named."""
    if sent is None:
        return {}
    if not isinstance(sent, dict):
        raise told(400, f"{where}: expected an object of variables, found {_kind(sent)}")
    found: dict[str, Variable] = {}
    problems: list[str] = []
    for name, given in sent.items():
        try:
            found[name] = read_value(given)
        except Wrong as wrong:
            problems.append(f"Cannot convert variable {name!r}: {wrong}")
    accepted, refused = accept(found)
    problems += [f"{where} {name!r}: {text}" if name else f"{where}: {text}" for name, text in refused]
    if problems:
        raise told(400, "; ".join(problems)[:4_000].encode("utf-8", "replace").decode())
    return accepted


def read_value(given: Any) -> Variable:
    """One `{value, type?, valueInfo?}`. Raises Wrong."""
    if not isinstance(given, dict):
        raise Wrong(f"expected an object with a value, found {_kind(given)}")
    kind, value, info = given.get("type"), given.get("value"), given.get("valueInfo") or {}
    if not isinstance(info, dict):
        raise Wrong(f"expected an object as valueInfo, found {_kind(info)}")
    if kind is None:
        return _plain(value)
    if not isinstance(kind, str) or kind.lower() not in READERS:
        raise Wrong(f"unsupported value type {kind!r:.60}")
    if value is None and kind.lower() not in ("file", "bytes"):
        return Variable("null", None)
    return READERS[kind.lower()](value, info)


def _plain(value: Any) -> Variable:
    try:
        return typed(value)
    except TypeError as error:
        raise Wrong(str(error)) from error


def _whole(kind: str) -> Callable[[Any, Mapping[str, Any]], Variable]:
    def read(value: Any, _: Mapping[str, Any]) -> Variable:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"expected a whole number, found {_kind(value)}")
        if not -RANGES[kind] <= value < RANGES[kind]:
            raise Wrong(f"expected a whole number of type {kind}, found one of {value.bit_length()} bits")
        return _plain(value)

    return read


def _double(value: Any, _: Mapping[str, Any]) -> Variable:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"expected a number, found {_kind(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise Wrong("expected a number that a double can hold") from None
    if not math.isfinite(number):
        raise Wrong(f"expected a finite number, found {number}")
    return Variable("double", number)


def _string(value: Any, _: Mapping[str, Any]) -> Variable:
    if not isinstance(value, str):
        raise Wrong(f"expected text, found {_kind(value)}")
    return Variable("string", value)


def _boolean(value: Any, _: Mapping[str, Any]) -> Variable:
    if not isinstance(value, bool):
        raise Wrong(f"expected true or false, found {_kind(value)}")
    return Variable("boolean", value)


def _date(value: Any, _: Mapping[str, Any]) -> Variable:
    if not isinstance(value, str):
        raise Wrong(f"expected text with a time, found {_kind(value)}")
    try:
        return typed(read_time(value))
    except ValueError as error:
        raise Wrong(str(error)) from error


def _json(value: Any, _: Mapping[str, Any]) -> Variable:
    """JSON in a string, as Camunda has it; what is no string is taken as it stands."""
    if not isinstance(value, str):
        return _plain(value)
    try:
        return _plain(json.loads(value, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise Wrong(f"expected JSON in a string ({error})") from error


def _object(value: Any, info: Mapping[str, Any]) -> Variable:
    """Objects are kept where they are serialised as JSON; nothing here reads those of Java."""
    data_format = str(info.get("serializationDataFormat") or "application/json")
    if "json" not in data_format.lower():
        raise Wrong(f"expected an object serialised as application/json, found {data_format:.60}")
    return _json(value, info)


def _null(value: Any, _: Mapping[str, Any]) -> Variable:
    raise Wrong(f"expected null, found {_kind(value)}")


def _file(value: Any, info: Mapping[str, Any]) -> Variable:
    name = info.get("filename")
    if not isinstance(name, str) or not name:
        raise Wrong("expected valueInfo with a filename, found none")
    kept = {"filename": name, "mimetype": info.get("mimetype") or info.get("mimeType"), "encoding": info.get("encoding")}
    if any(not isinstance(each, str | None) for each in kept.values()):
        raise Wrong("expected texts in valueInfo: filename, mimetype, encoding")
    return Variable("json", {FILE: {**kept, "data": _base64(value)}})


def _bytes(value: Any, _: Mapping[str, Any]) -> Variable:
    return Variable("json", {BYTES: _base64(value)})


def _base64(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Wrong(f"expected base64 in a string, found {_kind(value)}")
    try:
        return base64.b64encode(base64.b64decode("".join(value.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        raise Wrong("expected base64 in a string, found what is none") from None


READERS: Mapping[str, Callable[[Any, Mapping[str, Any]], Variable]] = {
    "boolean": _boolean,
    "short": _whole("short"),
    "integer": _whole("integer"),
    "long": _whole("long"),
    "double": _double,
    "string": _string,
    "xml": _string,
    "date": _date,
    "json": _json,
    "object": _object,
    "null": _null,
    "file": _file,
    "bytes": _bytes,
}


# ---- to programs


def write_variables(variables: Mapping[str, Variable]) -> dict[str, dict[str, Any]]:
    return {name: write_value(variable) for name, variable in variables.items()}


def write_value(variable: Variable) -> dict[str, Any]:
    """`{type, value, valueInfo}`. A file's bytes are fetched apart: its value is null."""
    value = variable.value
    match variable.type:
        case "string":
            return _typed("String", value)
        case "boolean":
            return _typed("Boolean", value)
        case "integer":
            return _typed("Integer" if -RANGES["integer"] <= value < RANGES["integer"] else "Long", value)
        case "double":
            return _typed("Double", value)
        case "date":
            return _typed("Date", written_date(date.fromisoformat(value)))
        case "datetime":
            return _typed("Date", written(datetime.fromisoformat(value)))
        case "null":
            return _typed("Null", None)
    if (stored := file_of(variable)) is not None:
        return _typed("File", None, {name: stored[name] for name in ("filename", "mimetype", "encoding") if stored.get(name)})
    if isinstance(value, dict) and value.keys() == {BYTES}:
        return _typed("Bytes", value[BYTES])
    return _typed("Json", json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def file_of(variable: Variable) -> Mapping[str, Any] | None:
    """{filename, mimetype, encoding, data as base64} of a variable that stands for a file."""
    value = variable.value
    if variable.type == "json" and isinstance(value, dict) and value.keys() == {FILE} and isinstance(value[FILE], dict):
        found: dict[str, Any] = value[FILE]
        return found if isinstance(found.get("filename"), str) and isinstance(found.get("data"), str) else None
    return None


def bytes_of(variable: Variable) -> bytes | None:
    """The bytes of a file, or of a variable that stands for bytes; None for any other."""
    stored = file_of(variable)
    data = stored["data"] if stored is not None else variable.value.get(BYTES) if isinstance(variable.value, dict) else None
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except binascii.Error:  # somebody made such an object by hand
        return None


def _typed(kind: str, value: Any, info: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": kind, "value": value, "valueInfo": dict(info or {})}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _kind(value: Any) -> str:
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
    return "an object"
