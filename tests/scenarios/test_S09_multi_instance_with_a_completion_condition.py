"""S9: several reviewers, done when enough have answered; the last one may be enough; an empty collection is done at once."""

import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.core.effects import NewTask
from engine.expressions import parse
from tests.core.models import model, several, user
from tests.core.world import World

THREE = ["ada", "bo", "cy"]


def reviewed(enough: int) -> ProcessDefinition:
    review = user("Review", assignee=parse("${reviewer}"))
    until = f"${{nrOfCompletedInstances >= {enough}}}"
    return model("start -> review -> after -> end", review=several(review, of="${reviewers}", element="reviewer", until=until))


def test_S09_the_third_task_vanishes_when_two_have_reviewed() -> None:
    run = World(reviewed(2)).start(reviewers=THREE)
    assert sorted(str(leaf.assignee) for leaf in run.leaves.values() if isinstance(leaf, NewTask)) == THREE
    run.complete("review")
    assert run.tasks == ["review", "review"]
    run.complete("review")
    assert run.new("task_cancelled", "task_created", "element_left") == [
        "element_left review",
        "task_cancelled review",
        "element_left review",
        "element_left review",
        "task_created after",
    ]
    assert run.open == ["after"]
    assert run.happened.count("flow_taken review>after") == 1
    assert run.complete("after").ended == "completed"


def test_S09_a_condition_that_only_the_last_one_fulfils_goes_on_once() -> None:
    run = World(reviewed(3)).start(reviewers=THREE).complete("review").complete("review").complete("review")
    assert run.open == ["after"]
    assert run.happened.count("flow_taken review>after") == 1


@pytest.mark.parametrize("none", [[], None])
def test_S09_an_empty_collection_is_done_at_once(none: object) -> None:
    run = World(reviewed(2)).start(reviewers=none)
    assert run.open == ["after"]
    assert "task_created review" not in run.happened
