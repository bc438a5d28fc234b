"""S2: two tokens over one flow and one over the other: the join fires with one of each, and the surplus fires it again."""

import itertools

import pytest

from tests.core.models import model
from tests.core.world import World

MODEL = model(
    "start -> inc_split -> x -> par_fork -> p -> xor_merge -> inc_join -> z -> end",
    "par_fork -> q -> xor_merge",
    "inc_split -> y -> inc_join",
    conditions={"inc_split>x": "${true}", "inc_split>y": "${true}"},
)
ORDERS = [order for order in itertools.permutations(["x", "p", "q", "y"]) if order.index("x") < min(order.index("p"), order.index("q"))]


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_S02_z_opens_twice_and_nothing_is_left(order: tuple[str, ...]) -> None:
    run = World(MODEL).start()
    assert run.open == ["x", "y"]
    for place, task in enumerate(order):
        run.complete(task)
        if task != order[-1] and "y" not in order[: place + 1]:
            assert "z" not in run.open, "y can still come over the flow that has no token"
    assert run.open == ["z", "z"]
    passed = [event.data["flows"] for event in run.events if event.kind == "join_passed"]
    assert sorted(passed) == [["xor_merge>inc_join"], ["xor_merge>inc_join", "y>inc_join"]]
    run.complete("z").complete("z")
    assert run.ended == "completed"


def test_S02_with_the_surplus_token_still_on_its_way_the_join_does_not_wait_for_it() -> None:
    """It can only come over a flow that has a token already."""
    run = World(MODEL).start().complete("x").complete("p").complete("y")
    assert run.open == ["q", "z"]
    assert run.complete("q").open == ["z", "z"]
