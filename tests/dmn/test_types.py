"""Type references and item definitions (DMN 1.3, 7.3.2 and 10.3.2.9): what values are brought to, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.dmn.errors import DecisionError
from tests.dmn.models import decision, file, graph, literal, problems, table, value

DAY, MOMENT = date(2026, 11, 29), datetime(2026, 11, 29, 10, 0, tzinfo=UTC)


def output_of(kind: str, given: Any) -> Any:
    """What a value becomes as an output of this type."""
    return value(table([], [f"x: {kind}"], ("given",)), given=given)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("string", "a", "a"),
        ("string", 5, "5"),
        ("string", Decimal("1.50"), "1.5"),
        ("string", True, "true"),
        ("string", DAY, "2026-11-29"),
        ("feel:string", 5, "5"),
        ("boolean", True, True),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("integer", 5, 5),
        ("integer", Decimal("5.0"), 5),
        ("integer", "5", 5),
        ("long", " 7 ", 7),
        ("long", 2**62, 2**62),
        ("number", "1.5", Decimal("1.5")),
        ("number", 3, 3),
        ("double", "1.5", Decimal("1.5")),
        ("double", 2, Decimal(2)),
        ("date", DAY, DAY),
        ("date", "2026-11-29", DAY),
        ("date", MOMENT, MOMENT),
        ("date", "2026-11-29T10:00:00+00:00", MOMENT),
        ("dateTime", MOMENT, MOMENT),
        ("dateTime", "2026-11-29T10:00:00Z", MOMENT),
        ("date and time", DAY, datetime(2026, 11, 29, tzinfo=UTC)),
        ("Any", [1], [1]),
        ("context", {"a": 1}, {"a": 1}),
        ("string", ["a"], "a"),  # 10.3.2.9.4: a list of one is its item
        ("string", None, None),
        ("integer", None, None),
    ],
)
def test_a_value_is_brought_to_its_type(kind: str, given: Any, expected: Any) -> None:
    found = output_of(kind, given)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("string", ["a", "b"], "expected text"),
        ("boolean", 1, "expected true or false"),
        ("boolean", "yes", "expected true or false"),
        ("integer", Decimal("1.5"), "expected a whole number within 64 bits"),
        ("integer", 2**63, "expected a whole number within 64 bits"),
        ("integer", Decimal("1e40"), "expected a whole number within 64 bits"),
        ("long", Decimal("1e300"), "expected a whole number within 64 bits"),
        ("long", "1e999999999", "expected a finite number"),
        ("integer", True, "expected a number"),
        ("number", "one", "expected a number"),
        ("number", "Infinity", "expected a finite number"),
        ("number", "1e400", "expected a finite number with an exponent up to 308"),
        ("double", "NaN", "expected a finite number"),
        ("double", "1e999999999", "expected a finite number"),
        ("date", "29.11.2026", "expected a date such as"),
        ("date", 5, "expected a date such as"),
        ("dateTime", "soon", "expected a date and time such as"),
        ("time", "noon", "expected a time such as"),
        ("days and time duration", 5, "expected a duration"),
        ("context", 5, "expected a context"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_rule_output_and_type(kind: str, given: Any, said: str) -> None:
    with pytest.raises(DecisionError, match=f"decision d, rule 1, output x: {said}") as raised:
        output_of(kind, given)
    assert raised.value.kind == "type"


def test_a_number_too_long_to_be_text_is_an_error_of_the_decision() -> None:
    with pytest.raises(DecisionError, match="decision d, rule 1, output x: expected a number of at most 34 digits"):
        output_of("string", 10**40)


def test_a_double_that_is_whole_stays_a_double() -> None:
    assert str(output_of("double", 2)) == "2.0"


def test_an_input_is_brought_to_its_type_before_it_is_tested() -> None:
    text = table(["amount: integer"], ["x"], ("> 9", '"many"'), ("<= 9", '"few"'))
    assert value(text, amount="10") == "many"
    with pytest.raises(DecisionError, match="decision d, input amount: expected a number"):
        value(text, amount="ten")


def test_an_input_of_nothing_is_null_and_matches_what_allows_it() -> None:
    text = table(["amount: integer"], ["x"], ("> 9", '"many"'), ("null", '"nothing"'))
    assert value(text, amount=None) == "nothing"


def test_a_missing_variable_is_an_error_and_not_null() -> None:
    with pytest.raises(DecisionError, match="input amount: expected a variable 'amount', found none"):
        value(table(["amount"], ["x"], ("-", "1")))


# ---- allowed values


def test_input_values_are_all_that_an_input_may_be() -> None:
    text = table(['status: string in "gold","silver"'], ["x: integer"], ('"gold"', "1"), ("-", "2"), hit="FIRST")
    assert value(text, status="silver") == 2
    assert value(text, status=None) == 2
    with pytest.raises(DecisionError, match='input status: expected one of "gold","silver", found the string \'bronze\''):
        value(text, status="bronze")


def test_output_values_are_all_that_an_output_may_be() -> None:
    text = table([], ['x: string in "a","b"'], ("given",))
    assert value(text, given="b") == "b"
    with pytest.raises(DecisionError, match='output x: expected one of "a","b", found the string \'c\''):
        value(text, given="c")


def test_input_values_may_be_ranges() -> None:
    text = table(["age: integer in [0..120]"], ["x"], ("-", "1"))
    assert value(text, age=120) == 1
    with pytest.raises(DecisionError, match=r"expected one of \[0..120\], found the number 121"):
        value(text, age=121)


# ---- item definitions

PURPOSE = (
    '<itemDefinition name="tPurpose"><typeRef>string</typeRef><allowedValues><text>"car","house"</text></allowedValues></itemDefinition>'
)
LOAN = (
    '<itemDefinition name="tLoan"><itemComponent name="purpose"><typeRef>tPurpose</typeRef></itemComponent>'
    '<itemComponent name="amount"><typeRef>number</typeRef></itemComponent></itemDefinition>'
)
LIST = '<itemDefinition name="tAmounts" isCollection="true"><typeRef>integer</typeRef></itemDefinition>'


def of_type(kind: str, *items: str, **given: Any) -> Any:
    return value(file(*items, decision("d", literal("given", f'typeRef="{kind}"'))), **given)


def test_an_item_definition_has_the_values_that_it_allows() -> None:
    assert of_type("tPurpose", PURPOSE, given="car") == "car"
    with pytest.raises(DecisionError, match='expected one of "car","house"'):
        of_type("tPurpose", PURPOSE, given="boat")


def test_allowed_values_that_name_what_is_missing_are_an_error_of_the_decision() -> None:
    item = '<itemDefinition name="tBand"><typeRef>number</typeRef><allowedValues><text>[1..most]</text></allowedValues></itemDefinition>'
    assert of_type("tBand", item, given=3, most=5) == 3
    with pytest.raises(DecisionError, match="decision d: expected a variable 'most', found none"):
        of_type("tBand", item, given=3)


def test_what_is_brought_to_a_type_is_paid_for_item_by_item() -> None:
    """A list that a variable holds costs nothing to name, and its items are checked each."""
    with pytest.raises(DecisionError, match="expected a decision of at most 1,000,000 steps, found one that needs more"):
        of_type("tAmounts", LIST, given=[1] * 1_000_001)
    rules = [("-", "given")] * 30
    each = file(LIST, decision("d", table(["1"], ["x: tAmounts"], *rules, hit="COLLECT")))
    assert len(value(each, given=[1] * 1_000)) == 30
    with pytest.raises(DecisionError, match=r"rule 2., output x: expected a decision of at most 1,000,000 steps"):
        value(each, given=[1] * 40_000)


def test_each_component_is_brought_to_its_type_and_others_stay() -> None:
    given = {"purpose": "house", "amount": "100.5", "note": 1}
    assert of_type("tLoan", LOAN, PURPOSE, given=given) == {"purpose": "house", "amount": Decimal("100.5"), "note": 1}
    with pytest.raises(DecisionError, match="decision d, purpose: expected one of"):
        of_type("tLoan", LOAN, PURPOSE, given={"purpose": "boat"})


def test_a_collection_brings_each_item_to_its_type_and_one_value_to_a_list() -> None:
    assert of_type("tAmounts", LIST, given=["1", 2]) == [1, 2]
    assert of_type("tAmounts", LIST, given="3") == [3]


def test_a_type_that_is_defined_by_itself_is_refused() -> None:
    one = '<itemDefinition name="tA"><typeRef>tB</typeRef></itemDefinition>'
    two = '<itemDefinition name="tB"><itemComponent name="a"><typeRef>tA</typeRef></itemComponent></itemDefinition>'
    (found,) = problems(file(one, two, decision("d", literal("1"))))
    assert found.what == "itemComponent 'a' is defined by itself: tA → tB → tA"


def test_types_that_use_each_other_often_are_read_once() -> None:
    """A type with two components of the next one, thirty deep, would be a billion types if each were read anew."""
    chain = [
        f'<itemDefinition name="t{n}"><itemComponent name="a"><typeRef>t{n + 1}</typeRef></itemComponent>'
        f'<itemComponent name="b"><typeRef>t{n + 1}</typeRef></itemComponent></itemDefinition>'
        for n in range(9)
    ]
    assert of_type("t0", *chain, '<itemDefinition name="t9"><typeRef>string</typeRef></itemDefinition>', given={"a": {}}) == {"a": {}}


def test_a_type_that_nobody_defines_is_warned_about() -> None:
    (warning,) = graph(file(decision("d", literal("1", 'typeRef="tNothing"')))).warnings
    assert warning.what == "a literalExpression without id is of the type 'tNothing', which is not defined"
