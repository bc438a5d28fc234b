"""form-js schemas as forms of ours, or the reasons why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.bpmn.definition import FormField
from engine.expressions import constant
from engine.forms.definition import Drawn, Form
from engine.forms.fields import EMAIL
from engine.forms.reader import read_forms
from tests.forms.schemas import ORDER, component, schema, values


def form(content: bytes) -> Form:
    read = read_forms([("order.form", content)])
    assert read.problems == ()
    return read.files[0].form


def problem(content: bytes) -> tuple[str | None, int | None, str]:
    read = read_forms([("order.form", content)])
    assert len(read.problems) == 1, read.problems
    return read.problems[0].element_id, read.problems[0].line, read.problems[0].what


def test_every_component_that_takes_a_value_is_a_field() -> None:
    read = form(schema(*ORDER))
    assert read.key == "order"
    assert [field.id for field in read.fields] == ["title", "why", "pieces", "price", "place", "day", "mail", "pays", "sure"]
    fields = {field.id: field for field in read.fields}
    assert fields["title"] == FormField("title", "What", "string", required=True, max_length=40, description="As the shop calls it")
    assert fields["why"] == FormField("why", "Why", "string", lines=True)
    assert fields["pieces"] == FormField("pieces", "How many", "long", default=constant("1"), minimum="1", maximum="99")
    assert fields["price"] == FormField("price", "Price", "double", decimals=2, description="EUR")
    assert fields["place"] == FormField("place", "Where", "enum", values=(("office", "Office"), ("home", "Home")))
    assert fields["day"] == FormField("day", "When", "date")
    assert fields["mail"] == FormField("mail", "Mail", "string", pattern=EMAIL)
    assert fields["pays"] == FormField("pays", "Who pays", "enum", values=(("we", "We"), ("i", "I")), default=constant("we"))
    assert fields["sure"] == FormField("sure", "I am sure", "boolean", required=True, ticked=True)
    assert read.warnings == ()


def test_what_is_drawn_stands_between_the_fields() -> None:
    parts = form(schema(*ORDER)).parts
    assert parts[0] == Drawn("text", "# Order\nWhat shall we buy?")
    assert [part for part in parts if isinstance(part, Drawn)][1:] == [Drawn("line"), Drawn("heading", "Delivery")]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (component("taglist", "a"), "taglist Field_a is a component that is not read"),
        (component("checklist", "a"), "checklist Field_a is a component that is not read"),
        (component("dynamiclist", "a"), "dynamiclist Field_a is a component that is not read"),
        (component("table", "a"), "table Field_a is a component that is not read"),
        (component("filepicker", "a"), "filepicker Field_a is a component that is not read"),
        (component("expression", "a"), "expression Field_a is a component that is not read"),
        (component("textfield", "a", conditional={"hide": "=b"}), "textfield Field_a is shown under a condition (conditional)"),
        (component("textfield", "a", label="=b"), "textfield '=b' has an expression as its label, which is not evaluated"),
        (component("textarea", "a", description="{{b}}"), "textarea Field_a has an expression as its description, which is not evaluated"),
        (component("textfield", "a", readonly="=b"), "textfield Field_a has readonly '=b', which is not evaluated"),
        (component("textfield", "a", validate={"required": "=b"}), "textfield Field_a has required '=b', which is not evaluated"),
        (component("textfield", "a", validate={"pattern": "(?=b)"}), "textfield Field_a has the pattern '(?=b)'"),
        (component("textfield", "a", validate={"pattern": 7}), "textfield Field_a has the pattern '7'"),
        (component("textfield", "a", validate={"minLength": "=b"}), "textfield Field_a has minLength '=b'"),
        (component("textfield", "a", validate={"maxLength": -1}), "textfield Field_a has maxLength -1"),
        (component("textfield", "a", defaultValue=3), "textfield Field_a has the defaultValue '3' for the type string"),
        (component("textfield", "a", defaultValue="=b"), "textfield Field_a has the defaultValue '=b' for the type string"),
        (component("textfield", "a.b"), "textfield Field_a.b has the key 'a.b', which is a path"),
        (component("textfield"), "textfield Field_ has no key"),
        (component("number", "a", defaultValue="x"), "number Field_a has the defaultValue 'x' for the type double"),
        (component("number", "a", decimalDigits=0, defaultValue=1.5), "number Field_a has the defaultValue '1.5' for the type long"),
        (component("number", "a", validate={"min": "=b"}), "number Field_a has min '=b'"),
        (component("number", "a", serializeToString=True), "number Field_a makes its number a text (serializeToString)"),
        (component("checkbox", "a", defaultValue="yes"), "checkbox Field_a has the defaultValue 'yes' for the type boolean"),
        (component("select", "a"), "select Field_a has no values"),
        (component("select", "a", valuesKey="b"), "select Field_a takes its values from elsewhere (valuesKey)"),
        (component("select", "a", valuesExpression="=b"), "select Field_a takes its values from elsewhere (valuesExpression)"),
        (component("select", "a", values=[{"label": "B", "value": 1}]), "select Field_a has the value '1'"),
        (component("radio", "a", values=values(b="B"), defaultValue="c"), "radio Field_a has the defaultValue 'c' for the type enum"),
        (component("datetime", "a", subtype="time"), "datetime Field_a has the subtype 'time'"),
        (component("datetime", "a", subtype="datetime"), "datetime Field_a has the subtype 'datetime'"),
        (component("datetime", "a", disallowPassedDates=True), "datetime Field_a allows no days of the past (disallowPassedDates)"),
        (component("datetime", "a", defaultValue="2026-02-30"), "datetime Field_a has the defaultValue '2026-02-30' for the type date"),
        (component("group", path="a"), "group Field_ puts its fields into 'a' (path)"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused_by_component_and_reason(given: dict[str, Any], what: str) -> None:
    content = schema(given)
    lines = content.decode().splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if f'"id": "{given["id"]}"' in text)
    assert problem(content) == (given["id"], line, what)


def test_two_components_of_one_key_are_refused() -> None:
    assert problem(schema(component("textfield", "a"), component("number", "a")))[2].endswith("has the key 'a', as another component has")


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b'{"id": "a",\n "components": [}', 2, "the file is not JSON: Expecting value"),
        (b"[]", None, "the file holds no object"),
        (b'{"id": "a", "id": "b"}', None, "an object has the name 'id' twice"),
        (b'{"id": NaN}', None, "the file holds NaN, which is no number of JSON"),
        (b'{"id": "\xff"}', None, "byte 8 is no UTF-8"),
        (b'{"id": "\\u0000"}', None, "a text holds U+0000 or half of a surrogate pair"),
        (b'{"id": "\\ud800"}', None, "a text holds U+0000 or half of a surrogate pair"),
        (b'{"a":' * 60_000, None, "the file is nested too deeply"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, None, "the file is nested too deeply"),
        (b" " * 1_000_001, None, "the file has 1,000,001 bytes"),
        (b'{"components": []}', None, "the form has no id"),
        (b'{"id": 7, "components": []}', None, None),
        (b'{"id": "a", "components": {}}', 1, "the components are no list"),
        (b'{"id": "a", "components": [1]}', 1, "the component '1' is no object"),
        (b'{"id": "a", "schemaVersion": "x"}', 1, "the form has the schemaVersion 'x'"),
        (b'{"id": "a", "type": "b"}', 1, "the form has the type 'b'"),
    ],
)
def test_a_file_that_is_no_form_is_refused(content: bytes, line: int | None, what: str | None) -> None:
    found = read_forms([("order.form", content)]).problems
    assert found and found[-1].file == "order.form"
    assert what is None or (found[0].line, found[0].what) == (line, what)


def test_what_is_not_read_is_named() -> None:
    read = form(
        schema(
            component("textfield", "a", colour="red", validate={"colour": 1}, properties={"x": "y"}, layout={"row": "r", "columns": 8}),
            component("number", "b", increment=5),
            component("html", content="<b>Hello</b>"),
            component("text", text="{{name}}"),
            component("select", "c", values=[{"label": "D", "value": "d", "colour": 1}], searchable=True),
            exporter={"name": "form-js"},
            colour="red",
        )
    )
    assert {(warning.element_id, warning.what) for warning in read.warnings} == {
        ("Field_a", "textfield Field_a has the property 'colour', which is not read"),
        ("Field_a", "textfield Field_a has the property 'validate.colour', which is not read"),
        ("Field_a", "textfield Field_a has properties of its own, which are not read"),
        ("Field_b", "number Field_b has the property 'increment', which is not checked"),
        ("Field_", "html Field_ is not shown: what it draws is none of ours"),
        ("Field_", "text Field_ has an expression as its text, so it is not shown"),
        ("Field_c", "select Field_c has the property 'values.colour', which is not read"),
        ("Field_c", "select Field_c has the property 'searchable', which is not done"),
        ("order", "the form has the property 'colour', which is not read"),
    }
    assert all(warning.line for warning in read.warnings)


def test_two_files_of_one_key_are_refused() -> None:
    problems = read_forms([("a.form", schema()), ("b.form", schema())]).problems
    assert [(each.file, each.what) for each in problems] == [(name, "2 forms have the id 'order'") for name in ("a.form", "b.form")]


def test_S49_formatting_and_the_order_of_names_change_nothing() -> None:
    content = schema(*ORDER)
    other = json.dumps(dict(reversed(json.loads(content).items()))).encode()
    hashes = [read_forms([("order.form", each)]).files[0].content_hash for each in (content, other, content.replace(b"Why", b"Who"))]
    assert hashes[0] == hashes[1] != hashes[2]
