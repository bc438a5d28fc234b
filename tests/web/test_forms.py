"""Form fields: what stands in them, what they accept, what they say. Pure: no database, no web."""

from __future__ import annotations

import pytest

from engine.bpmn.definition import FormField
from engine.core.values import Variable
from engine.expressions import parse
from webapp.forms.fields import Control, fresh_form, read_form


def read_one(field: FormField, text: str | None) -> tuple[Variable | None, str]:
    form, values = read_form([field], {} if text is None else {field.id: text}, {})
    return values.get(field.id), form.controls[0].problem


@pytest.mark.parametrize(
    ("field", "text", "variable"),
    [
        (FormField("a", "A", "string"), "two\r\nlines", Variable("string", "two\nlines")),
        (FormField("a", "A", "string"), "", Variable("string", "")),
        (FormField("a", "A", "long"), " -42 ", Variable("integer", -42)),
        (FormField("a", "A", "long"), str(2**63 - 1), Variable("integer", 2**63 - 1)),
        (FormField("a", "A", "long"), "", Variable("null", None)),
        (FormField("a", "A", "double"), "12.5", Variable("double", 12.5)),
        (FormField("a", "A", "boolean"), None, Variable("boolean", False)),
        (FormField("a", "A", "boolean"), "true", Variable("boolean", True)),
        (FormField("a", "A", "date"), "2026-02-28", Variable("date", "2026-02-28")),
        (FormField("a", "A", "enum", values=(("x", "X"),)), "x", Variable("string", "x")),
    ],
)
def test_a_value_keeps_its_type(field: FormField, text: str | None, variable: Variable) -> None:
    assert read_one(field, text) == (variable, "")


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        (FormField("a", "A", "string", required=True), "  ", "Fill this in."),
        (FormField("a", "A", "string", max_length=3), "four", "Write at most 3 characters; these are 4."),
        (FormField("a", "A", "string", min_length=3), "no", "Write at least 3 characters; these are 2."),
        (FormField("a", "A", "long"), "1.5", "Write a whole number, digits only."),
        (FormField("a", "A", "long"), "1" * 19, ""),
        (FormField("a", "A", "long"), "9" * 19, "This number is too large."),
        (FormField("a", "A", "long", minimum="1"), "0", "Write 1 or more."),
        (FormField("a", "A", "long", maximum="9"), "10", "Write 9 or less."),
        (FormField("a", "A", "double"), "1e5", "Write a number like 12.50."),
        (FormField("a", "A", "double"), "nan", "Write a number like 12.50."),
        (FormField("a", "A", "double"), "12.480,00", "“12.480,00” has two kinds of separators. Write 12480.00."),
        (FormField("a", "A", "double"), "12,480", "“12,480” can be read in two ways. Write 12480 or 12.480."),
        (FormField("a", "A", "double"), "12,5", "Write 12.5: a dot before the decimals, nothing between the digits."),
        (FormField("a", "A", "date"), "30.11.2026", "Write a day like 2026-11-30."),
        (FormField("a", "A", "date"), "2026-02-30", "Write a day like 2026-11-30."),
        (FormField("a", "A", "date", minimum="2026-12-01"), "2026-11-30", "Choose 2026-12-01 or later."),
        (FormField("a", "A", "enum", values=(("x", "X"),)), "y", "Choose one of the list."),
        (FormField("a", "A", "enum", values=(("x", "X"),), required=True), "", "Choose one."),
    ],
)
def test_what_cannot_be_used_is_named_in_the_fields_own_words(field: FormField, text: str, problem: str) -> None:
    assert read_one(field, text)[1] == problem


def test_a_read_only_field_ignores_what_is_sent() -> None:
    field = FormField("limit", "Limit", "long", readonly=True)
    form, values = read_form([field], {"limit": "999999"}, {"limit": Variable("integer", 10)})
    assert values == {} and form.controls[0].text == "10"


def test_the_cases_own_value_goes_before_the_default_and_a_default_may_compute() -> None:
    field = FormField("total", "Total", "double", default=parse("${net * 2}"))
    assert fresh_form([field], {"net": Variable("double", 1.5)}).controls[0].text in ("3.0", "3")
    assert fresh_form([field], {"net": Variable("double", 1.5), "total": Variable("double", 9.0)}).controls[0].text == "9.0"


def test_a_default_that_has_no_value_leaves_the_field_blank() -> None:
    assert fresh_form([FormField("a", "A", "string", default=parse("${missing}"))], {}).controls[0].text == ""


def test_a_default_in_the_models_date_pattern_becomes_a_day() -> None:
    field = FormField("day", "Day", "date", default=parse("30/11/2026"), date_pattern="dd/MM/yyyy")
    assert fresh_form([field], {}).controls[0].text == "2026-11-30"


@pytest.mark.parametrize("name", ["csrf_token", "request_id"])
def test_a_field_called_as_the_pages_own_is_sent_under_another_name(name: str) -> None:
    field = FormField(name, "A", "string")
    assert Control(field, "").name == f"field.{name}"
    assert read_form([field], {name: "the page's", f"field.{name}": "typed"}, {})[1] == {name: Variable("string", "typed")}


def test_every_name_makes_a_usable_id() -> None:
    assert Control(FormField('näh me"<x>', "A", "string"), "").dom_id == "f-n.e4.h.20.me.22..3c.x.3e."
