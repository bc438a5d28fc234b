"""S5: join state belongs to an activation, not to the element."""

from tests.core.models import model
from tests.core.world import World

LOOP = model(
    "start -> xor_merge -> par_fork -> a -> par_join -> xor_again -> end",
    "par_fork -> b -> par_join",
    "xor_again -> xor_merge",
    conditions={"xor_again>xor_merge": "${rounds < 3}"},
    defaults=("xor_again>end",),
)


def test_S5_every_round_waits_for_both_of_its_own_tokens() -> None:
    run = World(LOOP).start(rounds=0)
    for number, (first, second) in enumerate([("a", "b"), ("b", "a"), ("a", "b")], start=1):
        assert run.tasks == ["a", "b"]
        run.complete(first)
        assert run.tasks == [second], "the join must not fire on one token"
        assert [token.status for token in run.tokens.values() if token.element_id == "par_join"] == ["joining"]
        run.complete(second, rounds=number)
    assert run.ended == "completed"
    assert run.happened.count("task_completed a") == run.happened.count("task_completed b") == 3
    assert run.happened.count("join_passed par_join") == 3
    assert run.asked_whole == 0, "joins are decided on narrow snapshots"


def test_S5_the_rounds_happen_in_this_order() -> None:
    run = World(LOOP).start(rounds=2)
    run.complete("b").complete("a", rounds=3)
    told = [each for each in run.happened if each.split()[0] in ("task_created", "task_completed", "join_passed", "flow_taken")]
    assert told == [
        "flow_taken start>xor_merge",
        "flow_taken xor_merge>par_fork",
        "flow_taken par_fork>a",
        "task_created a",
        "flow_taken par_fork>b",
        "task_created b",
        "task_completed b",
        "flow_taken b>par_join",
        "task_completed a",
        "flow_taken a>par_join",
        "join_passed par_join",
        "flow_taken par_join>xor_again",
        "flow_taken xor_again>end",
    ]


def test_a_surplus_token_on_one_flow_waits_for_the_next_activation() -> None:
    """Two tokens come over one flow before the other flow has any: the join fires once a pair."""
    twice = model(
        "start -> par -> a -> xor -> par_join -> after -> end",
        "par -> a2 -> xor",
        "par -> b -> par_join",
        "par -> b2 -> xor_b -> b",
    )
    run = World(twice).start()
    run.complete("a").complete("a2")
    assert [token.flow_id for token in run.tokens.values() if token.status == "joining"] == ["xor>par_join", "xor>par_join"]
    assert "after" not in run.tasks
    run.complete("b")
    assert run.tasks.count("after") == 1
    assert [token.flow_id for token in run.tokens.values() if token.status == "joining"] == ["xor>par_join"]
    run.complete("b2").complete("b")
    assert run.tasks.count("after") == 2
    run.complete("after").complete("after")
    assert run.ended == "completed"
    assert run.happened.count("join_passed par_join") == 2
