"""A model's form fields as controls on a page, and back: what was typed as typed variables, or what is wrong with it.

Everything typed is kept as it was typed, wrong or not. A read-only field shows its value and ignores what is sent.
A blank optional field becomes null (a text stays an empty text). An unticked box is false.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import re2

from engine.bpmn.definition import FormField
from engine.core.values import Variable, native
from engine.expressions import ExpressionError

log = logging.getLogger("baton.forms")

RESERVED = frozenset({"csrf_token", "request_id", "business_key", "form_version", "back"})  # names that the page's own fields have
MAX_TEXT = 100_000
MANY_CHOICES = 4
LONG_TEXT = 200
INTEGER = re.compile(r"[+-]?\d{1,19}")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


class Wrong(ValueError):
    """What was typed cannot be the field's value. The message tells the person what to write instead."""


@dataclass(frozen=True, slots=True)
class Control:
    """One field on a page. `text` is what stands in it; `problem` what is wrong with that."""

    field: FormField
    text: str
    problem: str = ""

    @property
    def name(self) -> str:
        return f"field.{self.field.id}" if self.field.id in RESERVED else self.field.id

    @property
    def dom_id(self) -> str:
        """Unique on the page and free of spaces, whatever the model calls its field."""
        return "f-" + re.sub(r"[^A-Za-z0-9_-]", lambda found: f".{ord(found[0]):x}.", self.field.id)

    @property
    def widget(self) -> str:
        """How it is drawn: text, lines, whole, decimal, box, day, pick (few choices), list (many)."""
        match self.field.type:
            case "long":
                return "whole"
            case "double":
                return "decimal"
            case "boolean":
                return "box"
            case "date":
                return "day"
            case "enum":
                return "pick" if len(self.field.values) <= MANY_CHOICES else "list"
        long = self.field.lines or (self.field.max_length or 0) > LONG_TEXT or "\n" in self.text or len(self.text) > LONG_TEXT
        return "lines" if long else "text"

    @property
    def checked(self) -> bool:
        return self.text == "true"

    @property
    def hint(self) -> str:
        """What may be written: the form's own words, and its limits."""
        return " · ".join(part for part in (self.field.description, self._limits) if part)

    @property
    def _limits(self) -> str:
        low, high = self.field.minimum, self.field.maximum
        if low is not None and high is not None:
            return f"{low} to {high}"
        if low is not None:
            return f"{low} or {'later' if self.field.type == 'date' else 'more'}"
        if high is not None:
            return f"{high} or {'earlier' if self.field.type == 'date' else 'less'}"
        return ""

    @property
    def means(self) -> Variable | None:
        """The typed value; None where what was typed has none."""
        try:
            return _value(self.field, self.text)
        except Wrong:
            return None

    @property
    def said(self) -> str:
        """The typed value in words, for showing it where it can no longer be changed."""
        if self.field.type == "boolean":
            return "Yes" if self.checked else "No"
        return dict(self.field.values).get(self.text, self.text)


@dataclass(frozen=True, slots=True)
class Form:
    """All fields with their problems, in the model's order."""

    controls: tuple[Control, ...]

    @property
    def problems(self) -> tuple[Control, ...]:
        return tuple(control for control in self.controls if control.problem)


def fresh_form(fields: Sequence[FormField], variables: Mapping[str, Variable]) -> Form:
    """The form as it opens: the case's own value of that name, else the model's default."""
    return Form(tuple(Control(field, _first_text(field, variables)) for field in fields))


def read_form(fields: Sequence[FormField], sent: Mapping[str, str], variables: Mapping[str, Variable]) -> tuple[Form, dict[str, Variable]]:
    """What was sent, as typed values of the fields that may be written, beside the form as typed with every problem."""
    controls: list[Control] = []
    values: dict[str, Variable] = {}
    for field in fields:
        blank = Control(field, "")
        if field.readonly:
            controls.append(Control(field, _first_text(field, variables)))
            continue
        text = _sent_text(field, sent, blank.name)
        try:
            values[field.id] = _value(field, text)
            controls.append(Control(field, text))
        except Wrong as wrong:
            controls.append(Control(field, text, str(wrong)))
    return Form(tuple(controls)), values


# ---- what stands in a field


def _first_text(field: FormField, variables: Mapping[str, Variable]) -> str:
    if field.id in variables:
        return _as_text(field, native(variables[field.id]))
    if field.default is None:
        return ""
    try:
        value = field.default.evaluate({name: native(variable) for name, variable in variables.items()})
    except ExpressionError as error:
        log.info("default_failed field=%s error=%s", field.id, error)
        return ""
    return _as_text(field, value)


