"""Exclusive and parallel gateways, conditional and default flows, implicit forks and ends (8.3.13, 13.2.1, 13.4)."""

from engine.core.effects import NewJob
from tests.core.models import model, service, xor
from tests.core.world import World


def decision(**options: object) -> World:
    conditions = {"decide>small": "${amount < 10}", "decide>medium": "${amount < 100}"}
    defaults = ("decide>large",) if options.pop("default", True) else ()
    chains = ["start -> decide -> small -> end1", "decide -> medium -> end2"]
    if defaults:
        chains.append("decide -> large -> end3")
    return World(model(*chains, decide=xor("How large?"), conditions=conditions, defaults=defaults))


def test_the_first_flow_in_order_whose_condition_holds_is_taken() -> None:
    assert decision().start(amount=5).tasks == ["small"]
    assert decision().start(amount=50).tasks == ["medium"]


def test_the_default_flow_is_taken_only_when_nothing_else_holds() -> None:
    assert decision().start(amount=500).tasks == ["large"]


def test_a_default_flow_listed_first_still_comes_last() -> None:
    either = model("start -> xor -> other -> end1", "xor -> yes -> end2", conditions={"xor>yes": "${ok}"}, defaults=("xor>other",))
    assert World(either).start(ok=True).tasks == ["yes"]
    assert World(either).start(ok=False).tasks == ["other"]


def test_no_flow_and_no_default_is_an_incident_that_names_the_gateway() -> None:
    run = decision(default=False).start(amount=500)
    (incident,) = run.incidents
    assert (incident.kind, incident.element_id) == ("no_flow", "decide")
    assert "How large?" in incident.message
    (token,) = run.tokens.values()
    assert (token.element_id, token.status) == ("decide", "failed")
    assert "element_left decide" not in run.happened


def test_a_missing_name_is_an_incident_and_never_the_default_flow() -> None:
    run = decision().start()
    (incident,) = run.incidents
    assert (incident.kind, incident.element_id) == ("expression", "decide")
    assert "amount" in incident.message
    assert "decide>small" in incident.message
    assert run.tasks == []


def test_a_condition_that_is_neither_true_nor_false_is_an_incident() -> None:
    odd = model("start -> xor -> a -> end", "xor -> b -> end", conditions={"xor>a": "${answer}"}, defaults=("xor>b",))
    for answer in ("yes", 1, None, []):
        (incident,) = World(odd).start(answer=answer).incidents
        assert "expected true or false" in incident.message


def test_a_parallel_gateway_gives_one_token_to_each_flow_and_takes_one_from_each() -> None:
    run = World(model("start -> par -> a -> par_join -> end", "par -> b -> par_join", "par -> c -> par_join")).start()
    assert run.tasks == ["a", "b", "c"]
    run.complete("c").complete("a")
    assert run.ended is None
    run.complete("b")
    assert run.ended == "completed"
    assert run.happened.count("element_entered par_join") == 1


def test_two_flows_between_the_same_gateways_are_two_flows() -> None:
    run = World(model("start -> par -> par_join -> end", "par -> par_join")).start()
    assert run.ended == "completed"
    assert run.happened.count("join_passed par_join") == 1


def test_a_parallel_gateway_with_one_flow_each_way_is_passed() -> None:
    run = World(model("start -> par -> a -> end")).start()
    assert run.tasks == ["a"]
    assert "join_passed par" not in run.happened


def test_one_gateway_may_join_and_fork() -> None:
    run = World(model("start -> par -> a -> par_both -> c -> end1", "par -> b -> par_both -> d -> end2")).start()
    run.complete("a").complete("b")
    assert run.tasks == ["c", "d"]
    assert run.complete("c").complete("d").ended == "completed"


def test_several_flows_out_of_a_task_are_an_implicit_fork() -> None:
    run = World(model("start -> a -> b -> end", "a -> c -> end")).start().complete("a")
    assert run.tasks == ["b", "c"]
    run.complete("b")
    assert run.ended is None, "an end event without a join ends its token only"
    assert run.complete("c").ended == "completed"


