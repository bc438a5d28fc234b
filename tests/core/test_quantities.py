"""startQuantity and completionQuantity: how many tokens begin an activity together, and leave it over each flow (10.3.2)."""

from dataclasses import replace

from tests.core.models import model, par, user
from tests.core.world import World


def test_each_flow_out_gets_as_many_tokens_as_the_completion_quantity() -> None:
    run = World(model("start -> x -> a -> end", "x -> b -> end", x=replace(user(), completion_quantity=2))).start().complete("x")
    assert run.open == ["a", "a", "b", "b"]
    assert run.new("flow_taken") == ["flow_taken x>a"] * 2 + ["flow_taken x>b"] * 2


def test_an_activity_begins_when_as_many_tokens_have_come_as_the_start_quantity() -> None:
    gathered = model(
        "start -> par -> a -> x -> end", "par -> b -> x", "par -> c -> x", "par -> d -> x", par=par(), x=replace(user(), start_quantity=2)
    )
    run = World(gathered).start().complete("a")
    assert run.open == ["b", "c", "d"]
    assert [(token.element_id, token.status) for token in run.tokens.values() if token.element_id == "x"] == [("x", "joining")]
    run.complete("b")
    assert run.open == ["c", "d", "x"]
    assert run.new("join_passed", "element_entered") == ["join_passed x", "element_entered x"]
    (passed,) = [event for event in run.last.history if event.kind == "join_passed"]
    assert passed.data == {"flows": ["a>x", "b>x"]}
    run.complete("c").complete("d").complete("x")
    assert run.open == ["x"]
    assert run.complete("x").ended == "completed"


def test_tokens_that_one_activity_made_begin_the_next_together() -> None:
    both = model("start -> x -> y -> end", x=replace(user(), completion_quantity=4), y=replace(user(), start_quantity=2))
    run = World(both).start().complete("x")
    assert run.open == ["y", "y"]


def test_too_few_tokens_wait_and_can_be_cancelled() -> None:
    run = World(model("start -> x -> end", x=replace(user(), start_quantity=2))).start()
    assert (run.open, [token.status for token in run.tokens.values()]) == ([], ["joining"])
    assert run.cancel().ended == "cancelled"
