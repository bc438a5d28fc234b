"""What holds for every value and every tree: identities of arithmetic, a total order, print and parse, no foreign exception."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions import ExpressionError, parse
from engine.expressions.juel import ASKING, POWER, PREFIX
from engine.expressions.methods import METHODS, counts
from engine.expressions.provided import EXECUTION, FUNCTIONS
from engine.expressions.tree import Asked, Binary, Call, Conditional, Index, Literal, Logical, Member, Name, Node, Provided, Unary
from tests.expressions.juel_variables import InACase

WHOLE = st.integers(-(10**15), 10**15)
EXACT = st.one_of(WHOLE, st.decimals(-(10**9), 10**9, places=4))


def of(text: str, **variables: Any) -> Any:
    return parse(f"${{{text}}}").evaluate(variables)


# ---- numbers


@given(a=EXACT, b=EXACT, c=EXACT)
@settings(deadline=None)
def test_sums_and_products_are_those_of_exact_numbers(a: Any, b: Any, c: Any) -> None:
    assert of("a + b == b + a && a * b == b * a", a=a, b=b)
    assert of("(a + b) + c == a + (b + c)", a=a, b=b, c=c)
    assert of("a - b == -(b - a) && a - a == 0 && a + 0 == a && a * 1 == a && a * 0 == 0", a=a, b=b)
    assert of("a.add(b).subtract(b) == a && a.negate().negate() == a && a.multiply(b) == a * b", a=a, b=b)
    assert of("a * (b + c) == a * b + a * c", a=a % 1000, b=b, c=c)


@given(a=WHOLE, b=WHOLE.filter(bool))
@settings(deadline=None)
def test_whole_numbers_stay_whole_and_a_remainder_is_what_a_quotient_leaves(a: int, b: int) -> None:
    for text in ("a + b", "a - b", "a * b", "a % b", "-a"):
        assert type(of(text, a=a, b=b)) is int
    assert type(of("a / b", a=a, b=b)) is Decimal
    quotient, rest = of("(a / b).intValue()", a=a, b=b), of("a % b", a=a, b=b)
    assert quotient * b + rest == a
    assert abs(rest) < abs(b) and rest * a >= 0


@given(a=EXACT)
@settings(deadline=None)
def test_a_number_is_its_sign_times_its_size_and_prints_as_a_number_of_the_same_value(a: Any) -> None:
    assert of("a.signum() * a.abs() == a && a.abs() >= 0", a=a)
    assert Decimal(of("a.toString()", a=a)) == a
    assert parse("${a} EUR").evaluate({"a": a}) == f"{of('a.toString()', a=a)} EUR"
    assert "." not in of("a.toString()", a=int(a))


@given(a=st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100))
@settings(deadline=None)
def test_S32_a_float_is_the_decimal_number_that_it_shows(a: float) -> None:
    assert of("a == b", a=a, b=Decimal(repr(a)))
    assert of("a + 0", a=a) == Decimal(repr(a)) or abs(a) < 1e-308


# ---- order

ORDERED = st.one_of(
    st.lists(EXACT, min_size=3, max_size=6),
    st.lists(st.text(max_size=4), min_size=3, max_size=6),
    st.lists(st.dates(), min_size=3, max_size=6),
    st.lists(st.datetimes(timezones=st.just(UTC)), min_size=3, max_size=6),
)


@given(values=ORDERED)
@settings(deadline=None)
def test_values_of_one_kind_are_in_one_order_whatever_compares_them(values: list[Any]) -> None:
    for a in values:
        for b in values:
            less, equal, more = of("a < b", a=a, b=b), of("a == b", a=a, b=b), of("a > b", a=a, b=b)
            assert [less, equal, more].count(True) == 1
            assert of("a <= b", a=a, b=b) is (less or equal) and of("a >= b", a=a, b=b) is (more or equal)
            assert of("b > a", a=a, b=b) is less and of("b == a", a=a, b=b) is equal and of("a != b", a=a, b=b) is not equal
            assert of("a.compareTo(b)", a=a, b=b) == more - less and of("a.equals(b)", a=a, b=b) is equal
    assert sorted(values, key=cmp_to_key(lambda a, b: int(of("a.compareTo(b)", a=a, b=b)))) == sorted(values)


# ---- print and parse

NAMES = st.sampled_from(["a", "order", "in1", "größe", "審批", "a.b", "x-y", "not", "empty", "execution", "a b"])
KEYS = st.sampled_from(["id", "empty", "and", "true", "größe", "size"])
LITERALS: st.SearchStrategy[Node] = st.one_of(
    st.integers(0, 10**30),
    st.decimals(0, 10**6, places=3),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.sampled_from([True, False, None]),
).map(Literal)
LEAVES: st.SearchStrategy[Node] = st.one_of(
    LITERALS,
    NAMES.map(Name),
    st.sampled_from([f"execution.{key}" for key in EXECUTION]).map(Provided),
    st.builds(Asked, NAMES, st.booleans()),
)


def _calls(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def of_method(name: str) -> st.SearchStrategy[Node]:
        least, most = counts(name)
        return st.builds(Call, inner, st.just(name), st.lists(inner, min_size=least, max_size=most).map(tuple))

    def of_function(name: str) -> st.SearchStrategy[Node]:
        function = FUNCTIONS[name]
        return st.builds(Provided, st.just(name), st.lists(inner, min_size=function.least, max_size=function.most).map(tuple))

    return st.one_of(st.sampled_from(sorted(METHODS)).flatmap(of_method), st.sampled_from(sorted(FUNCTIONS)).flatmap(of_function))


TREES: st.SearchStrategy[Node] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "%", "+=", "==", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(Logical, st.sampled_from(["&&", "||"]), inner, inner),
        st.builds(Unary, st.sampled_from(["-", "!", "empty"]), inner),
        st.builds(Conditional, inner, inner, inner),
        st.builds(Member, inner, KEYS),
        st.builds(Index, inner, inner),
        _calls(inner),
    ),
    max_leaves=12,
)
WORDS = {"&&": "and", "||": "or", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "/": "div", "%": "mod", "!": "not"}


def printed(node: Node, power: int, words: bool) -> str:
    """The text of a tree, with brackets only where they are needed."""
    text, own = _printed(node, words)
    return text if own > power else f"({text})"


def _printed(node: Node, words: bool) -> tuple[str, int]:
    sign = f" {WORDS.get(node.operator, node.operator) if words else node.operator} " if hasattr(node, "operator") else ""
    match node:
        case Literal(value):
            return _literal(value), 100
        case Name(name):
            return (name if name.isidentifier() and name not in ("not", "empty", "execution") else f"`{name}`"), 100
        case Asked(name, whether):
            return f"execution.{'hasVariable' if whether else 'getVariable'}({_literal(name)})", 100
        case Provided(name, arguments):
            return (name if name.startswith("execution.") else f"{name}({_listed(arguments, words)})"), 100
        case Member(target, key):
            return f"{printed(target, POWER['.'] - 1, words)}.{key}", POWER["."]
        case Index(target, index):
            return f"{printed(target, POWER['['] - 1, words)}[{printed(index, 0, words)}]", POWER["["]
        case Call(target, method, arguments):
            return f"{printed(target, POWER['.'] - 1, words)}.{method}({_listed(arguments, words)})", POWER["."]
        case Unary(operator, operand):
            return f"{sign}{printed(operand, PREFIX - 1, words)}", PREFIX
        case Binary(operator, left, right) | Logical(operator, left, right):
            own = POWER[operator]
            return f"{printed(left, own - 1, words)}{sign}{printed(right, own, words)}", own
        case Conditional(condition, then, otherwise):
            own = POWER["?"]
            return f"{printed(condition, own, words)} ? {printed(then, 0, words)} : {printed(otherwise, own - 1, words)}", own
    raise AssertionError(f"expected a tree of ours, found {node}")


def _listed(arguments: tuple[Node, ...], words: bool) -> str:
    return ", ".join(printed(argument, 0, words) for argument in arguments)


def _literal(value: Any) -> str:
    match value:
        case None | bool():
            return "null" if value is None else str(value).lower()
        case str():
            for sign, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n")):
                value = value.replace(sign, escaped)
            return f"'{value}'"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


@given(tree=TREES, words=st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_tree_that_is_printed_is_read_as_the_same_tree(tree: Node, words: bool) -> None:
    assert parse(f"${{{printed(tree, 0, words)}}}").tree == tree
    assert parse(f"a#{{ {printed(tree, 0, words)} }}b").tree.parts[1] == tree


# ---- nothing else is raised

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.decimals(allow_nan=True, allow_infinity=True),
        st.floats(),
        st.text(max_size=6),
        st.dates(),
        st.datetimes(timezones=st.sampled_from([None, UTC])),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=5,
)


@given(method=st.sampled_from(sorted(METHODS)), target=VALUES, arguments=st.lists(VALUES, max_size=3))
@settings(max_examples=1500, deadline=None)
def test_a_method_of_any_value_with_any_arguments_has_a_value_or_says_why_not(method: str, target: Any, arguments: list[Any]) -> None:
    names = [f"x{at}" for at in range(len(arguments))]
    try:
        parse(f"${{t.{method}({', '.join(names)})}}").evaluate({"t": target, **dict(zip(names, arguments, strict=True))})
    except ExpressionError as error:
        assert str(error)


@given(tree=TREES, variables=st.dictionaries(NAMES, VALUES, max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_tree_over_any_variables_has_a_value_or_says_why_not(tree: Node, variables: dict[str, Any]) -> None:
    try:
        parse(f"${{{printed(tree, 0, words=False)}}}").evaluate(InACase(variables))
    except ExpressionError as error:
        assert str(error)


@given(text=st.text(st.sampled_from("ab.()[]'\"`\\${}#+-=&|!?:,<>0123e *%") | st.characters(), max_size=30))
@settings(max_examples=500, deadline=None)
def test_any_text_is_an_expression_or_says_why_not(text: str) -> None:
    for source in (text, f"${{{text}}}", f"{text}#{{{text}}}"):
        try:
            parse(source).evaluate({"a": 1, "b": date(2026, 1, 1), "e": datetime(2026, 1, 1, tzinfo=UTC)})
        except ExpressionError as error:
            assert str(error)


def test_the_questions_about_variables_are_the_two_that_are_printed_here() -> None:
    assert ASKING == {"getVariable": False, "hasVariable": True}