def test_conditional_flows_out_of_a_task_are_all_taken_that_hold() -> None:
    conditions = {"a>b": "${n > 1}", "a>c": "${n > 2}"}
    either = model("start -> a -> b -> end", "a -> c -> end", "a -> d -> end", conditions=conditions, defaults=("a>d",))
    assert World(either).start(n=3).complete("a").tasks == ["b", "c"]
    assert World(either).start(n=2).complete("a").tasks == ["b"]
    assert World(either).start(n=1).complete("a").tasks == ["d"]


def test_a_default_flow_is_taken_beside_flows_without_a_condition_unless_one_with_a_condition_is() -> None:
    """8.3.13: it is taken when none of the *conditions* of the other flows is true."""
    either = model("start -> a -> b -> end", "a -> c -> end", "a -> d -> end", conditions={"a>b": "${n > 1}"}, defaults=("a>d",))
    assert World(either).start(n=2).complete("a").tasks == ["b", "c"]
    assert World(either).start(n=1).complete("a").tasks == ["c", "d"]


def test_a_task_without_outgoing_flow_ends_its_token() -> None:
    assert World(model("start -> a")).start().complete("a").ended == "completed"


def test_tokens_that_meet_without_a_join_go_on_one_by_one() -> None:
    run = World(model("start -> par -> a -> after -> end", "par -> b -> after")).start()
    run.complete("a").complete("b")
    assert run.tasks == ["after", "after"]
    assert run.complete("after").complete("after").ended == "completed"


def test_jobs_of_parallel_branches_lock_first_and_those_of_a_single_path_do_not() -> None:
    forked = World(model("start -> par -> s1 -> end", "par -> s2 -> end", s1=service(), s2=service(work="external"))).start()
    assert [job.lock_first for job in forked.last.jobs] == [True]
    assert [task.lock_first for task in forked.last.external_tasks] == [True]
    single = World(model("start -> s1 -> s2 -> end", s1=service(), s2=service())).start()
    assert [job.lock_first for job in single.last.jobs] == [False]
    single.complete("s1")
    assert [job.lock_first for job in single.last.jobs] == [False]


def test_a_job_behind_a_fork_whose_sibling_was_not_loaded_locks_first() -> None:
    run = World(model("start -> par -> a -> s -> end1", "par -> b -> end2", s=service())).start().complete("a")
    (job,) = run.last.jobs
    assert isinstance(run.leaf("s", NewJob), NewJob)
    assert job.lock_first
    assert run.asked_whole == 0


def test_a_loop_that_never_waits_is_an_incident_and_not_a_hang() -> None:
    run = World(
        model("start -> xor -> xor_back -> xor", "xor_back -> end", conditions={"xor_back>end": "${stop}"}, defaults=("xor_back>xor",))
    )
    run.start(stop=False)
    (incident,) = run.incidents
    assert incident.kind == "endless_loop"
    assert "2,000" in incident.message
    assert run.ended is None


def test_a_loop_that_forks_without_waiting_rests_every_token_at_an_incident() -> None:
    run = World(model("start -> xor -> par -> xor", "par -> a -> end")).start()
    assert {incident.kind for incident in run.incidents} == {"endless_loop"}
    assert {token.status for token in run.tokens.values()} == {"failed"}
    assert len(run.incidents) == len(run.tokens) <= 2_000
    assert len(run.last.history) < 10_000


def test_a_join_takes_only_tokens_that_wait_at_it() -> None:
    """The token that came back finds its twin still on the way out of the same gateway: that one is no partner."""
    run = World(model("start -> par -> xor -> par_both -> xor_back -> xor", "par -> par_both", "par_both -> c -> end")).start()
    assert run.happened.count("join_passed par_both") == 1
    assert run.tasks == ["c"]
    assert [token.flow_id for token in run.tokens.values() if token.status == "joining"] == ["xor>par_both"]
