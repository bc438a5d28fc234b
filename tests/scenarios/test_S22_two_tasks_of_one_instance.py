"""S22, the core's half: both orders of completing two parallel tasks fire the join once and queue the follow-up."""

import pytest

from engine.core.effects import NewJob
from tests.core.models import model, service
from tests.core.world import World

FORK = model("start -> par -> a -> par_join -> ship -> end", "par -> b -> par_join", ship=service("ship"))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_S22_the_join_fires_once_whoever_is_last(order: tuple[str, str]) -> None:
    run = World(FORK).start()
    first, second = order
    run.complete(first, **{first: 1})
    assert run.open == [second]
    run.complete(second, **{second: 2})
    assert run.open == ["ship"]
    job = run.leaf("ship", NewJob)
    assert isinstance(job, NewJob)
    assert not job.lock_first, "after the join the token is alone again"
    assert run.happened.count("join_passed par_join") == 1
    assert run.complete("ship").ended == "completed"
    assert run.final == {first: 1, second: 2}
    assert run.asked_whole == 0


def test_S22_the_first_token_waits_in_its_row_and_the_last_one_consumes_it() -> None:
    run = World(FORK).start()
    at = {token.element_id: token.id for token in run.tokens.values()}
    run.complete("a")
    assert [moved.id for moved in run.last.moved_tokens] == [at["a"]]
    run.complete("b")
    assert [moved.id for moved in run.last.moved_tokens] == [at["b"]]
    assert run.last.gone_tokens == [at["a"]], "the token that waited is consumed"
