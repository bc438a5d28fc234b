"""S3: an inclusive split takes every flow whose condition holds, the default only if none does; the join waits for those taken."""

import pytest

from tests.core.models import inc, model
from tests.core.world import World

BRANCHES = ("start -> inc_split -> a -> inc_join -> next -> end", "inc_split -> b -> inc_join", "inc_split -> c -> inc_join")
CONDITIONS = {f"inc_split>{name}": f"${{with_{name}}}" for name in "abc"}
WITH_DEFAULT = model(
    *BRANCHES, "inc_split -> fallback -> inc_join", conditions=CONDITIONS, defaults=("inc_split>fallback",), inc_split=inc("Which?")
)
WITHOUT = model(*BRANCHES, conditions=CONDITIONS, inc_split=inc("Which?"))


def test_S03_two_of_three_open_and_what_follows_opens_once_after_both() -> None:
    run = World(WITH_DEFAULT).start(with_a=True, with_b=True, with_c=False)
    assert run.open == ["a", "b"]
    assert run.complete("a").open == ["b"]
    run.complete("b")
    assert run.open == ["next"]
    assert run.new()[-9:] == [
        "task_completed b",
        "element_left b",
        "flow_taken b>inc_join",
        "element_entered inc_join",
        "join_passed inc_join",
        "element_left inc_join",
        "flow_taken inc_join>next",
        "element_entered next",
        "task_created next",
    ]
    assert run.happened.count("task_created next") == 1
    assert run.complete("next").ended == "completed"


def test_S03_the_default_flow_is_taken_when_nothing_else_is() -> None:
    run = World(WITH_DEFAULT).start(with_a=False, with_b=False, with_c=False)
    assert run.open == ["fallback"]
    assert run.complete("fallback").open == ["next"]


def test_S03_without_a_default_it_is_an_incident_that_names_the_gateway() -> None:
    run = World(WITHOUT).start(with_a=False, with_b=False, with_c=False)
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("inc_split", "no_flow")
    assert "Which?" in incident.message


@pytest.mark.parametrize("order", ["abc", "bca", "cab"])
def test_S03_all_three_join_in_any_order(order: str) -> None:
    run = World(WITHOUT).start(with_a=True, with_b=True, with_c=True)
    for name in order:
        assert "next" not in run.open
        run.complete(name)
    assert run.open == ["next"]
