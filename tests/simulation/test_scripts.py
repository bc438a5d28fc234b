"""Scripts: how lines are read, what an expectation says when it fails, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.simulation import play
from engine.simulation.house import House
from engine.simulation.play import NotAsExpected, simulate
from engine.simulation.script import REFUSED, VERBS, ScriptError, parse_script
from engine.simulation.works import MONDAY

ORDER = Path(__file__).parent / "order.bpmn"


def played(text: str) -> House:
    script = parse_script(text, "order.script")
    house = House(at=play.beginning(script, MONDAY))
    house.deploy((ORDER.name, ORDER.read_bytes()))
    simulate(house, script)
    return house


def test_words_values_and_numbers_of_a_line():
    (step,) = parse_script('\n# a comment\n  complete "Check it" #2 ok=true `a.b`=[1, "x y"] text=two words="a b"\n').steps
    assert (step.line, step.verb, step.words, step.number) == (3, "complete", ("Check it",), 2)
    assert step.values == {"ok": True, "a.b": [1, "x y"], "text": "two", "words": "a b"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("compleet a", "expected one of .*, found 'compleet' \\(did you mean 'complete'\\?\\)"),
        ('complete "a', "expected JSON, found '\"a'"),
        ("complete a b=1 b=2", "expected each name once, found 'b' twice"),
        ("complete a b={1}", "expected JSON, found '\\{1\\}'"),
        ("=1", "expected a word or name=value, found '=1'"),
        ("complete a b=" + "[" * 5_000, "expected JSON, found '\\[\\["),
    ],
)
def test_a_line_that_is_no_step_says_where_and_what_was_expected(line: str, told: str):
    with pytest.raises(ScriptError, match=rf"^order.script:2: {told}"):
        parse_script(f"start\n{line}\n", "order.script")


@pytest.mark.parametrize("verb", sorted(REFUSED))
def test_what_cannot_be_simulated_is_refused_by_name(verb: str):
    with pytest.raises(ScriptError, match=f"{verb} cannot be simulated: "):
        parse_script(f"{verb} charge")
    assert verb not in VERBS


@pytest.mark.parametrize(
    "line",
    ["handler x", "complete", "job charge", "message", "advance", "case one", "start order as", "message M key", "job charge explodes"],
)
def test_a_step_without_what_its_verb_needs_says_what_that_is(line: str):
    with pytest.raises(ScriptError, match=r"^order.script:2: expected "):
        played(f"start amount=5\n{line}\n")


GOOD = """clock 2026-03-02T08:00:00Z
start order as o-1 amount=5000
expect running
expect tasks approve
expect task approve candidate_groups=["sales"] name="Approve the order"
expect waiting approve slow
expect never charge
advance PT25H
expect tasks "Remind sales" approve
complete approve ok=true
job charge fails "no line"
expect incident charge "no line"
retry charge
expect no incident
expect jobs card.charge
job card.charge returns receipt=7
complete remind
expect completed
expect entered approve charge
expect variables amount=5000.0 ok=true receipt=7
expect no variable why
expect cases 1
start amount=1
cancel "a mistake"
expect cancelled
case 1
expect completed
"""


def test_a_script_with_every_expectation_holds():
    house = played(GOOD)
    assert [case.ended for case in house.cases] == ["completed", "cancelled"]
    assert {step.verb for step in parse_script(GOOD).steps} >= {"clock", "start", "expect", "advance", "retry", "cancel", "case", "job"}


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ("completed", "expected completed, found running, waiting at slow, approve"),
        ("tasks", "expected the tasks nothing, found besides approve"),
        ("tasks approve approve", "expected the tasks approve, approve, found approve"),
        ("jobs charge", "expected the jobs charge, found nothing"),
        ("waiting approve", "expected the places that wait approve, found besides slow"),
        ("incident approve", "expected an incident at approve, found nothing"),
        ("variables amount=1 other=2", "expected amount=1, other=2, found amount=5000"),
        ("no variable amount", "expected no variable amount, found amount"),
        ("entered approve charge", "expected charge entered, found the path placed large approve"),
        ("never approve", "expected approve never entered, found the path placed large approve"),
        ("task approve assignee=bo", "expected task approve with assignee 'bo', found None"),
        ("cases 2", "expected 2 cases, found 1"),
        ("sent mail", "expected the deliveries mail, found nothing"),
        ("a miracle", "expected one of: expect completed"),
        ("variables amount=NaN", "expected a number that a double can carry, found nan"),
    ],
)
def test_an_expectation_that_does_not_hold_says_what_was_expected_and_found(expectation: str, told: str):
    with pytest.raises(NotAsExpected) as failed:
        played(f"start amount=5000\nexpect {expectation}\n")
    assert str(failed.value).startswith(f"order.script:2: expect {expectation}\n  {told}")


def test_a_step_that_cannot_be_done_says_so_with_its_line():
    with pytest.raises(NotAsExpected, match=r"order.script:1: complete approve\n  expected an open task 'approve', found nothing"):
        played("complete approve")
    with pytest.raises(NotAsExpected, match="expected somebody who waits for PAID with the key '', found nothing"):
        played("start amount=1\nmessage PAID")


def test_the_clock_is_set_before_everything_else():
    with pytest.raises(ScriptError, match="expected clock as the first step"):
        played("start amount=1\nclock 2026-03-02T08:00:00Z")
