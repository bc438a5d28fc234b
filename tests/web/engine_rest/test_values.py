"""Typed values and times both ways, as clients of Camunda 7 send and expect them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from engine.core.values import Variable, typed
from webapp.engine_rest import times
from webapp.engine_rest.values import Wrong, bytes_of, file_of, read_value, write_value

PDF = base64.b64encode(b"%PDF\x00\xff").decode()


@pytest.mark.parametrize(
    ("sent", "kept", "shown"),
    [
        ({"value": "a"}, Variable("string", "a"), ("String", "a")),
        ({"value": 5, "type": None, "valueInfo": None}, Variable("integer", 5), ("Integer", 5)),
        ({"value": 5, "type": "LONG"}, Variable("integer", 5), ("Integer", 5)),
        ({"value": 2**40, "type": "long"}, Variable("integer", 2**40), ("Long", 2**40)),
        ({"value": 5.0, "type": "short"}, Variable("integer", 5), ("Integer", 5)),
        ({"value": 5, "type": "Double"}, Variable("double", 5.0), ("Double", 5.0)),
        ({"value": True, "type": "boolean"}, Variable("boolean", True), ("Boolean", True)),
        ({"value": None, "type": "String"}, Variable("null", None), ("Null", None)),
        ({"value": None}, Variable("null", None), ("Null", None)),
        ({"value": {"a": [1]}}, Variable("json", {"a": [1]}), ("Json", '{"a":[1]}')),
        ({"value": '{"a": [1]}', "type": "json"}, Variable("json", {"a": [1]}), ("Json", '{"a":[1]}')),
        ({"value": {"a": 1}, "type": "Json"}, Variable("json", {"a": 1}), ("Json", '{"a":1}')),
        (
            {"value": "[1]", "type": "Object", "valueInfo": {"objectTypeName": "x", "serializationDataFormat": "application/json"}},
            Variable("json", [1]),
            ("Json", "[1]"),
        ),
        (
            {"value": "2024-01-31T11:00:00.000+0100", "type": "Date"},
            Variable("datetime", "2024-01-31T11:00:00+01:00"),
            ("Date", "2024-01-31T10:00:00.000+0000"),
        ),
        ({"value": "<a/>", "type": "Xml"}, Variable("string", "<a/>"), ("String", "<a/>")),
        ({"value": "x", "type": "string", "valueInfo": {"transient": True}}, Variable("string", "x"), ("String", "x")),
    ],
)
def test_a_value_is_kept_by_its_type_and_shown_with_an_object_of_info(sent: dict[str, Any], kept: Variable, shown: tuple[str, Any]) -> None:
    found = read_value(sent)
    assert found == kept
    assert type(found.value) is type(kept.value)
    assert write_value(found) == {"type": shown[0], "value": shown[1], "valueInfo": {}}


def test_a_file_is_shown_without_its_bytes_which_are_fetched_apart() -> None:
    info = {"filename": "a.pdf", "mimetype": "application/pdf", "encoding": "UTF-8"}
    kept = read_value({"type": "file", "value": PDF, "valueInfo": info})
    assert write_value(kept) == {"type": "File", "value": None, "valueInfo": info}
    assert bytes_of(kept) == b"%PDF\x00\xff"
    bare = read_value({"type": "File", "value": None, "valueInfo": {"filename": "a"}})
    assert write_value(bare) == {"type": "File", "value": None, "valueInfo": {"filename": "a"}}
    assert bytes_of(bare) == b""


def test_bytes_stay_base64() -> None:
    kept = read_value({"type": "bytes", "value": PDF})
    assert write_value(kept) == {"type": "Bytes", "value": PDF, "valueInfo": {}}
    assert bytes_of(kept) == b"%PDF\x00\xff"
    assert bytes_of(typed("no bytes")) is None
    assert bytes_of(typed({"engine-rest:bytes": "no base64"})) is None
    assert file_of(typed({"engine-rest:file": "no file"})) is None


@pytest.mark.parametrize(
    "sent",
    [
        5,
        None,
        {"value": 1, "type": "Quaternion"},
        {"value": 1, "type": 5},
        {"value": 1, "valueInfo": 5},
        {"value": "5", "type": "Integer"},
        {"value": True, "type": "Integer"},
        {"value": 1.5, "type": "Integer"},
        {"value": 2**31, "type": "Integer"},
        {"value": 2**15, "type": "Short"},
        {"value": 2**63, "type": "Long"},
        {"value": "x", "type": "Double"},
        {"value": 10**400, "type": "Double"},
        {"value": 1, "type": "String"},
        {"value": 1, "type": "Boolean"},
        {"value": "x", "type": "Null"},
        {"value": "2024-01-31", "type": "Date"},
        {"value": "2024-13-31T10:00:00.000+0000", "type": "Date"},
        {"value": 5, "type": "Date"},
        {"value": "{", "type": "Json"},
        {"value": "NaN", "type": "Json"},
        {"value": "[" * 100_000, "type": "Json"},
        {"value": "rO0AB", "type": "Object", "valueInfo": {"serializationDataFormat": "application/x-java-serialized-object"}},
        {"value": PDF, "type": "File"},
        {"value": PDF, "type": "File", "valueInfo": {"filename": "a", "mimetype": 5}},
        {"value": "?", "type": "Bytes"},
        {"value": 5, "type": "Bytes"},
        {"value": 2**70},
    ],
)
def test_what_its_type_does_not_hold_is_wrong(sent: Any) -> None:
    with pytest.raises(Wrong):
        read_value(sent)


def test_a_day_without_a_time_is_its_midnight() -> None:
    assert write_value(typed(date(2024, 1, 31)))["value"] == "2024-01-31T00:00:00.000+0000"


def test_times_are_written_with_milliseconds_in_utc_and_read_with_any_zone() -> None:
    at = datetime(2024, 1, 31, 10, 0, 0, 123_999, UTC)
    assert times.written(at) == "2024-01-31T10:00:00.123+0000"
    assert times.written(at.astimezone(timezone(timedelta(hours=-3)))) == "2024-01-31T10:00:00.123+0000"
    assert times.written(None) is None
    for text in ("2024-01-31T10:00:00.123999+0000", "2024-01-31T10:00:00.123999Z", "2024-01-31T12:00:00.123999+02:00"):
        assert times.read(text) == at
    assert times.read("2024-01-31T10:00:00+0000").microsecond == 0
    for wrong in ("", "2024-01-31T10:00:00.000", "0001-01-01T00:00:00.000+0100", "2024-01-31T10:00:00.000+9900", "２024-01-31T10:00:00Z"):
        with pytest.raises(ValueError, match="expected a time like"):
            times.read(wrong)


def test_what_is_shown_is_json_that_a_client_reads_back() -> None:
    for value in (None, True, 5, 2**40, 1.5, "ä", {"a": [None, {"b": 1.5}]}, [], datetime(2024, 1, 31, tzinfo=UTC)):
        shown = json.loads(json.dumps(write_value(typed(value))))
        assert read_value(shown) == typed(value)
