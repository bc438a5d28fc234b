"""THE table of what an expression has without a variable: functions, and what it may know of the case that runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from engine.expressions import limits
from engine.expressions.clock import time_of
from engine.expressions.errors import ExpressionError, LimitExceeded
from engine.expressions.methods.method import Method
from engine.expressions.values import Scope, shown, storable


def _about(name: str) -> Callable[[Scope], Any]:
    """What the engine says about the case: `variables.about`, where a case runs."""

    def read(scope: Scope) -> Any:
        about: Mapping[str, Any] | None = getattr(scope.variables, "about", None)
        if about is None:
            raise ExpressionError(f"expected {name}, which is known while a case runs, found none here")
        return about[name]

    return read


def _from_json(scope: Scope, value: Any) -> Any:
    """`S(x)` and `JSON(x)` of Camunda Spin: a string is read as JSON, any other value is what it is already."""
    if not isinstance(value, str):
        return value
    if len(value) > limits.TEXT_LENGTH:
        raise LimitExceeded(f"expected JSON of at most {limits.TEXT_LENGTH} characters, found {len(value)}")
    scope.spend(len(value) // 20)
    try:
        found = json.loads(value, parse_float=Decimal, parse_int=_integer, parse_constant=_no_number)
    except ValueError as error:
        raise ExpressionError(f"expected JSON, found {shown(value)}: {error}") from error
    if "\\u" in value and any(storable(text) is None for text in _texts(found)):
        raise ExpressionError(f"expected JSON without NUL and halves of surrogate pairs, found {shown(value)}")
    return found


def _texts(value: Any) -> Iterator[str]:
    """The strings and keys in a value."""
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case list() as items:
                stack.extend(items)
            case dict() as entries:
                stack.extend(entries)
                stack.extend(entries.values())


def _integer(digits: str) -> int:
    if len(digits) > limits.DIGITS + 1:
        raise LimitExceeded(f"expected a number of at most {limits.DIGITS} digits in JSON, found {len(digits)} characters")
    return int(digits)


def _no_number(name: str) -> Any:
    raise ExpressionError(f"expected a number in JSON, found {name}")


FUNCTIONS: Mapping[str, Method] = {
    "JSON": Method(_from_json, 1, 1),
    "S": Method(_from_json, 1, 1),
    "dateTime": Method(time_of),
    "now": Method(time_of),
}
EXECUTION: Mapping[str, Method] = {  # keys of `execution`
    "businessKey": Method(_about("businessKey")),
    "caseInstanceId": Method(lambda scope: None),  # a case of CMMN, which no instance here is part of
    "id": Method(_about("processInstanceId")),
    "processBusinessKey": Method(_about("businessKey")),
    "processDefinitionKey": Method(_about("processDefinitionKey")),
    "processInstanceBusinessKey": Method(_about("businessKey")),
    "processInstanceId": Method(_about("processInstanceId")),
}
PROVIDED: Mapping[str, Method] = {**FUNCTIONS, **{f"execution.{name}": method for name, method in EXECUTION.items()}}
GETTERS: Mapping[str, str] = {  # methods of `execution` -> its keys
    "getBusinessKey": "businessKey",
    "getId": "id",
    "getProcessBusinessKey": "processBusinessKey",
    "getProcessInstanceId": "processInstanceId",
}