def _as_text(field: FormField, value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.date().isoformat() if field.type == "date" else value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    text = str(value)
    return _iso_day(text, field.date_pattern) if field.type == "date" else text


def _iso_day(text: str, pattern: str | None) -> str:
    """A default written in the model's own date pattern (dd/MM/yyyy and the like), as ISO."""
    if pattern is None:
        return text
    form = pattern.replace("yyyy", "%Y").replace("MM", "%m").replace("dd", "%d").replace("HH", "%H").replace("mm", "%M").replace("ss", "%S")
    try:
        return datetime.strptime(text, form).date().isoformat()
    except ValueError:
        return text


def _sent_text(field: FormField, sent: Mapping[str, str], name: str) -> str:
    if field.type == "boolean":
        return "true" if sent.get(name, "").lower() in ("true", "on", "1", "yes") else "false"
    text = sent.get(name, "").replace("\r\n", "\n").replace("\0", "")
    return text if field.type == "string" else text.strip()


# ---- what it means


def _value(field: FormField, text: str) -> Variable:
    if field.type == "boolean":
        if field.ticked and text != "true":
            raise Wrong("Tick this.")
        return Variable("boolean", text == "true")
    if not text.strip():
        if field.required:
            raise Wrong("Choose one." if field.type == "enum" else "Choose a day." if field.type == "date" else "Fill this in.")
        return Variable("string", text) if field.type == "string" else Variable("null", None)
    match field.type:
        case "long":
            return Variable("integer", _whole(field, text))
        case "double":
            return Variable("double", float(_number(field, text)))
        case "date":
            return Variable("date", _day(field, text).isoformat())
        case "enum":
            if text not in dict(field.values):
                raise Wrong("Choose one of the list.")
            return Variable("string", text)
    return Variable("string", _text(field, text))


def _whole(field: FormField, text: str) -> int:
    if not INTEGER.fullmatch(text):
        raise Wrong("Write a whole number, digits only.")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise Wrong("This number is too large.")
    _within(field, Decimal(number))
    return number


def _number(field: FormField, text: str) -> Decimal:
    if not NUMBER.fullmatch(text):
        raise Wrong(_number_advice(text))
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise Wrong("Write a number like 12.50.") from error
    if number and abs(number.adjusted()) > 300:
        raise Wrong("This number is too large.")
    if field.decimals is not None and -int(number.normalize().as_tuple().exponent) > field.decimals:
        raise Wrong(f"Write at most {field.decimals} decimals.")
    _within(field, number)
    return number


def _number_advice(text: str) -> str:
    """Commas, dots and blanks between digits mean different things in different countries: say what to write, never guess."""
    signs = re.sub(r"[^.,' \u00a0\u202f]", "", text)
    whole, _, decimals = re.sub(r"[,' \u00a0\u202f]", ".", text).rpartition(".")
    joined, plain = f"{whole}{decimals}".replace(".", ""), f"{whole.replace('.', '')}.{decimals}"
    if not NUMBER.fullmatch(plain) or not whole:
        return "Write a number like 12.50."
    if len(set(signs)) > 1:
        return f"“{text}” has two kinds of separators. Write {plain}."
    if len(signs) == 1 and len(decimals) == 3:
        return f"“{text}” can be read in two ways. Write {joined} or {plain}."
    return f"Write {plain if len(signs) == 1 else joined}: a dot before the decimals, nothing between the digits."


def _within(field: FormField, number: Decimal) -> None:
    if field.minimum is not None and number < Decimal(field.minimum):
        raise Wrong(f"Write {field.minimum} or more.")
    if field.maximum is not None and number > Decimal(field.maximum):
        raise Wrong(f"Write {field.maximum} or less.")


def _day(field: FormField, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Wrong("Write a day like 2026-11-30.") from None
    if field.minimum is not None and day < date.fromisoformat(field.minimum):
        raise Wrong(f"Choose {field.minimum} or later.")
    if field.maximum is not None and day > date.fromisoformat(field.maximum):
        raise Wrong(f"Choose {field.maximum} or earlier.")
    return day


def _text(field: FormField, text: str) -> str:
    longest = min(field.max_length or MAX_TEXT, MAX_TEXT)
    if len(text) > longest:
        raise Wrong(f"Write at most {longest:,} characters; these are {len(text):,}.")
    if field.min_length is not None and len(text) < field.min_length:
        raise Wrong(f"Write at least {field.min_length:,} characters; these are {len(text):,}.")
    if field.pattern is not None and re2.search(field.pattern, text) is None:
        raise Wrong("This does not have the form that is asked for.")
    return text
