"""What expressions mean: docs/expressions.md, line by line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.expressions import ExpressionError, ExpressionSyntaxError, MissingName, parse

VARIABLES: dict[str, Any] = {
    "count": 33,
    "price": Decimal("10.1"),
    "rate": Decimal("0.1"),
    "name": "Ada",
    "nothing": None,
    "yes": True,
    "no": False,
    "order": {"id": 7, "lines": [{"sku": "a-1", "n": 2}, {"sku": "b", "n": 5}], "response-x": "ok", "empty": "taken"},
    "items": ["red", "green"],
    "none": [],
    "due": date(2026, 11, 29),
    "at": datetime(2026, 11, 29, 10, tzinfo=UTC),
    "in1": 5,
    "not_x": False,
    "timer_duration": "PT5M",
    "a": {"b": 1},
    "a.b": "the one with a dot",
    "dinner.meal": "fish",
    "price net": 8,
    "größe": 3,
}


def value(text: str) -> Any:
    return parse(text).evaluate(VARIABLES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${count}", 33),
        ("#{count}", 33),
        ("  ${count}\n", 33),
        ("${order.lines[1].n}", 5),
        ("${order['lines'][0]['sku']}", "a-1"),
        ("${order.empty}", "taken"),
        ("${größe}", 3),
        ("${count == 33 && name == 'Ada'}", True),
        ("${count eq 33 and name ne 'Bo'}", True),
        ("${count lt 34 and count gt 32 and count le 33 and count ge 33}", True),
        ("${not yes or no}", False),
        ("${!no || nosuch}", True),
        ("${no and nosuch}", False),
        ("${yes ? 'a' : nosuch}", "a"),
        ("${no ? 1 : yes ? 2 : 3}", 2),
        ("${empty none && empty nothing && empty '' && !empty items && !empty 0}", True),
        ("${nothing == null}", True),
        ("${name != null}", True),
        ("${1 + 2 * 3 - 4}", 3),
        ("${(1 + 2) * 3}", 9),
        ("${10 - 3 - 2}", 5),
        ("${-count + 34}", 1),
        ("${7 / 2}", Decimal("3.5")),
        ("${7 div 2}", Decimal("3.5")),
        ("${7 % 4}", 3),
        ("${-7 mod 4}", -3),
        ("${1.5e3}", Decimal("1500")),
        ("${name + '!'}", "Ada!"),
        ("""${'it\\'s' + " \\"so\\""}""", 'it\'s "so"'),
        ("${'}' + '{'}", "}{"),
        ("${due < at || true}", None),
        ("${items.contains('red') && items.size() == 2}", True),
        ("${name.startsWith('A') && name.endsWith('a') && name.contains('d') && name.length() == 3}", True),
        ("${none.isEmpty() && order.containsKey('id')}", True),
        ("plain text", "plain text"),
        ("33", "33"),
        ("", ""),
        ("\\${count}", "${count}"),
        ("a $ b # c { } ", "a $ b # c { } "),
    ],
)
def test_an_expression_has_the_value_that_the_language_gives_it(text: str, expected: Any) -> None:
    if expected is None:
        with pytest.raises(ExpressionError, match="one kind"):
            value(text)
        return
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_S32_numbers_keep_their_kind() -> None:
    assert value("${count == 33}") is True
    assert value("Order ${count}") == "Order 33"
    assert parse("Order ${n}").evaluate({"n": Decimal("33.0")}) == "Order 33"
    assert parse("Order ${n}").evaluate({"n": 33.0}) == "Order 33"
    assert value("${price} net, ${rate}") == "10.1 net, 0.1"
    assert value("${0.1 + 0.2 == 0.3}") is True
    assert value("${0.1 + 0.2}") == Decimal("0.3")
    assert isinstance(value("${count + 1}"), int)


def test_S36_names_that_contain_a_keyword_or_a_sign_are_reached_by_a_documented_quoting() -> None:
    assert value("${in1 == 5 && !not_x && timer_duration == 'PT5M'}") is True
    assert value("${order['response-x']}") == "ok"
    assert value("${a.b}") == 1
    assert value("${`a.b`}") == "the one with a dot"
    assert value("${`price net` * 2}") == 16


