"""Business rule tasks that call a decision (BPMN 2.0.2, 10.3.3.4): what becomes of the outcome, and what the history is told."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from engine.bpmn.definition import DataOutput, MultiInstance, ProcessDefinition
from engine.dmn.definition import DecisionGraph
from engine.expressions import parse
from tests.core.models import decides, model, user
from tests.core.world import World
from tests.dmn.models import decision, file, graph, literal, table

ONE = table(["season"], ["dish: string"], ('"Winter"', '"Stew"'), ('"Summer"', '"Salad"'))
TWO = table(["season"], ["dish: string", "hours: integer"], ('"Winter"', '"Stew"', "3"), ('"Summer"', '"Salad"', "1"))
MANY = table(["season"], ["dish: string"], ('"Winter"', '"Stew"'), ('"Winter"', '"Roast"'), hit="COLLECT")


def one(logic: str) -> dict[str, DecisionGraph]:
    """The decision `d` alone."""
    return {"d": graph(file(decision("d", logic, name="The dish")))}


def process(**config: Any) -> ProcessDefinition:
    return model("start -> choose -> eat -> end", choose=decides(**config), eat=user())


def ran(logic: str, *, season: Any = "Winter", **config: Any) -> World:
    return World(process(**config), tables=one(logic)).start(season=season)


@pytest.mark.parametrize(
    ("logic", "mapper", "expected"),
    [
        (ONE, "singleEntry", "Stew"),
        (ONE, "singleResult", {"dish": "Stew"}),
        (ONE, "collectEntries", ["Stew"]),
        (ONE, "resultList", [{"dish": "Stew"}]),
        (ONE, "value", "Stew"),
        (TWO, "singleResult", {"dish": "Stew", "hours": 3}),
        (TWO, "resultList", [{"dish": "Stew", "hours": 3}]),
        (TWO, "value", {"dish": "Stew", "hours": 3}),
        (MANY, "collectEntries", ["Stew", "Roast"]),
        (MANY, "resultList", [{"dish": "Stew"}, {"dish": "Roast"}]),
        (MANY, "value", ["Stew", "Roast"]),
        (literal("1 + 1"), "singleEntry", 2),
        (literal("1 + 1"), "value", 2),
    ],
)
def test_each_mapper_makes_what_it_says_of_the_outcome(logic: str, mapper: str, expected: Any) -> None:
    world = ran(logic, mapper=mapper, result_variable="dish")
    assert world.variables == {"season": "Winter", "dish": expected}
    assert world.open == ["eat"]


@pytest.mark.parametrize(
    ("mapper", "expected"), [("singleEntry", None), ("singleResult", None), ("collectEntries", []), ("resultList", []), ("value", None)]
)
def test_where_nothing_matches_the_variable_is_null_or_an_empty_list(mapper: str, expected: Any) -> None:
    assert ran(ONE, season="Spring", mapper=mapper, result_variable="dish").variables["dish"] == expected


@pytest.mark.parametrize(
    ("logic", "mapper", "said"),
    [
        (MANY, "singleEntry", "choose: expected one result for singleEntry, found 2 from the rules 1, 2"),
        (MANY, "singleResult", "choose: expected one result for singleResult, found 2 from the rules 1, 2"),
        (TWO, "singleEntry", "choose: expected one output for singleEntry, found dish, hours"),
        (TWO, "collectEntries", "choose: expected one output for collectEntries, found dish, hours"),
    ],
)
def test_an_outcome_that_a_mapper_cannot_map_is_an_incident(logic: str, mapper: str, said: str) -> None:
    (incident,) = ran(logic, mapper=mapper, result_variable="dish").incidents
    assert (incident.element_id, incident.kind, incident.message) == ("choose", "decision", said)


def test_without_a_result_variable_the_outcome_is_in_the_history_alone() -> None:
    world = ran(ONE)
    assert world.variables == {"season": "Winter"}
    assert world.new("decision_evaluated", "variables_set") == ["variables_set start", "decision_evaluated choose"]


def test_the_outputs_of_flowable_become_variables() -> None:
    world = ran(TWO, mapper="variables", result_variable="d")
    assert world.variables == {"season": "Winter", "dish": "Stew", "hours": 3}
    assert ran(MANY, mapper="variables", result_variable="d").variables["d"] == [{"dish": "Stew"}, {"dish": "Roast"}]


def test_input_mappings_are_seen_by_the_decision_and_by_nobody_else() -> None:
    world = World(process(inputs=(("season", parse("${month}")),), mapper="singleEntry", result_variable="dish"), tables=one(ONE))
    world.start(month="Summer")
    assert world.variables == {"month": "Summer", "dish": "Salad"}


def test_output_mappings_see_the_outcome() -> None:
    outputs = (("first", parse("${decisionResult[0].dish}")), ("again", parse("${dish}")))
    world = ran(ONE, mapper="singleEntry", result_variable="dish", outputs=outputs, keeps=False)
    assert world.variables == {"season": "Winter", "first": "Stew", "again": "Stew"}
    assert ran(ONE, mapper="singleEntry", result_variable="dish", outputs=outputs).variables["dish"] == "Stew"


def test_the_key_may_be_an_expression() -> None:
    world = World(process(decision="${which}", mapper="singleEntry", result_variable="dish"), tables=one(ONE))
    assert world.start(season="Winter", which="d").variables["dish"] == "Stew"


@pytest.mark.parametrize(("which", "said"), [("", "expected the key of a decision, found nothing from"), ("e", "no decision e")])
def test_a_key_that_means_no_decision_is_an_incident_and_a_retry_looks_again(which: str, said: str) -> None:
    tables = one(ONE)
    world = World(process(decision="${which}"), tables=tables).start(season="Winter", which=which)
    (incident,) = world.incidents
    assert incident.kind == "no_decision" and said in incident.message
    if which:
        tables["e"] = graph(file(decision("e", ONE)))
        assert world.retry("choose").open == ["eat"]


def test_a_violated_hit_policy_is_an_incident_that_names_the_rules() -> None:
    twice = table(["season"], ["dish"], ('"Winter"', '"Stew"'), ("-", '"Bread"'))
    (incident,) = ran(twice).incidents
    expected = "choose: decision The dish: expected at most one rule that matches (UNIQUE), found rule 1 and rule 2"
    assert (incident.kind, incident.message) == ("decision", expected)


def test_a_missing_variable_is_an_incident_that_names_it_and_leaves_no_event_of_the_decision() -> None:
    world = World(process(), tables=one(ONE)).start()
    (incident,) = world.incidents
    assert incident.message == "choose: decision The dish, input season: expected a variable 'season', found none"
    assert world.new("decision_evaluated") == []


def test_every_decision_of_a_graph_is_told_with_inputs_rules_and_result() -> None:
    season = decision("season", literal('if degrees < 10 then "Winter" else "Summer"'))
    tables = {"d": graph(file(decision("d", ONE, name="The dish", needs=("season",)), season))}
    world = World(process(mapper="singleEntry", result_variable="dish"), tables=tables).start(degrees=5)
    told = [event.data for event in world.last.history if event.kind == "decision_evaluated"]
    assert [each["key"] for each in told] == ["season", "d"]
    assert told[0]["inputs"] == [{"name": "degrees", "value": 5}] and told[0]["rules"] == [] and told[0]["result"] == "Winter"
    assert told[1] == {
        "item_id": told[1]["item_id"],
        "key": "d",
        "name": "The dish",
        "version": 1,
        "inputs": [{"name": "season", "value": "Winter"}],
        "rules": [{"number": 1, "id": "r1", "outputs": {"dish": "Stew"}}],
        "result": "Stew",
    }
    assert told[0]["item_id"] != told[1]["item_id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 1", 2),
        ("1.5 + 1.5", Decimal("3.0")),
        ("1 / 2", Decimal("0.5")),
        ("true and false", False),
        ("[1, {a: 2}]", [1, {"a": 2}]),
        ("null", None),
    ],
)
def test_results_are_variables_of_their_kinds(text: str, expected: Any) -> None:
    found = ran(literal(text), mapper="value", result_variable="x").variables["x"]
    assert found == expected and type(found) is type(expected)


def test_a_function_as_a_result_is_an_incident() -> None:
    (incident,) = ran(literal("function(a) a"), mapper="value", result_variable="x").incidents
    assert incident.kind == "expression" and "expected a value that a variable can hold" in incident.message


def test_a_business_rule_task_of_many_instances_decides_once_for_each() -> None:
    each = decides(mapper="singleEntry", result_variable="dish")
    loop = MultiInstance(collection=parse("${seasons}"), element="season", output="dishes", result=parse("${dish}"))
    world = World(model("start -> choose -> eat -> end", choose=replace(each, loop=loop), eat=user()), tables=one(ONE))
    world.start(seasons=["Winter", "Summer"])
    assert world.variables["dishes"] == ["Stew", "Salad"]
    assert len(world.new("decision_evaluated")) == 2


def test_the_outcome_goes_where_data_outputs_lead() -> None:
    task = replace(decides(mapper="singleEntry", result_variable="dish"), data_outputs=(DataOutput("meal", ("dish",), parse("${dish}")),))
    world = World(model("start -> choose -> eat -> end", choose=task, eat=user()), tables=one(ONE)).start(season="Winter")
    assert world.variables["meal"] == "Stew"


def test_a_range_on_the_way_is_told_in_words_and_decided_by() -> None:
    tables = {"d": graph(file(decision("d", literal("5 in span"), needs=("span",)), decision("span", literal("[1..9]"))))}
    world = World(process(mapper="value", result_variable="x"), tables=tables).start()
    assert world.variables["x"] is True
    (told, _) = [event.data for event in world.last.history if event.kind == "decision_evaluated"]
    assert isinstance(told["result"], str)
