"""The general synchronizing merge in loops, beside boundary events, in subprocesses, and when an upstream token vanishes (13.4.3)."""

from tests.core.models import boundary, end, error_end, inc, link, model, par, service, start, terminate, throw, user
from tests.core.world import World

YES = "${true}"


def test_a_merge_waits_for_a_token_that_may_still_come_over_a_boundary_event() -> None:
    beside = model(
        "start -> par -> a -> inc -> z -> end", "par -> b -> end1", "late -> inc",
        late=boundary("b", after="PT1H"), b=user(), par=par(),
    )  # fmt: skip
    run = World(beside).start().complete("a")
    assert run.open == ["b", "late"]
    assert run.asked_whole == 1, "whether others can come cannot be seen in a narrow snapshot"
    assert run.fire("late").open == ["z"]
    vanished = World(beside).start().complete("a").complete("b")
    assert vanished.open == ["z"], "b went another way: nothing can come any more"
    assert vanished.events[-1].kind == "task_created"


def test_a_merge_is_looked_at_again_when_what_it_waits_for_is_cancelled() -> None:
    cancelled = model(
        "start -> par -> a -> inc -> z -> end", "par -> sub -> inc", "any -> end1", "s -> decide -> err",
        err=error_end("X"), any=boundary("sub", error="*"), s=start(), inside={"sub": "s decide err"}, par=par(),
    )  # fmt: skip
    run = World(cancelled).start().complete("a")
    assert run.open == ["decide"]
    assert run.complete("decide").open == ["z"]


def test_a_merge_in_a_loop_waits_in_each_round_for_the_tokens_of_that_round() -> None:
    loop = model(
        "start -> xor_back -> inc_split -> a -> inc_join -> xor_again -> xor_back", "inc_split -> b -> inc_join", "xor_again -> end",
        conditions={"inc_split>a": YES, "inc_split>b": "${both}", "xor_again>xor_back": "${more}"}, defaults=("xor_again>end",),
    )  # fmt: skip
    run = World(loop).start(both=True, more=True).complete("b")
    assert run.open == ["a"]
    run.complete("a", both=False)
    assert run.open == ["a"], "the second round took one branch alone"
    run.complete("a", both=True)
    assert run.open == ["a", "b"]
    run.complete("a")
    assert run.open == ["b"]
    assert run.complete("b", more=False).ended == "completed"
    assert run.happened.count("join_passed inc_join") == 3


def test_a_token_that_can_take_a_flow_that_has_one_already_is_not_waited_for() -> None:
    """Whichever way b goes: condition (iv) to (vi) of 13.4.3 holds, so the merge passes without it, and again when it comes."""
    either = model("start -> par -> a -> xor_m -> inc -> z -> end", "par -> b -> xor_d -> xor_m", "xor_d -> inc", par=par(),
                   conditions={"xor_d>xor_m": "${same}"}, defaults=("xor_d>inc",))  # fmt: skip
    for same in (True, False):
        run = World(either).start().complete("a")
        assert run.open == ["b", "z"]
        assert run.complete("b", same=same).open == ["z", "z"]


def test_a_merge_whose_one_flow_is_used_by_all_does_not_wait() -> None:
    back = model("start -> par -> a -> xor -> inc -> z -> xor_out -> end", "par -> b -> xor", "xor_out -> xor", par=par(),
                 conditions={"xor_out>xor": "${again}"}, defaults=("xor_out>end",))  # fmt: skip
    run = World(back).start(again=False)
    run.complete("a")
    assert run.open == ["b", "z"]
    run.complete("b")
    assert run.open == ["z", "z"]


def test_paths_follow_links() -> None:
    linked = model("start -> par -> a -> inc -> z -> end", "par -> b -> t", "c -> inc", t=throw(link="L"), c=link("L"), par=par())
    run = World(linked).start().complete("a")
    assert run.open == ["b"]
    assert run.complete("b").open == ["z"]


def test_two_merges_that_can_reach_each_other_do_not_wait_forever_for_what_is_at_neither() -> None:
    row = model("start -> par -> a -> inc1 -> inc2 -> z -> end", "par -> b -> inc1", "par -> c -> inc2", par=par())
    run = World(row).start().complete("c").complete("a")
    assert run.open == ["b"]
    run.complete("b")
    assert run.open == ["z"], "the first merge passes, and so does the second in the same step"
    assert run.new("join_passed") == ["join_passed inc1", "join_passed inc2"]


def test_a_token_at_an_incident_can_still_come() -> None:
    broken = model("start -> par -> a -> inc -> z -> end", "par -> x -> inc", x=service(outputs={"n": "${gone}"}), par=par())
    run = World(broken).start().complete("x")
    assert [incident.element_id for incident in run.incidents] == ["x"]
    run.complete("a")
    assert run.tasks == []
    run.retry("x").complete("x", gone=1)
    assert run.tasks == ["z"]


def test_a_merge_that_finds_no_way_out_has_taken_its_tokens_and_a_retry_only_chooses_again() -> None:
    stuck = model(
        "start -> par -> a -> inc -> z -> end", "par -> b -> inc", "inc -> y -> end", par=par(), inc=inc("Merge"),
        conditions={"inc>z": "${way == 1}", "inc>y": "${way == 2}"},
    )  # fmt: skip
    run = World(stuck).start(way=0).complete("a").complete("b")
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("inc", "no_flow")
    assert [(token.element_id, token.status) for token in run.tokens.values()] == [("inc", "failed")]
    run.retry("inc")
    assert [each.kind for each in run.incidents] == ["no_flow"]
    assert run.happened.count("element_entered inc") == run.happened.count("join_passed inc") == 1


def test_a_merge_inside_a_subprocess_looks_at_its_own_scope_only() -> None:
    inside = model(
        "start -> par -> sub -> after -> end", "par -> other -> end1", "s -> par2 -> a -> inc -> e", "par2 -> b -> inc",
        s=start(), e=end(), par=par(), par2=par(), inside={"sub": "s par2 a b inc e"},
    )  # fmt: skip
    run = World(inside).start().complete("a").complete("b")
    assert run.open == ["after", "other"]


def test_terminate_takes_tokens_that_wait_at_a_merge_along() -> None:
    ended = model("start -> par -> a -> inc -> z -> end", "par -> b -> xor -> inc", "xor -> stop", stop=terminate(), par=par(),
                  conditions={"xor>stop": "${no}"}, defaults=("xor>inc",))  # fmt: skip
    run = World(ended).start().complete("a").complete("b", no=True)
    assert run.ended == "completed"
    assert "join_passed inc" not in run.happened


def test_the_gateway_may_split_what_it_merges() -> None:
    both = model("start -> par -> a -> inc -> y -> end", "par -> b -> inc", "inc -> z -> end1", par=par(),
                 conditions={"inc>y": YES, "inc>z": YES})  # fmt: skip
    assert World(both).start().complete("a").complete("b").open == ["y", "z"]
