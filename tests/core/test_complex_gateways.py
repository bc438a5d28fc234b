"""Complex gateways: activation as soon as the condition is true, conditions on the way out, and the reset (10.6.5, 13.4.5)."""

from __future__ import annotations

from typing import Any

from engine.bpmn.definition import ProcessDefinition
from tests.core.models import by_event, complexly, end, error_end, model, on_event, script, start, sub, terminate, user
from tests.core.world import World


def three(activation: str | None = "${activationCount >= 2}", **more: Any) -> ProcessDefinition:
    """Three branches that meet; behind them `after`."""
    conditions = more.pop("conditions", {})
    return model(
        "start -> par", *(f"par -> {each} -> meet" for each in "abc"), "meet -> after -> end", *more.pop("chains", ()),
        meet=complexly(activation), conditions=conditions, **more,
    )  # fmt: skip


def test_it_goes_on_when_enough_have_come_and_once_for_all_of_them() -> None:
    run = World(three()).start().complete("a")
    assert run.open == ["b", "c"]
    assert run.complete("b").open == ["after", "c"]
    assert run.complete("c").open == ["after"], "the late one resets it and goes no further"
    assert run.new("join_passed", "element_entered", "element_left") == [
        "element_left c", "element_entered meet", "join_passed meet", "element_left meet",
    ]  # fmt: skip
    assert run.complete("after").ended == "completed"
    assert run.happened.count("flow_taken meet>after") == 1


def test_without_a_condition_the_first_to_come_wins() -> None:
    run = World(three(None)).start().complete("b")
    assert run.open == ["a", "after", "c"]
    assert run.complete("a").complete("c").open == ["after"]


def test_each_round_of_a_loop_starts_anew() -> None:
    loop = model(
        "start -> xor -> par", *(f"par -> {each} -> meet" for each in "abc"), "meet -> again", "again -> xor", "again -> end",
        meet=complexly("${activationCount >= 2}"), again=user(), conditions={"again>xor": "${more}", "again>end": "${not more}"},
    )  # fmt: skip
    run = World(loop).start()
    for more in (True, True, False):
        run.complete("a").complete("b")
        assert run.open == ["again", "c"]
        run.complete("c").complete("again", more=more)
    assert run.ended == "completed"


def test_one_that_comes_over_a_flow_taken_already_waits_for_the_next_round() -> None:
    late = model(
        "start -> par", "par -> a -> xor", "par -> d -> xor", "xor -> meet", "par -> b -> meet", "par -> c -> meet", "meet -> after -> end",
        meet=complexly("${activationCount >= 2}"),
    )  # fmt: skip
    run = World(late).start().complete("a").complete("b")
    assert run.open == ["after", "c", "d"]
    run.complete("d")
    assert run.open == ["after", "c"], "its flow had been taken: it waits"
    run.complete("c")
    assert run.open == ["after"], "the reset; one alone does not activate it again"
    assert [token.status for token in run.tokens.values() if token.element_id == "meet"] == ["joining"]


def test_conditions_may_ask_which_phase_it_is() -> None:
    model_ = three(
        "${activationCount >= 1}", chains=("meet -> rest -> end",),
        conditions={"meet>after": "${waitingForStart}", "meet>rest": "${not waitingForStart}"},
    )  # fmt: skip
    run = World(model_).start().complete("a")
    assert run.open == ["after", "b", "c"]
    run.complete("b").complete("c")
    assert run.open == ["after", "rest"], "one token of all that came late"
    assert run.complete("after").complete("rest").ended == "completed"


def test_each_flow_can_be_counted() -> None:
    run = World(three("${activationCounts['a>meet'] + activationCounts['b>meet'] >= 2}")).start()
    assert run.complete("a").complete("c").open == ["b"]
    assert run.complete("b").open == ["after"], "all have come: the reset has nothing to wait for"
    assert run.complete("after").ended == "completed"


def test_it_is_reset_when_what_it_waits_for_can_no_longer_come() -> None:
    way_out = model(
        "start -> xor -> par", "par -> a -> meet", "par -> b -> choice", "choice -> meet", "choice -> end1", "meet -> again",
        "again -> xor", "again -> end", meet=complexly("${activationCount >= 1}"), again=user(), choice=user(),
        conditions={"choice>meet": "${comes}", "choice>end1": "${not comes}", "again>xor": "${more}", "again>end": "${not more}"},
    )  # fmt: skip
    run = World(way_out).start().complete("a").complete("b").complete("choice", comes=False)
    assert "meet" not in {token.element_id for token in run.tokens.values()}, "it has forgotten what it took"
    run.complete("again", more=True).complete("b").complete("choice", comes=True)
    assert run.open == ["a", "again"]