def test_S36_a_dotted_variable_written_as_a_path_is_missing_and_the_message_says_how_to_write_it() -> None:
    with pytest.raises(MissingName, match=r"'dinner\.meal', which is written `dinner\.meal` in backticks") as caught:
        value("${dinner.meal}")
    assert caught.value.name == "dinner"
    with pytest.raises(MissingName, match="'order-x'"):
        value("${order-x}".replace("order-x", "`order-x`"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("${nosuch}", "nosuch"),
        ("${order.nosuch}", "nosuch"),
        ("${order['x y']}", "x y"),
        ("Hello ${nosuch}", "nosuch"),
        ("${empty nosuch}", "nosuch"),
    ],
)
def test_a_missing_name_is_never_null(text: str, name: str) -> None:
    with pytest.raises(MissingName) as caught:
        value(text)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("${count == '33'}", "the number 33 and the string '33'"),
        ("${yes == 1}", "true and the number 1"),
        ("${count < 'x'}", "one kind beside <"),
        ("${count < nothing}", "the number 33 and null"),
        ("${items < items}", "numbers, strings or dates"),
        ("${count && yes}", "true or false beside and, found the number 33"),
        ("${!name}", "true or false after not, found the string 'Ada'"),
        ("${nothing ? 1 : 2}", "true or false before ?, found null"),
        ("${name + count}", "two numbers or two strings"),
        ("${name - 1}", "numbers beside -"),
        ("${-name}", "numbers beside -"),
        ("${1 / 0}", "a divisor other than 0"),
        ("${1.5 % 0}", "a divisor other than 0"),
        ("${items[2]}", "an index from 0 to 1, found 2"),
        ("${items[-1]}", "an index from 0 to 1, found -1"),
        ("${items['0']}", "a whole number as index"),
        ("${items[true]}", "a whole number as index"),
        ("${items.first}", "an object with a key 'first', found a list of 2"),
        ("${name[0]}", "a list or an object before ["),
        ("${order[0]}", "a string as key"),
        ("${nothing.x}", "an object with a key 'x', found null"),
        ("${count.size()}", "a string, list or object before .size()"),
        ("${name.contains(1)}", "a string with .contains()"),
    ],
)
def test_what_has_no_value_says_what_was_expected_and_what_was_found(text: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("${", "the end of the text"),
        ("${}", "expected a value, found the end"),
        ("${a b}", "expected an operator or the end, found b"),
        ("${a = 1}", "equality is written == or eq (character 5)"),
        ("${1 +}", "expected a value"),
        ("${(1}", "expected ), found the end"),
        ("${a ? 1}", "expected :, found the end"),
        ("${a[1}", "expected ]"),
        ("${a.}", "expected a value"),
        ("${a.1}", "expected a key after the dot"),
        ("${'a}", "a closing '"),
        ("${'\\q'}", "found \\q"),
        ("${a.getClass()}", "a method that an expression may call"),
        ("${a.contains()}", "1 argument for contains()"),
        ("${execution()}", "a call of execution()"),
        ("${``}", "a name between backticks"),
        ("${${a}}", "not nested"),
        ("${a; b}", "found ';'"),
        ("x ${a} ${b", "the end of the text"),
        ("${a == == b}", "expected a value"),
        ("${and}", "expected a value"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_place(text: str, part: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(text)
    assert part in str(caught.value)


def test_a_template_prints_every_kind_and_null_as_nothing() -> None:
    assert (
        value("${yes} ${nothing}, ${due}, ${at}, ${items}, ${a}")
        == 'true , 2026-11-29, 2026-11-29T10:00:00+00:00, ["red","green"], {"b":1}'
    )
    assert parse("${n}!").evaluate({"n": Decimal("-0.0")}) == "0!"
    assert parse("${n}!").evaluate({"n": Decimal("1E+3")}) == "1000!"
    assert parse("<${n}>").evaluate({"n": [Decimal("1.50"), Decimal(2)]}) == "<[1.5,2]>"


def test_values_of_unlike_kinds_inside_lists_are_unequal() -> None:
    assert parse("${a == b}").evaluate({"a": [1, {"x": True}], "b": [1, {"x": 1}]}) is False
    assert parse("${a == b}").evaluate({"a": [1, {"x": True}], "b": [Decimal("1.0"), {"x": True}]}) is True
    assert parse("${a.contains(1)}").evaluate({"a": [True, "1"]}) is False


def test_an_expression_says_what_it_is() -> None:
    assert parse("plain").is_constant
    assert not parse("${a}").is_constant
    assert parse("a ${b}").is_template
    assert parse("${a.b[c] && d.contains(`e f`)}").names == {"a", "c", "d", "e f"}
    assert parse("${a}") == parse("${a}")


def test_a_language_that_is_not_read_is_refused_by_name() -> None:
    with pytest.raises(ExpressionError, match="juel or feel, found groovy"):
        parse("1", language="groovy")
