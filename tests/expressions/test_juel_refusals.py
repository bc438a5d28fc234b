"""What `${…}` refuses: at deployment by name, place and what may be meant; while it is evaluated by what was expected and found."""

from __future__ import annotations

import pytest

from engine.expressions import ExpressionError, ExpressionSyntaxError, MissingName, parse
from tests.expressions.juel_variables import VARIABLES, value

UNKNOWN = [  # text, name, character (counted from 1, of `${…}`), what may be meant
    ("name.toUppercase()", "toUppercase()", 8, "is toUpperCase() meant?"),
    ("name.startWith('Z')", "startWith()", 8, "is startsWith() meant?"),
    ("name.lenght()", "lenght()", 8, "is length() meant?"),
    ("colours.sizes()", "sizes()", 11, "is size() meant?"),
    ("name.matches('Z.*')", "matches()", 8, "regular expressions are not run"),
    ("name.replaceAll('o', '0')", "replaceAll()", 8, "replace() replaces every occurrence"),
    ("order.getCustomer()", "getCustomer()", 9, "a key of an object is read by .customer"),
    ("order.isPaid()", "isPaid()", 9, "a key of an object is read by .paid"),
    ("shop.ship(order)", "ship()", 8, "shop is a variable here, never a bean"),
    ("shops.eu.ship(order)", "ship()", 12, "shops.eu is a variable here, never a bean"),
    ("name == 'Zoë' && shop.openNow()", "openNow()", 25, "a handler does in a task before"),
    ("colours.stream()", "stream()", 11, "a handler, or FEEL"),
    ("order.put('a', 1)", "put()", 9, "an expression changes nothing"),
    ("execution.setVariable('a', 1)", "setVariable()", 13, "an expression changes nothing"),
    ("execution.getVariableLocal('a')", "getVariableLocal()", 13, ""),
    ("execution.currentActivity", "currentActivity", 13, "getVariable('x')"),
    ("execution.processInstanceID", "processInstanceID", 13, "is processInstanceId meant?"),
    ("execution", "the execution", 3, "written `execution` in backticks"),
    ("execution == null", "the execution", 3, "execution.businessKey"),
    ("currentUser()", "currentUser()", 3, "initiator"),
    ("nows()", "nows()", 3, "is now() meant?"),
    ("datetime()", "datetime()", 3, "is dateTime() meant?"),
    ("XML(payload)", "XML()", 3, "a handler may read it"),
    ("calculate(1)", "calculate()", 3, ""),
    ("`now`()", "now()", 3, ""),
    ("''.getClass().forName('java.lang.Runtime')", "getClass()", 6, ""),
]

SYNTAX = [  # text of the expression, part of the message, character
    ("name.equals()", "1 argument for equals(), found 0", 8),
    ("name.replace('a')", "2 arguments for replace(), found 1", 8),
    ("name.substring(1, 2, 3)", "1 to 2 arguments for substring(), found 3", 8),
    ("now(1)", "no arguments for now(), found 1", 3),
    ("S()", "1 argument for S(), found 0", 3),
    ("execution.getVariable()", "1 argument for getVariable(), found 0", 13),
    ("execution.getVariable(name)", "the name of a variable in quotes with getVariable()", 13),
    ("execution.hasVariable(1)", "the name of a variable in quotes with hasVariable()", 13),
    ("execution.", "expected a value, found the end", 13),
    ("execution.1", "a key after the dot", 13),
    ("name.contains('a'", "expected ), found the end", 20),
    ("name.contains('a',)", "expected a value, found )", 21),
    ("1 += ", "expected a value, found the end", 8),
    ("guests =+ 1", "equality is written ==", 10),
    ("a -> a + 1", "expected a value, found >", 6),
    ("[1, 2]", "expected a value, found [", 3),
    ("guests ?: 1", "expected a value, found :", 11),
    ("a ?. b", "expected a value, found .", 6),
    ("a\x00b", r"found '\x00'", 4),
    ("\u202eguests", r"found '\u202e'", 3),
    ("a\u200bb", r"found '\u200b'", 4),
    ("٣ + 1", "found '٣'", 3),
    ("a ≠ 1", "found '≠'", 5),
    ("“a”", "found '“'", 3),
    ("a & b", "found '&'", 5),
    ("a === b", "expected a value or an operator, found '='", 7),
    ("new Date()", "expected an operator or the end, found Date", 7),
    ("T(java.lang.Runtime)", "a call of T()", 3),
    ("1..2", "a key after the dot, found .", 5),
    ("0x1F", "expected an operator or the end, found x1F", 4),
]