def test_it_splits_like_an_inclusive_gateway_and_once() -> None:
    split = model(
        "start -> split", "split -> a -> end", "split -> b -> end", "split -> c -> end", split=complexly(),
        conditions={"split>a": "${n > 1}", "split>b": "${n > 2}"}, defaults=("split>c",),
    )  # fmt: skip
    assert World(split).start(n=3).open == ["a", "b"]
    assert World(split).start(n=2).open == ["a"]
    assert World(split).start(n=1).open == ["c"]


def test_a_start_that_finds_no_flow_is_an_incident_and_a_retry_asks_again() -> None:
    nowhere = three("${activationCount >= 1}", conditions={"meet>after": "${open}"})
    run = World(nowhere).start(open=False).complete("a")
    assert [incident.kind for incident in run.incidents] == ["no_flow"]
    assert run.complete("b", open=True).open == ["after", "c", "meet"]
    run.retry("meet").complete("c")
    assert (run.open, run.incidents) == (["after", "after"], []), "the reset asks the condition again"


def test_a_reset_that_cannot_be_decided_is_an_incident_and_loses_nothing() -> None:
    odd = three(
        "${activationCount >= 1}", chains=("meet -> rest -> end",),
        conditions={"meet>after": "${waitingForStart}", "meet>rest": "${waitingForStart ? false : late}"},
    )  # fmt: skip
    run = World(odd).start().complete("a").complete("b").complete("c")
    assert [incident.element_id for incident in run.incidents] == ["meet"]
    run.complete("after", late=True)
    assert run.ended is None
    assert run.retry("meet").open == ["rest"]
    assert run.complete("rest").ended == "completed"


def test_a_condition_over_data_is_asked_again_when_its_scope_moves() -> None:
    run = World(three("${enough}")).start(enough=False).complete("a")
    assert run.open == ["b", "c"]
    assert run.complete("b", enough=True).open == ["after", "c"]


def test_what_it_remembers_keeps_no_scope_open_and_goes_with_it() -> None:
    inside = model(
        "start -> sub -> after -> end", "s -> par", "par -> a -> meet", "par -> b -> stop", "meet -> e", sub=sub(), s=start(), e=end(),
        stop=terminate(), meet=complexly("${activationCount >= 1}"), inside={"sub": "s par a b meet stop e"},
    )  # fmt: skip
    run = World(inside).start().complete("a")
    assert run.open == ["b"]
    assert run.complete("b").open == ["after"]
    assert (len(run.scopes), len(run.tokens)) == (1, 1)


def test_an_event_subprocess_that_interrupts_takes_its_tokens_along() -> None:
    inside = model(
        "start -> sub -> after -> end", "s -> par", *(f"par -> {each} -> meet" for each in "abc"), "meet -> e", "on -> h -> he", sub=sub(),
        s=start(), e=end(), he=end(), meet=complexly("${activationCount >= 2}"), handler=by_event(), on=on_event(on="STOP"),
        inside={"sub": "s par a b c meet e handler", "handler": "on h he"},
    )  # fmt: skip
    run = World(inside).start().complete("a").complete("b").receive("on")
    assert run.open == ["h"]
    assert run.complete("h").open == ["after"]


def test_instant_branches_are_taken_together_or_one_by_one_but_never_twice() -> None:
    instant = model(
        "start -> split", *(f"split -> {each} -> meet" for each in "abc"), "meet -> after -> end",
        split=complexly(), meet=complexly("${activationCount >= 1}"),
        a=script("${1}", "x"), b=script("${1}", "y"), c=script("${1}", "z"),
        conditions={f"split>{each}": f"${{test.contains('{each}')}}" for each in "abc"},
    )  # fmt: skip
    for test in ("a", "b", "ab", "abc"):
        run = World(instant).start(test=test)
        assert run.open == ["after"], test
        assert run.happened.count("flow_taken meet>after") == 1
        assert run.complete("after").ended == "completed"


def test_an_error_past_the_gateway_ends_what_it_waits_for() -> None:
    failing = model(
        "start -> par", "par -> a -> meet", "par -> b -> meet", "meet -> err", meet=complexly(), err=error_end("BAD"),
    )  # fmt: skip
    run = World(failing).start().complete("a")
    assert [incident.kind for incident in run.incidents] == ["uncaught_error"]
