"""Values of a model's expressions in the shape that a row needs. What does not fit is an incident that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.bpmn.definition import Node
from engine.bpmn.retries import parse_retry
from engine.bpmn.times import TimerError, parse_due
from engine.core.run import CannotGoOn, Run
from engine.core.state import Names, Token
from engine.core.values import Variable, typed
from engine.expressions import Expression
from engine.expressions.values import Scope as Evaluation
from engine.expressions.values import text

NORMAL_PRIORITY = 5


def text_of(expression: Expression | None, names: Names) -> str:
    """One line of text; nothing for null or no expression."""
    return "" if expression is None else as_text(expression.evaluate(names))


def as_text(value: Any) -> str:
    """A value as text: 33.0 is 33, null is nothing, a date is ISO 8601."""
    return text(value, Evaluation({}))


def truth_of(expression: Expression, names: Names, what: str) -> bool:
    """Whether an expression is true. Only true and false are an answer."""
    value = expression.evaluate(names)
    if value is True or value is False:
        return bool(value)
    raise CannotGoOn("expression", f"{what}: expected true or false from {expression.text}, found {value!r:.200}")


def one_of(expression: Expression | None, names: Names, what: str) -> str | None:
    """One name, or None where the model or its value names nobody."""
    found = many_of((expression,), names, what) if expression is not None else ()
    if len(found) > 1:
        raise CannotGoOn("expression", f"expected {what}, found {len(found)}: {', '.join(found)}")
    return found[0] if found else None


def many_of(expressions: Iterable[Expression], names: Names, what: str) -> tuple[str, ...]:
    """Names, each once, in order: every expression gives one, several with commas between them, or a list."""
    found: dict[str, None] = {}
    for expression in expressions:
        value = expression.evaluate(names)
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, bool | Mapping | list | tuple):
                raise CannotGoOn("expression", f"expected {what} as text or a list of texts, found {item!r} from {expression.text}")
            found.update(dict.fromkeys(part.strip() for part in as_text(item).split(",")))
    found.pop("", None)
    return tuple(found)


def number_of(expression: Expression | None, names: Names, what: str, *, default: int, largest: int) -> int:
    """A whole number from 0 to `largest`; what lies outside becomes the nearest of the two."""
    value = expression.evaluate(names) if expression is not None else None
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        value = int(value.strip()[:12])
    match value:
        case None | "":
            return default
        case bool():
            pass
        case int() | Decimal() if value == int(value):
            return min(max(int(value), 0), largest)
    raise CannotGoOn("expression", f"expected {what} from 0 to {largest}, found {value!r}")


def priority_of_work(run: Run, token: Token, expression: Expression | None) -> int:
    """0 to 9, of a job or an external task."""
    if expression is None:
        return NORMAL_PRIORITY
    return number_of(expression, run.names(token.scope), "a priority", default=NORMAL_PRIORITY, largest=9)


def retries_of_work(run: Run, token: Token, retry: str | Expression | None, attempts: int) -> tuple[str | None, int]:
    """The retry policy of new work, and its attempts. What an expression gives that is no policy is an incident."""
    if retry is None or isinstance(retry, str):
        return retry, attempts
    value = as_text(retry.evaluate(run.names(token.scope)))
    if not value.strip():
        return None, attempts
    try:
        found = parse_retry(value)
    except TimerError as error:
        raise CannotGoOn("expression", f"the retries from {retry.text}: {error}") from error
    return found.text, found.attempts


def version_of(expression: Expression | None, names: Names, node: Node, kind: str) -> int:
    """The number of a version; `kind` of the incident where it is none."""
    value = expression.evaluate(names) if expression is not None else None
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 10:
        return int(value.strip())
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and 0 < value < 10**9 and value == int(value):
        return int(value)
    raise CannotGoOn(kind, f"{node.name or node.id}: expected the number of a version, found {value!r:.200}")


def date_of(expression: Expression | None, names: Names, now: datetime, *, zone: str) -> datetime | None:
    """When something is due (`parse_due`): a date, a date with time, a duration from now; None for null or empty text."""
    value = expression.evaluate(names) if expression is not None else None
    return None if value is None or value == "" else parse_due(value, now=now, zone=zone)


def inputs_of(run: Run, token: Token, inputs: Iterable[tuple[str, Expression]]) -> dict[str, Any]:
    """The inputs of an activity, in order; each sees those before it."""
    values: dict[str, Any] = {}
    names = run.names(token.scope, values)
    for name, expression in inputs:
        values[name] = expression.evaluate(names)
    return values


def plain(value: Any, what: str) -> Any:
    """A value as JSON has it."""
    try:
        return typed(value).value
    except TypeError as error:
        raise CannotGoOn("expression", f"{what}: {error}") from error


def typed_inputs(values: Mapping[str, Any]) -> dict[str, Variable]:
    """Inputs as variables."""
    inputs = {}
    for name, value in values.items():
        try:
            inputs[name] = typed(value)
        except TypeError as error:
            raise CannotGoOn("expression", f"input {name}: {error}") from error
    return inputs


def brought(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Variable]:
    """What `carried` made, as variables again."""
    return {name: Variable(each["type"], each["value"]) for name, each in stored.items()}


def carried(inputs: Mapping[str, Variable]) -> dict[str, dict[str, Any]]:
    """Inputs as a job carries them: name -> {type, value}."""
    return {name: {"type": variable.type, "value": variable.value} for name, variable in inputs.items()}
