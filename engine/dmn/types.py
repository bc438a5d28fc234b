"""Types (7.3.2 and 10.3.2.9): what a type reference names, and values brought to it. What does not fit is an error, never null unseen."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol, cast

from engine.dmn.definition import Type
from engine.dmn.errors import DecisionError
from engine.expressions import Expression, ExpressionError
from engine.expressions.limits import EXPONENT
from engine.expressions.values import Scope, shown, text

# What models write -> the kind; blanks and hyphens left out, in lower case.
KINDS: Mapping[str, str | None] = {
    "any": None,
    "string": "string",
    "boolean": "boolean",
    "integer": "integer",
    "long": "integer",
    "number": "number",
    "double": "double",
    "date": "date",
    "time": "time",
    "datetime": "datetime",
    "dateandtime": "datetime",
    "daytimeduration": "duration",
    "daysandtimeduration": "duration",
    "yearmonthduration": "duration",
    "yearsandmonthsduration": "duration",
    "context": "context",
}
_WHOLE = 2**63


def simple(reference: str) -> Type | None:
    """The built-in type that a reference names, `feel:string` and `string` alike; None for any other name."""
    name = reference.strip().rpartition(":")[2]
    kind = name.lower().replace(" ", "").replace("-", "")
    return Type(name, KINDS[kind]) if kind in KINDS else None


class Meter(Protocol):
    """Who evaluates, and counts the steps of a whole decision. Raises DecisionError."""

    def evaluated(self, expression: Expression, names: Mapping[str, Any], where: str) -> Any: ...

    def pay(self, steps: int, where: str) -> None: ...


def coerce(value: Any, type: Type, where: str, variables: Mapping[str, Any], meter: Meter) -> Any:
    """The value as its type has it. Null is of every type. Raises DecisionError that names `where`."""
    if value is None:
        return None
    if type.is_list:
        items = value if isinstance(value, list | tuple) else [value]  # 10.3.2.9.4: to a list of one
        meter.pay(len(items), where)
        return [_one(item, type, where, variables, meter) for item in items]
    if isinstance(value, list | tuple) and type.base is not None and len(value) == 1:
        value = value[0]  # and from a list of one
    return _one(value, type, where, variables, meter)


def _one(value: Any, type: Type, where: str, variables: Mapping[str, Any], meter: Meter) -> Any:
    if value is None:
        return None
    if type.base is not None:
        value = _COERCIONS[type.base](value, type, where)
    if type.components:
        meter.pay(len(value), where)
        parts = dict(value)
        for name, part in type.components:
            if name in parts:
                parts[name] = coerce(parts[name], part, f"{where}, {name}", variables, meter)
        value = parts
    if type.allowed is not None:
        # A chain, so that no variable is read that the tests do not name.
        names = ChainMap({"?": value}, cast(MutableMapping[str, Any], variables))
        if meter.evaluated(type.allowed, names, where) is not True:
            raise DecisionError("type", f"{where}: expected one of {type.allowed.text} ({type.name}), found {told(value)}")
    return value


def told(value: Any) -> str:
    """A value in a message."""
    try:
        return shown(value)
    except ExpressionError:
        return repr(value)[:80]


def _refuse(value: Any, type: Type, where: str, but: str) -> DecisionError:
    return DecisionError("type", f"{where}: expected {but} ({type.name}), found {told(value)}")


def _string(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | Mapping):
        raise _refuse(value, type, where, "text")
    try:
        return text(value, Scope({}))
    except ExpressionError as error:
        raise DecisionError("expression", f"{where}: {error}") from error


def _boolean(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _refuse(value, type, where, "true or false")


def _number(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, str) and len(value) < 100:
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            raise _refuse(value, type, where, "a number") from None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _refuse(value, type, where, "a number")
    if isinstance(value, Decimal) and not (value.is_finite() and (not value or abs(value.adjusted()) <= EXPONENT)):
        raise _refuse(value, type, where, f"a finite number with an exponent up to {EXPONENT}")
    return value


def _double(value: Any, type: Type, where: str) -> Any:
    """A whole one keeps a fraction of zero: so it stays a double."""
    number = Decimal(_number(value, type, where))
    return Decimal(f"{int(number)}.0") if abs(number) < _WHOLE and number == int(number) else number


def _integer(value: Any, type: Type, where: str) -> Any:
    number = _number(value, type, where)
    if abs(number) >= _WHOLE or number != int(number):
        raise _refuse(value, type, where, "a whole number within 64 bits")
    return int(number)


def _date(value: Any, type: Type, where: str) -> Any:
    """A date with a time stays one: other engines call that a date."""
    if isinstance(value, date):
        return value
    return _read(value, type, where, "a date such as 2026-11-29", datetime.fromisoformat if "T" in str(value) else date.fromisoformat)


def _datetime(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, str):
        value = _read(value, type, where, "a date and time such as 2026-11-29T10:00:00Z", datetime.fromisoformat)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise _refuse(value, type, where, "a date and time")


def _time(value: Any, type: Type, where: str) -> Any:
    return value if isinstance(value, time) else _read(value, type, where, "a time such as 10:00:00", time.fromisoformat)


def _read(value: Any, type: Type, where: str, but: str, read: Callable[[str], Any]) -> Any:
    if not isinstance(value, str) or len(value) > 100:
        raise _refuse(value, type, where, but)
    try:
        return read(value.strip())
    except ValueError:
        raise _refuse(value, type, where, but) from None


def _duration(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, timedelta) or hasattr(value, "months"):
        return value
    raise _refuse(value, type, where, "a duration")


def _context(value: Any, type: Type, where: str) -> Any:
    if isinstance(value, Mapping):
        return value
    raise _refuse(value, type, where, "a context")


_COERCIONS: Mapping[str, Callable[[Any, Type, str], Any]] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "double": _double,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "duration": _duration,
    "context": _context,
}