VALUES = [  # text, part of the message
    ("guests.length()", "a string, list or object before .length(), found the number 33"),
    ("nothing.equals(1)", "before .equals(), found null"),
    ("nothing.toString()", "found null"),
    ("name.intValue()", "a number before .intValue(), found the string 'Zoë'"),
    ("name.contains(1)", "a string with .contains(), found the number 1"),
    ("name.replace('o', 0)", "a string with .replace(), found the number 0"),
    ("name.charAt(3)", "an index from 0 to 2 with .charAt(), found the number 3"),
    ("void.charAt(0)", "a string with characters before .charAt()"),
    ("name.substring(4)", "an index from 0 to 3 with .substring(), found the number 4"),
    ("name.substring(2, 1)", "a start not behind the end with .substring(), found 2 and 1"),
    ("name.substring(0.5)", "a whole number with .substring(), found the number 0.5"),
    ("name.substring(true)", "a whole number with .substring(), found true"),
    ("name.indexOf('o', 9)", "an index from 0 to 3 with .indexOf()"),
    ("csv.split('[,;]')", "regular expressions are not run"),
    ("csv.split('|')", r"as a plain text it is written '\\|'"),
    ("csv.split('')", "a plain text with .split(), found the string ''"),
    ("name.compareTo(1)", "a string with .compareTo(), found the number 1"),
    ("guests.compareTo(name)", "one kind beside <"),
    ("guests.add(name)", "numbers beside +"),
    ("guests.divide(0)", "a divisor other than 0"),
    ("guests.max('a')", "one kind beside >"),
    ("yes.compareTo(1)", "true or false with .compareTo(), found the number 1"),
    ("colours.get(4)", "an index from 0 to 3 with .get(), found the number 4"),
    ("colours.get(-1)", "an index from 0 to 3 with .get(), found the number -1"),
    ("none.get(0)", "a list with items before .get(), found an empty one"),
    ("none.getFirst()", "a list with items"),
    ("colours.subList(0, 5)", "an index from 0 to 4 with .subList()"),
    ("colours.subList(2, 1)", "a start not behind the end"),
    ("colours.containsAll('red')", "a list with .containsAll(), found the string 'red'"),
    ("colours.indexOf('a', 1)", "1 argument for .indexOf() of a list, found 2"),
    ("order.get(1)", "a string with .get(), found the number 1"),
    ("colours.keySet()", "an object before .keySet(), found a list of 4"),
    ("leap.before(start)", "one kind beside <"),
    ("leap.plusDays(1.5)", "a whole number with .plusDays()"),
    ("leap.plusDays(10000000)", "a date between the years 1 and 9999"),
    ("leap.plusYears(9000)", "a date between the years 1 and 9999, found the number 9000 with .plusYears() of 2024-02-29"),
    ("leap.plusHours(1)", "a date and time before .plusHours(), found the date 2024-02-29"),
    ("S('<a/>')", "expected JSON, found the string '<a/>'"),
    ("S('{')", "expected JSON, found the string '{'"),
    ("S('NaN')", "a number in JSON, found NaN"),
    ("S('-Infinity')", "a number in JSON, found -Infinity"),
    ("name += missing", "a variable 'missing', found none"),
    ("5 += colours[9]", "an index from 0 to 3, found 9"),
]


@pytest.mark.parametrize(("text", "name", "character", "meant"), UNKNOWN)
def test_what_is_not_known_is_refused_by_name_with_its_place_and_what_may_be_meant(
    text: str, name: str, character: int, meant: str
) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(f"${{{text}}}")
    assert f"found {name}" in str(caught.value) or f"found a call of {name}" in str(caught.value)
    assert meant in str(caught.value)
    assert str(caught.value).endswith(f"(character {character})")


@pytest.mark.parametrize(("text", "part", "character"), SYNTAX)
def test_what_is_no_expression_is_refused_with_its_place(text: str, part: str, character: int) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(f"${{{text}}}")
    assert part in str(caught.value)
    assert str(caught.value).endswith(f"(character {character})")


@pytest.mark.parametrize(("text", "part"), VALUES)
def test_what_has_no_value_says_what_was_expected_and_what_was_found(text: str, part: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["order.get('nope').x", "order.prop('nope')", "S(payload).prop('nope')", "S(payload).nope", "nope.size()"])
def test_only_get_and_get_variable_give_null_for_what_is_missing(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"nope|null"):
        value(text)


def test_what_only_a_case_knows_is_refused_where_none_runs() -> None:
    with pytest.raises(ExpressionError, match="known while a case runs, found none here"):
        parse("${execution.businessKey}").evaluate(VARIABLES)


@pytest.mark.parametrize("text", ["${now()}", "${dateTime()}"])
def test_R11_there_is_no_time_but_the_one_that_is_given(text: str) -> None:
    with pytest.raises(ExpressionError, match="expected the time from whoever evaluates"):
        parse(text).evaluate({**VARIABLES, "now": "hidden"})


def test_names_in_every_script_are_names_and_other_code_points_for_the_same_letters_are_told() -> None:
    for name in ("größe", "gro\u0308ße", "審批", "मूल्य", "ราคา", "σύνολο", "مبلغ", "x1", "_x", "$x", "é"):
        assert parse(f"${{{name} + 1}}").evaluate({name: 1}) == 2
    with pytest.raises(MissingName, match=r"same letters that is written with other code points: 'gro\\u0308sse'"):
        parse("${grösse}").evaluate({"gro\u0308sse": 1})
