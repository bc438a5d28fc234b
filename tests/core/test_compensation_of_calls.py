"""Call activities are compensated by their handlers, and may be handlers (10.3.6, 13.5.5). What a called process has done is its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.bpmn.definition import ProcessDefinition
from tests.core.models import boundary, call, cancel_end, model, par, several, transaction, undo, user
from tests.core.test_compensation import seen, undone
from tests.core.world import World


def process(key: str, *chains: str, **elements: Any) -> ProcessDefinition:
    return replace(model(*chains, **elements), key=key)


BOOKING = process("booking", "start -> book -> also -> end", handlers={"book": "no_book"})
REGRETTING = process("regretting", "start -> book -> regret -> end", regret=undo(), handlers={"book": "no_book"})


def case_of(definition: ProcessDefinition, **variables: Any) -> World:
    return World(definition, library={each.key: each for each in (BOOKING, REGRETTING)}).start(**variables)


def test_a_call_is_undone_by_its_handler_with_what_it_gave_back_and_not_inside() -> None:
    definition = model(
        "start -> trip -> later -> regret -> end", trip=call("booking", returns_all=True), regret=undo(), handlers={"trip": "no_trip"}
    )
    case = case_of(definition).complete("book", seat=7).complete("also").complete("later", seat=8)
    assert case.tasks == ["no_trip"]
    assert seen(case, "no_trip", "seat") == 7
    assert case.complete("no_trip").ended == "completed"
    assert undone(case) == ["trip"]


def test_a_handler_may_call_a_process() -> None:
    definition = model("start -> a -> b -> regret -> end", no_b=call("booking"), regret=undo(), handlers={"a": "no_a", "b": "no_b"})
    case = case_of(definition).complete("a").complete("b")
    assert case.tasks == ["book"]
    assert case.complete("book").complete("also").tasks == ["no_a"]
    assert case.complete("no_a").ended == "completed"


def test_a_called_process_undoes_its_own_and_only_that() -> None:
    definition = model("start -> a -> calls -> end", calls=call("regretting"), handlers={"a": "no_a"})
    case = case_of(definition).complete("a").complete("book")
    assert case.tasks == ["no_book"]
    assert case.complete("no_book").ended == "completed"


def test_each_of_several_calls_is_undone_with_its_item() -> None:
    definition = model(
        "start -> trip -> regret -> end", trip=several(call("booking"), of="${people}"), regret=undo(), handlers={"trip": "no_trip"}
    )
    case = case_of(definition, people=["ada", "bo"]).complete("book").complete("book").complete("also").complete("also")
    for name in ("bo", "ada"):
        assert seen(case, "no_trip", "item") == name
        case.complete("no_trip")
    assert case.ended == "completed"


def test_a_call_that_runs_when_its_transaction_is_cancelled_is_withdrawn_with_all_it_had_done() -> None:
    definition = model(
        "start -> tx -> end", "gone -> sorry -> end", "start_in -> a -> par1 -> trip -> end_in", "par1 -> stopping -> stop",
        inside={"tx": "start_in a par1 trip stopping stop end_in"}, par1=par(), tx=transaction(), trip=call("booking"), stop=cancel_end(),
        gone=boundary("tx", cancel=True), sorry=user(), handlers={"a": "no_a", "trip": "no_trip"},
    )  # fmt: skip
    case = case_of(definition).complete("a").complete("book").complete("stopping")
    assert case.tasks == ["no_a"]
    assert [called.status for called in case.called.values()] == ["cancelled"]
    assert case.complete("no_a").tasks == ["sorry"]
    assert not case.executions
    assert case.complete("sorry").ended == "completed"


def test_a_call_that_ends_forgets_what_it_had_completed() -> None:
    case = case_of(model("start -> trip -> later -> end", trip=call("booking"))).complete("book")
    assert [row.element_id for row in case.executions.values()] == ["book"]
    assert not case.complete("also").executions
    assert case.complete("later").ended == "completed"
