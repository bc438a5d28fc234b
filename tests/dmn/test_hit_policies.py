"""Hit policies and aggregation (DMN 1.3, 8.2.8): which of the rules that match count, and what a violation says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine.dmn.errors import DecisionError
from tests.dmn.models import matched, outcome, table, value

BANDS = [("< 10", '"low"', "1"), ("[5..20]", '"middle"', "2"), ("> 15", '"high"', "3")]


def bands(hit: str | None, *, outputs: tuple[str, ...] = ("band: string", "points: integer"), aggregation: str | None = None) -> str:
    return table(["amount: number"], outputs, *BANDS, hit=hit, aggregation=aggregation)


def points(hit: str, aggregation: str | None = None, declared: str = "points: integer") -> str:
    return table(["amount: number"], [declared], *[(test, number) for test, _, number in BANDS], hit=hit, aggregation=aggregation)


ORDERED = 'band: string in "high","middle","low"'


@pytest.mark.parametrize(
    ("hit", "amount", "rules", "expected"),
    [
        (None, 3, [1], {"band": "low", "points": 1}),  # UNIQUE is what a table without a hit policy has
        ("UNIQUE", 12, [2], {"band": "middle", "points": 2}),
        ("UNIQUE", 100, [3], {"band": "high", "points": 3}),
        ("FIRST", 7, [1], {"band": "low", "points": 1}),
        ("FIRST", 17, [2], {"band": "middle", "points": 2}),
        ("COLLECT", 7, [1, 2], [{"band": "low", "points": 1}, {"band": "middle", "points": 2}]),
        ("RULE ORDER", 17, [2, 3], [{"band": "middle", "points": 2}, {"band": "high", "points": 3}]),
        ("RULE_ORDER", 17, [2, 3], [{"band": "middle", "points": 2}, {"band": "high", "points": 3}]),
        ("rule order", 30, [3], [{"band": "high", "points": 3}]),
    ],
)
def test_the_rules_that_count(hit: str | None, amount: int, rules: list[int], expected: Any) -> None:
    assert matched(bands(hit), amount=amount) == rules
    assert value(bands(hit), amount=amount) == expected


@pytest.mark.parametrize(
    ("hit", "amount", "rules", "expected"),
    [
        ("PRIORITY", 7, [2], {"band": "middle", "points": 2}),
        ("PRIORITY", 17, [3], {"band": "high", "points": 3}),
        ("PRIORITY", 3, [1], {"band": "low", "points": 1}),
        ("OUTPUT ORDER", 7, [2, 1], [{"band": "middle", "points": 2}, {"band": "low", "points": 1}]),
        ("OUTPUT ORDER", 17, [3, 2], [{"band": "high", "points": 3}, {"band": "middle", "points": 2}]),
    ],
)
def test_the_order_of_output_values_decides(hit: str, amount: int, rules: list[int], expected: Any) -> None:
    text = bands(hit, outputs=(ORDERED, "points: integer"))
    assert matched(text, amount=amount) == rules
    assert value(text, amount=amount) == expected


def test_the_first_output_counts_more_than_the_second() -> None:
    text = table(
        ["a: number"],
        ['x: string in "A","B"', 'y: string in "K","L"'],
        ("-", '"B"', '"K"'),
        ("-", '"A"', '"L"'),
        ("-", '"A"', '"K"'),
        hit="OUTPUT ORDER",
    )
    assert [(row["x"], row["y"]) for row in value(text, a=1)] == [("A", "K"), ("A", "L"), ("B", "K")]


def test_rules_of_equal_priority_stay_in_the_order_of_the_table() -> None:
    text = table(["a"], ['x: string in "A","B"', "y: integer"], ("-", '"B"', "1"), ("-", '"A"', "2"), ("-", '"A"', "3"), hit="PRIORITY")
    assert value(text, a=1) == {"x": "A", "y": 2}


def test_a_unique_table_with_two_matches_names_both_rules() -> None:
    with pytest.raises(DecisionError, match=r"decision d: expected at most one rule that matches \(UNIQUE\), found rule 1 and rule 2"):
        value(bands("UNIQUE"), amount=7)


def test_a_unique_table_with_many_matches_names_the_first_twenty() -> None:
    text = table(["a"], ["x"], *[("-", str(number)) for number in range(30)], hit="UNIQUE")
    with pytest.raises(DecisionError, match="rule 19, rule 20 and 10 more"):
        value(text, a=1)


def test_any_allows_several_matches_that_say_the_same() -> None:
    text = table(["a: number"], ["x"], ("> 1", '"yes"'), ("> 2", '"yes"'), ("> 9", '"no"'), hit="ANY")
    assert value(text, a=5) == "yes"
    assert matched(text, a=5) == [1]


def test_any_with_other_outputs_names_the_rules_and_what_they_say() -> None:
    text = table(["a: number"], ["x", "y"], ("> 1", "1", '"yes"'), ("> 2", "1", '"no"'), hit="ANY")
    with pytest.raises(DecisionError, match="the string 'yes' from rule 1 and the string 'no' from rule 2 for y"):
        value(text, a=5)


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("1", "1.0", True),
        ("1", '"1"', False),
        ("true", "1", False),
        ("[1,2]", "[1,2]", True),
        ("{a: 1}", "{a: 2}", False),
        ("null", "null", True),
    ],
)
def test_any_compares_values_of_one_kind(first: str, second: str, *, alike: bool) -> None:
    text = table(["a"], ["x"], ("-", first), ("-", second), hit="ANY")
    if alike:
        value(text, a=1)
    else:
        with pytest.raises(DecisionError, match=r"\(ANY\)"):
            value(text, a=1)


def test_comparing_outputs_is_paid_for_item_by_item_and_only_so_deep() -> None:
    rules = [("-", "given")] * 60
    assert value(table(["1"], ["x"], *rules, hit="ANY"), given=[1] * 1_000) == [1] * 1_000
    with pytest.raises(DecisionError, match="expected a decision of at most 1,000,000 steps, found one that needs more"):
        value(table(["1"], ["x"], *rules, hit="ANY"), given=[1] * 40_000)
    with pytest.raises(DecisionError, match="decision d: expected at most 50000 steps"):
        value(table(["1"], ["x"], *rules, hit="ANY"), given=[1] * 50_001)
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(DecisionError, match="decision d: expected values nested at most 100 deep"):
        value(table(["1"], ["x"], *rules, hit="ANY"), given=deep)


def test_the_order_of_outputs_is_looked_at_where_the_hit_policy_asks_for_it_alone() -> None:
    assert value(table(["1"], ['x in "A", nope'], ("-", '"A"'))) == "A"
    with pytest.raises(DecisionError, match="expected a variable 'nope', found none"):
        value(table(["1"], ['x in "A", nope'], ("-", '"A"'), hit="PRIORITY"))


def test_a_priority_that_is_not_among_the_output_values_is_an_error_that_names_the_rule() -> None:
    text = table(["a"], ['x in "A","B"'], ("-", '"C"'), ("-", '"A"'), hit="PRIORITY")
    with pytest.raises(DecisionError, match='rule 1, output x: expected one of "A","B", found the string \'C\''):
        value(text, a=1)


# ---- nothing matches


@pytest.mark.parametrize(
    ("hit", "expected"),
    [("UNIQUE", None), ("FIRST", None), ("ANY", None), ("COLLECT", []), ("RULE ORDER", [])],
)
def test_where_no_rule_matches_there_is_null_or_an_empty_list(hit: str, expected: Any) -> None:
    text = table(["amount: number"], ["band"], ("> 100", '"high"'), hit=hit)
    found = outcome(text, amount=1)
    assert (found.value, found.rows) == (expected, ())


@pytest.mark.parametrize(("hit", "expected"), [("UNIQUE", "none"), ("FIRST", "none"), ("COLLECT", ["none"]), ("RULE ORDER", ["none"])])
def test_where_no_rule_matches_the_default_outputs_are_the_result(hit: str, expected: Any) -> None:
    text = table(["amount: number"], ['band: string = "none"'], ("> 100", '"high"'), hit=hit)
    found = outcome(text, amount=1)
    assert (found.value, found.rows, found.made[-1].rules) == (expected, ({"band": "none"},), ())


def test_an_output_without_a_default_is_null_beside_one_that_has_one() -> None:
    text = table(["amount: number"], ['band: string = "none"', "points: integer"], ("> 100", '"high"', "9"))
    assert value(text, amount=1) == {"band": "none", "points": None}


def test_a_default_is_not_used_where_a_rule_matches() -> None:
    assert value(table(["a: number"], ['x: string = "none"'], ("> 1", '"some"')), a=2) == "some"


# ---- aggregation


@pytest.mark.parametrize(
    ("aggregation", "amount", "expected"),
    [("SUM", 7, 3), ("SUM", 17, 5), ("MIN", 7, 1), ("MAX", 7, 2), ("COUNT", 7, 2), ("COUNT", 30, 1), ("SUM", 3, 1)],
)
def test_collected_values_are_aggregated(aggregation: str, amount: int, expected: int) -> None:
    found = outcome(points("COLLECT", aggregation), amount=amount)
    assert (found.value, found.rows) == (expected, ({"points": expected},))


def test_a_sum_of_decimals_is_exact() -> None:
    text = table(["a"], ["x: double"], ("-", "0.1"), ("-", "0.2"), hit="COLLECT", aggregation="SUM")
    assert value(text, a=1) == Decimal("0.3")


@pytest.mark.parametrize(("aggregation", "expected"), [("SUM", None), ("MIN", None), ("MAX", None), ("COUNT", 0)])
def test_of_nothing_there_is_a_count_and_nothing_else(aggregation: str, expected: Any) -> None:
    text = table(["a: number"], ["x: integer"], ("> 100", "1"), hit="COLLECT", aggregation=aggregation)
    assert value(text, a=1) == expected


def test_the_least_and_the_greatest_of_texts_and_dates() -> None:
    texts = table(["a"], ["x"], ("-", '"b"'), ("-", '"a"'), hit="COLLECT", aggregation="MIN")
    assert value(texts, a=1) == "a"
    dates = table(["a"], ["x"], ("-", 'date("2026-01-02")'), ("-", 'date("2026-01-01")'), hit="COLLECT", aggregation="MAX")
    assert value(dates, a=1).isoformat() == "2026-01-02"


@pytest.mark.parametrize("aggregation", ["MIN", "MAX"])
def test_times_with_and_without_a_zone_have_no_order(aggregation: str) -> None:
    times = ('date and time("2026-01-01T00:00:00Z")', 'date and time("2026-01-01T00:00:00")')
    text = table(["a"], ["x"], *[("-", each) for each in times], hit="COLLECT", aggregation=aggregation)
    with pytest.raises(DecisionError, match=f"expected numbers, strings or dates, all of one kind for {aggregation}"):
        value(text, a=1)


def test_a_sum_larger_than_a_number_may_be_is_an_error_of_the_decision() -> None:
    text = table(["a"], ["x: number"], ("-", "9e308"), ("-", "9e308"), hit="COLLECT", aggregation="SUM")
    with pytest.raises(DecisionError, match="decision d: expected a SUM with an exponent up to 308"):
        value(text, a=1)


def test_null_counts_for_nothing_in_a_sum() -> None:
    text = table(["a"], ["x: integer"], ("-", "4"), ("-", "null"), ("-", ""), hit="COLLECT", aggregation="SUM")
    assert value(text, a=1) == 4


def test_a_sum_over_text_names_the_rules() -> None:
    text = table(["a"], ["x"], ("-", "1"), ("-", '"two"'), hit="COLLECT", aggregation="SUM")
    with pytest.raises(DecisionError, match="expected numbers for SUM, found the string 'two' among the outputs of rule 1 and rule 2"):
        value(text, a=1)


def test_several_outputs_are_counted() -> None:
    text = table(["a"], ["x", "y"], ("-", "1", "2"), ("-", "3", "4"), hit="COLLECT", aggregation="COUNT")
    assert value(text, a=1) == 2
