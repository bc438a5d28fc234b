"""S8: an interrupting event subprocess cancels whatever is in its scope, begins once, and its parent continues once."""

from __future__ import annotations

import pytest

from tests.core.models import by_event, end, model, on_event, par, service, start
from tests.core.world import World

MODEL = model(
    "start -> sub -> after -> end",
    "s -> par -> a -> par_join -> d -> e",
    "par -> b -> par_join",
    "par -> c -> par_join",
    "stop -> undo -> undone",
    s=start(),
    par=par(),
    e=end(),
    handler=by_event(),
    stop=on_event(on="STOP"),
    undo=service("undo"),
    undone=end(),
    inside={"sub": "s par a b c par_join d e handler", "handler": "stop undo undone"},
)


@pytest.mark.parametrize("before", [(), ("a",), ("a", "b")])
def test_S08_every_task_is_cancelled_undo_runs_once_and_the_parent_continues_once(before: tuple[str, ...]) -> None:
    run = World(MODEL).start()
    assert run.open == ["a", "b", "c", "stop"]
    for task in before:
        run.complete(task)
    left = sorted({"a", "b", "c"} - set(before))
    run.receive("stop", reason="late")
    assert [each for each in run.new() if each.startswith("task_cancelled")] == [f"task_cancelled {task}" for task in left]
    assert run.open == ["undo"], "nothing listens any more either"
    assert [job.topic for job in run.last.jobs] == ["undo"]
    assert run.variables == {"reason": "late"}
    run.complete("undo")
    assert run.open == ["after"]
    assert run.new("element_left") == ["element_left undo", "element_left undone", "element_left handler", "element_left sub"]
    assert run.complete("after").ended == "completed"
    assert run.happened.count("element_entered handler") == run.happened.count("element_entered after") == 1


def test_S08_what_listens_goes_with_its_subprocess() -> None:
    run = World(MODEL).start().complete("a").complete("b").complete("c")
    assert run.open == ["d", "stop"]
    assert run.complete("d").open == ["after"]
