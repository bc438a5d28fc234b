"""Decision requirement graphs (DMN 1.3, clause 6): what is required is decided first, once, and seen by name; boxed expressions."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.dmn.errors import DecisionError
from engine.expressions.clock import CLOCK
from tests.dmn.models import decision, file, graph, literal, outcome, problems, table, value

NOW = {CLOCK: datetime(2026, 11, 29, tzinfo=UTC)}
SEASON = decision("season", literal('if temperature &lt; 10 then "Winter" else "Summer"'.replace("&lt;", "<")), name="The season")
GUESTS = decision("guests", table(["day: string"], ["count: integer"], ('"Sunday"', "10"), ("-", "4"), hit="FIRST"))
DISH = decision(
    "dish",
    table(
        ["season", "count"],
        ["dish: string"],
        ('"Winter"', "> 8", '"Roast"'),
        ('"Winter"', "-", '"Stew"'),
        ("-", "-", '"Salad"'),
        hit="FIRST",
    ),
    needs=("season", "guests"),
)


def made(content: bytes, key: str, **variables: Any) -> list[str]:
    return [each.decision.key for each in outcome(content, key, **variables).made]


def test_what_is_required_is_decided_first() -> None:
    content = file(DISH, SEASON, GUESTS)
    assert value(content, "dish", temperature=5, day="Sunday") == "Roast"
    assert value(content, "dish", temperature=5, day="Monday") == "Stew"
    assert value(content, "dish", temperature=25, day="Monday") == "Salad"
    assert made(content, "dish", temperature=5, day="Sunday") == ["season", "guests", "dish"]


def test_only_what_a_decision_requires_is_decided() -> None:
    assert made(file(DISH, SEASON, GUESTS), "season", temperature=5) == ["season"]


def test_what_two_decisions_require_is_decided_once() -> None:
    base = decision("base", literal("1 + x"))
    left, right = decision("left", literal("base * 2"), needs=("base",)), decision("right", literal("base * 3"), needs=("base",))
    content = file(decision("top", literal("left + right"), needs=("left", "right")), left, right, base)
    assert value(content, "top", x=1) == 10
    assert made(content, "top", x=1) == ["base", "left", "right", "top"]


@pytest.mark.parametrize("name", ["season", "The season"])
def test_a_required_decision_is_seen_by_its_id_and_by_its_name(name: str) -> None:
    content = file(decision("d", literal(f'{name} = "Winter"'), needs=("season",)), SEASON)
    assert value(content, temperature=5) is True


def test_a_required_decision_is_seen_by_the_name_of_its_variable_first() -> None:
    one = decision("one", literal("1"), extra='<variable name="the one"/>')
    assert value(file(decision("d", literal("the one + 1"), needs=("one",)), one)) == 2


def test_a_required_decision_hides_a_variable_of_the_case() -> None:
    one = decision("one", literal("1"))
    assert value(file(decision("d", literal("one"), needs=("one",)), one), one=99) == 1


def test_several_outputs_of_a_required_table_are_seen_by_their_names() -> None:
    two = decision("two", table([], ["a: integer", "b: integer"], ("1", "2")))
    assert value(file(decision("d", literal("a + b + two.a"), needs=("two",)), two)) == 4


def test_the_outputs_of_a_required_table_of_many_hits_are_lists() -> None:
    many = decision("many", table([], ["a: integer"], ("1",), ("2",), hit="COLLECT"))
    content = file(decision("d", literal("[a, many]"), needs=("many",)), many)
    assert value(content) == [[1, 2], [1, 2]]


def test_a_required_decision_without_a_result_is_null() -> None:
    nothing = decision("nothing", table(["x"], ["a"], ("> 100", "1")))
    assert value(file(decision("d", literal('if nothing = null then "none" else "some"'), needs=("nothing",)), nothing), x=1) == "none"


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b")])
def test_requirements_in_a_circle_are_refused_by_name(order: tuple[str, ...]) -> None:
    leads = {"a": "b", "b": "c", "c": "a"}
    (found,) = problems(file(*[decision(key, literal("1"), needs=(leads[key],)) for key in order]))
    assert "requires itself: " in found.what and set(order) <= set(found.what.partition(": ")[2].split(" → "))


def test_a_decision_that_requires_itself_is_refused() -> None:
    (found,) = problems(file(decision("a", literal("1"), needs=("a",))))
    assert (found.element_id, found.what) == ("a", "decision 'a' requires itself: a → a")


def test_a_requirement_that_is_not_in_the_file_is_refused() -> None:
    (found,) = problems(file(decision("d", literal("1"), needs=("elsewhere",))))
    assert (found.what, found.why) == ("decision 'd' requires '#elsewhere', which is not in this file", "the id of a decision")


def test_a_long_chain_of_requirements_is_decided_without_a_deep_stack() -> None:
    chain = [decision(f"d{n}", literal(f"d{n + 1} + 1"), needs=(f"d{n + 1}",)) for n in range(2_000)]
    assert value(file(*chain, decision("d2000", literal("0"))), "d0") == 2_000


def test_input_data_is_brought_to_its_type() -> None:
    data = '<inputData id="amount_id" name="amount"><variable name="amount" typeRef="number"/></inputData>'
    content = file(data, decision("d", literal("amount + 1"), needs=("#amount_id",)))
    assert value(content, amount="2.5") == Decimal("3.5")
    with pytest.raises(DecisionError, match="decision d, input data amount: expected a number"):
        value(content, amount="much")


def test_input_data_with_blanks_in_its_name_is_one_name() -> None:
    data = '<inputData id="a" name="loan - amount"/>'
    assert value(file(data, decision("d", literal("loan - amount + 1"), needs=("#a",))), **{"loan - amount": 2}) == 3


def test_the_graph_says_what_a_decision_needs_in_order() -> None:
    assert graph(file(DISH, SEASON, GUESTS)).needed("dish") == ("season", "guests", "dish")


# ---- literal expressions, and the other boxed ones


def test_a_literal_expression_is_one_row_under_the_name_of_its_variable() -> None:
    found = outcome(file(decision("d", literal("1 + 1"), extra='<variable name="sum" typeRef="integer"/>')))
    assert (found.value, found.rows) == (2, ({"sum": 2},))


def test_the_type_of_the_variable_holds_for_the_result() -> None:
    content = file(decision("d", literal("x"), extra='<variable name="d" typeRef="integer"/>'))
    assert value(content, x="5") == 5
    with pytest.raises(DecisionError, match="decision d: expected a number"):
        value(content, x="five")


def test_a_boxed_context_sees_its_entries_in_order() -> None:
    entries = (
        f'<contextEntry><variable name="net"/>{literal("amount / 2")}</contextEntry>'
        f'<contextEntry><variable name="the tax"/>{literal("net * 2")}</contextEntry>'
    )
    assert value(f"<context>{entries}</context>", amount=10) == {"net": 5, "the tax": 10}
    result = f"<contextEntry>{literal('net + the tax')}</contextEntry>"
    assert value(f"<context>{entries}{result}</context>", amount=10) == 15


def test_a_boxed_list_and_a_relation() -> None:
    assert value(f"<list>{literal('1')}{literal('x + 1')}</list>", x=1) == [1, 2]
    columns, rows = (
        '<column name="a"/><column name="b"/>',
        f"<row>{literal('1')}{literal('2')}</row><row>{literal('3')}{literal('4')}</row>",
    )
    assert value(f"<relation>{columns}{rows}</relation>") == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_a_row_of_a_relation_with_a_cell_too_few_is_refused() -> None:
    columns = '<column name="a"/><column name="b"/>'
    (found,) = problems(file(decision("d", f"<relation>{columns}<row>{literal('1')}</row></relation>")))
    assert found.what == "row 1 of a relation without id has 1 cells"


# ---- business knowledge models

DOUBLE = (
    '<businessKnowledgeModel id="double" name="twice"><variable name="twice"/>'
    f'<encapsulatedLogic><formalParameter name="n" typeRef="number"/>{literal("n * 2")}</encapsulatedLogic></businessKnowledgeModel>'
)


def test_a_business_knowledge_model_is_invoked_with_its_parameters() -> None:
    call = f'<invocation>{literal("twice")}<binding><parameter name="n"/>{literal("x + 1")}</binding></invocation>'
    assert value(file(DOUBLE, decision("d", call, needs=("!double",))), x=2) == 6


def test_a_business_knowledge_model_is_a_function_of_feel() -> None:
    assert value(file(DOUBLE, decision("d", literal("twice(x) + twice(1)"), needs=("!double",))), x=2) == 6


def test_a_business_knowledge_model_with_a_table() -> None:
    logic = table(["n: number"], ["r"], ("> 1", '"many"'), ("-", '"one"'), hit="FIRST")
    model = (
        '<businessKnowledgeModel id="m" name="word"><encapsulatedLogic>'
        f'<formalParameter name="n"/>{logic}</encapsulatedLogic></businessKnowledgeModel>'
    )
    assert value(file(model, decision("d", literal("word(x)"), needs=("!m",))), x=5) == "many"


def test_a_business_knowledge_model_may_call_those_that_it_requires() -> None:
    outer = (
        '<businessKnowledgeModel id="o" name="fourfold">'
        f'<encapsulatedLogic><formalParameter name="n"/>{literal("twice(twice(n))")}</encapsulatedLogic>'
        '<knowledgeRequirement><requiredKnowledge href="#double"/></knowledgeRequirement></businessKnowledgeModel>'
    )
    assert value(file(DOUBLE, outer, decision("d", literal("fourfold(x)"), needs=("!o",))), x=3) == 12


def test_a_wrong_number_of_arguments_has_no_result_and_a_name_finds_its_parameter() -> None:
    assert value(file(DOUBLE, decision("d", literal("twice(1, 2)"), needs=("!double",)))) is None
    assert value(file(DOUBLE, decision("d", literal("twice(n: 4)"), needs=("!double",)))) == 8


def test_the_time_is_known_within_a_business_knowledge_model() -> None:
    model = (
        '<businessKnowledgeModel id="m" name="year"><encapsulatedLogic><formalParameter name="n"/>'
        f"{literal('now().year + n')}</encapsulatedLogic></businessKnowledgeModel>"
    )
    assert value(file(model, decision("d", literal("year(1)"), needs=("!m",))), **NOW) == 2027


@pytest.mark.parametrize("text", ["now().year", "${now().getYear()}", "${dateTime().plusYears(0).getYear()}"])
def test_the_time_is_known_in_either_language(text: str) -> None:
    assert value(file(decision("d", literal(text))), **NOW) == 2026


def test_an_invocation_of_what_is_not_required_is_refused() -> None:
    call = f"<invocation>{literal('twice')}</invocation>"
    (found,) = problems(file(DOUBLE, decision("d", call)))
    assert found.what == "decision 'd' calls 'twice'"


def test_models_that_require_each_other_are_refused() -> None:
    loop = DOUBLE.replace(
        "</businessKnowledgeModel>",
        '<knowledgeRequirement><requiredKnowledge href="#double"/></knowledgeRequirement></businessKnowledgeModel>',
    )
    (found,) = problems(file(loop, decision("d", literal("1"))))
    assert "requires itself: double → double" in found.what


# ---- limits


def test_the_steps_of_all_cells_together_are_limited() -> None:
    """Each cell stays within what one expression may take; a thousand of them do not."""
    slow = [("some x in [1..20000] satisfies ? = x and x < 0", "1")] * 1_000
    with pytest.raises(DecisionError, match="rule 50: expected a decision of at most 1,000,000 steps, found one that needs more"):
        value(table(["n"], ["x"], *slow, hit="COLLECT"), n=1)


def test_one_expression_that_takes_too_much_is_named_by_its_own_limit() -> None:
    with pytest.raises(DecisionError, match="rule 1: expected at most 50000 steps"):
        value(table(["n"], ["x"], ("some x in [1..100000] satisfies ? = x and x < 0", "1")), n=1)


def test_models_that_call_each_other_without_end_are_stopped() -> None:
    many = f"<list>{''.join(literal('twice(1)') for _ in range(1_100))}</list>"
    with pytest.raises(DecisionError, match="expected at most 1,000 calls of business knowledge models, found more"):
        value(file(DOUBLE, decision("d", many, needs=("!double",))))


def test_a_file_of_too_many_different_expressions_is_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.dmn.context.MAX_EXPRESSIONS", 10)
    rules = [(str(number), "1") for number in range(8)]  # and the input, and one output that all of them have
    assert problems(file(decision("d", table(["n"], ["x"], *rules)))) == ()
    (found,) = problems(file(decision("d", table(["n"], ["x"], *rules, ("8", "2"), ("9", "3")))))
    assert (found.element_id, found.what) == ("r9", "the file has more than 10 different expressions")


def test_components_with_blanks_and_signs_are_names() -> None:
    item = (
        '<itemDefinition name="tLoan"><itemComponent name="Approved/Declined"><typeRef>string</typeRef></itemComponent>'
        '<itemComponent name="loan amount"><typeRef>number</typeRef></itemComponent></itemDefinition>'
    )
    data = '<inputData id="l" name="loan"><variable name="loan" typeRef="tLoan"/></inputData>'
    logic = literal('loan.loan amount > 5 and loan.Approved/Declined = "Approved"')
    content = file(item, data, decision("d", logic, needs=("#l",)))
    assert value(content, loan={"loan amount": "6", "Approved/Declined": "Approved"}) is True
