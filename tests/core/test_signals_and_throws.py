"""Signals reach everything in the case that waits for them, in the step that throws (10.5.1, 13.5.3); messages go by a throw."""

from __future__ import annotations

import pytest

from engine.core import throws
from engine.core.effects import NewThrow
from engine.core.run import STEP_LIMIT
from tests.core.models import boundary, by_event, catch, first_event, model, on_event, par, script, signals, start, sub, tells, user
from tests.core.world import World


def thrown(run: World) -> NewThrow:
    (throw,) = run.throws
    return throw


def test_a_signal_is_a_throw_for_everybody_else() -> None:
    run = World(model("start -> go -> end", go=signals("GO", amount="${amount + 1}"))).start(amount=4, secret=1)
    assert run.ended == "completed"
    payload = thrown(run).payload
    assert (thrown(run).topic, payload["name"], payload["served"]) == ("signal", "GO", [str(run.instance_id)])
    assert payload["variables"] == {"amount": {"type": "integer", "value": 5}}
    assert run.new("signal_thrown") == ["signal_thrown go"]


def test_nothing_goes_along_unless_the_model_says_so_and_everything_if_it_says_that() -> None:
    assert thrown(World(model("start -> go -> end", go=signals("GO"))).start(a=1)).payload["variables"] == {}
    run = World(model("start -> go -> end", go=signals("GO", everything=True, b="2"))).start(a=1)
    assert set(thrown(run).payload["variables"]) == {"a", "b"}


def test_a_signal_end_event_throws_and_its_instance_completes() -> None:
    run = World(model("start -> bye", bye=signals("BYE", end=True))).start()
    assert run.ended == "completed" and thrown(run).payload["name"] == "BYE"
    assert run.new("signal_thrown", "element_left")[-2:] == ["element_left bye", "signal_thrown bye"]


FORK = ("start -> par", "par -> wait -> after -> end", "par -> a -> go -> end2")


def test_another_branch_that_waits_goes_on_in_the_same_step() -> None:
    run = World(model(*FORK, par=par(), wait=catch(signal="GO"), after=user(), a=user(), go=signals("GO", x="7"))).start()
    run.complete("a")
    assert run.tasks == ["after"] and run.variables["x"] == "7"
    assert run.new("signal_caught") == ["signal_caught wait"]
    assert run.asked_whole == 1
    assert run.complete("after").ended == "completed"


def test_a_signal_of_another_name_reaches_nobody() -> None:
    run = World(model(*FORK, par=par(), wait=catch(signal="OTHER"), after=user(), a=user(), go=signals("GO"))).start().complete("a")
    assert run.open == ["wait"] and run.new("signal_caught") == []


def test_what_waited_before_in_the_same_step_is_reached_and_what_waits_after_is_not() -> None:
    """A signal is not stored (10.5.1)."""
    first = World(model("start -> par", "par -> wait -> end", "par -> go -> end2", par=par(), wait=catch(signal="GO"), go=signals("GO")))
    assert first.start().ended == "completed"
    late = World(model("start -> go -> wait -> end", wait=catch(signal="GO"), go=signals("GO")))
    assert late.start().open == ["wait"]


def test_names_may_be_expressions() -> None:
    run = World(model(*FORK, par=par(), wait=catch(signal="GO-${n}"), after=user(), a=user(), go=signals("GO-${m}")))
    run.start(n=1, m=2).complete("a", m=1)
    assert run.tasks == ["after"]


def test_a_name_of_nothing_is_an_incident_and_throws_nothing() -> None:
    run = World(model("start -> go -> end", go=signals("${n}"))).start(n="")
    assert run.throws == [] and "expected a signal name" in run.incidents[0].message


def test_a_payload_that_fails_throws_nothing_and_is_retried_whole() -> None:
    run = World(model("start -> go -> end", go=signals("GO", x="${1 / n}"))).start(n=0)
    assert run.throws == [] and len(run.incidents) == 1


def test_a_boundary_event_that_interrupts_cancels_the_activity_and_with_it_the_thrower() -> None:
    run = World(
        model(
            "start -> box -> end", "start2 -> go -> never -> end8", "stop -> late -> end2",
            inside={"box": "start2 go never end8"}, box=sub(), go=signals("GO"), never=user(), 
            stop=boundary("box", signal="GO"), late=user(),
        )
    ).start()  # fmt: skip
    assert run.tasks == ["late"]


def test_a_boundary_event_that_does_not_interrupt_goes_on_besides_and_waits_for_the_next() -> None:
    run = World(
        model(
            "start -> box -> after -> end", "start2 -> go -> work -> again -> end8", "note -> noted -> end2",
            inside={"box": "start2 go work again end8"},
            box=sub(), go=signals("GO"), work=user(), again=signals("GO"), note=boundary("box", signal="GO", interrupting=False),
            noted=user(), after=user(),
        )
    ).start()  # fmt: skip
    assert run.tasks == ["noted", "work"] and run.open.count("note") == 1
    run.complete("work")
    assert run.tasks == ["after", "noted", "noted"] and "note" not in run.open


def test_an_event_subprocess_that_interrupts_takes_the_place_of_the_thrower() -> None:
    run = World(
        model(
            "start -> box -> end", "start2 -> go -> never -> end8", "on -> handle -> end7",
            inside={"box": "start2 go never end8 esp", "esp": "on handle end7"}, box=sub(), go=signals("GO"), never=user(), esp=by_event(),
            on=on_event(signal="GO"), handle=user(),
        )
    ).start()  # fmt: skip
    assert run.tasks == ["handle"]
    assert run.complete("handle").ended == "completed"


def test_an_event_subprocess_that_does_not_interrupt_begins_at_each_signal() -> None:
    run = World(
        model(
            "start -> a -> go -> b -> more -> c -> end", "on -> handle -> end7", inside={"esp": "on handle end7"}, esp=by_event(),
            on=on_event(signal="GO", interrupting=False), handle=user(), a=user(), b=user(), c=user(), go=signals("GO"), more=signals("GO"),
        )
    ).start()  # fmt: skip
    run.complete("a")
    assert run.tasks == ["b", "handle"]
    run.complete("b")
    assert run.tasks == ["c", "handle", "handle"]


def test_the_signal_behind_a_gateway_wins_and_the_other_way_is_withdrawn() -> None:
    run = World(
        model(
            "start -> par", "par -> first -> got -> won -> end", "first -> late -> lost -> end2", "par -> a -> go -> end3", par=par(),
            first=first_event(), got=catch(signal="GO"), late=catch(after="PT1H"), won=user(), lost=user(), a=user(), go=signals("GO"),
        )
    ).start()  # fmt: skip
    run.complete("a")
    assert run.tasks == ["won"] and run.open == ["won"]


def test_everybody_in_the_case_is_reached_once() -> None:
    run = World(
        model(
            "start -> par", "par -> one -> t1 -> end", "par -> two -> t2 -> end2", "par -> a -> go -> end3", par=par(),
            one=catch(signal="GO"), two=catch(signal="GO"), t1=user(), t2=user(), a=user(), go=signals("GO"),
        )
    ).start()  # fmt: skip
    run.complete("a")
    assert run.tasks == ["t1", "t2"] and run.new("signal_caught") == ["signal_caught one", "signal_caught two"]


def test_who_is_cancelled_by_one_that_the_signal_reached_before_is_not_reached() -> None:
    run = World(
        model(
            "start -> box -> end", "start2 -> par", "par -> wait -> never -> end8", "par -> a -> go -> end9", "stop -> late -> end2",
            inside={"box": "start2 par wait never end8 a go end9"}, box=sub(), par=par(), wait=catch(signal="GO"), never=user(), a=user(),
            go=signals("GO"), stop=boundary("box", signal="GO"), late=user(),
        )
    ).start()  # fmt: skip
    run.complete("a")
    assert run.tasks == ["late"] and run.new("signal_caught") == ["signal_caught stop"]


@pytest.mark.parametrize("interrupting", [False, True])
def test_of_very_many_who_wait_a_step_serves_what_interrupts_and_some_others(monkeypatch: pytest.MonkeyPatch, interrupting: bool) -> None:
    """The others have it by their jobs: `served` leaves nobody out, and the subscriptions of those who were served are gone."""
    monkeypatch.setattr(throws, "AT_ONCE", 2)
    waits = {f"w{n}": catch(signal="GO") for n in range(4)}
    flows = [f"par -> {name} -> t{name} -> end{name}" for name in waits]
    stop = boundary("last", signal="GO", interrupting=interrupting)
    elements = {"par": par(), "a": user(), "go": signals("GO"), "last": user(), "stop": stop, "late": user(), **waits}
    run = World(model("start -> par", *flows, "par -> a -> go -> end9", "par -> last -> end8", "stop -> late -> end7", **elements)).start()
    run.complete("a")
    expected = ["stop", "w0"] if interrupting else ["w0", "w1"]
    assert run.new("signal_caught") == [f"signal_caught {name}" for name in expected]
    assert thrown(run).payload["served"] == []
    left = [each for each in ("stop", *waits) if each in run.open]
    assert sorted([*left, *expected]) == ["stop", "w0", "w1", "w2", "w3"]


def test_a_signal_that_calls_itself_forth_without_end_is_an_incident() -> None:
    run = World(
        model("start -> a -> go -> end", "on -> again -> end7", inside={"esp": "on again end7"}, esp=by_event(), a=user(),
              go=signals("GO"), on=on_event(signal="GO", interrupting=False), again=signals("GO"))
    ).start()  # fmt: skip
    run.complete("a")
    assert [incident.kind for incident in run.incidents] == ["endless_loop"]
    assert len(run.last.throws) <= STEP_LIMIT


def test_a_signal_from_outside_moves_on_who_waits() -> None:
    run = World(model("start -> wait -> after -> end", wait=catch(signal="GO"), after=script("${x}", "y"))).start()
    assert run.receive("wait", x=3).final == {"x": 3, "y": 3}
    assert run.new("signal_caught") == ["signal_caught wait"]


# ---- messages for our own processes


def test_a_message_without_a_destination_is_thrown_with_its_key() -> None:
    node = tells("PAID", key="${number}", seconds=60, amount="${amount}")
    run = World(model("start -> tell -> end", tell=node), business_key="b").start(number=42, amount=3)
    throw = thrown(run)
    assert (throw.topic, throw.element_id) == ("message", "tell")
    assert {name: throw.payload[name] for name in ("name", "key", "seconds")} == {"name": "PAID", "key": "42", "seconds": 60}
    assert throw.payload["variables"] == {"amount": {"type": "integer", "value": 3}}
    assert next(event for event in run.events if event.kind == "message_thrown").data == {
        "item_id": str(throw.id),
        "message": "PAID",
        "key": "42",
    }


def test_without_a_key_the_business_key_counts_as_it_does_for_who_waits() -> None:
    run = World(model("start -> tell -> end", tell=tells("PAID")), business_key="b-7").start()
    assert thrown(run).payload["key"] == "b-7"


def test_the_entries_of_a_body_become_variables() -> None:
    run = World(model("start -> tell -> end", tell=tells("PAID", body="${order}"))).start(order={"id": 7, "paid": True})
    assert thrown(run).payload["variables"] == {"id": {"type": "integer", "value": 7}, "paid": {"type": "boolean", "value": True}}


@pytest.mark.parametrize(
    ("node", "part"), [(tells("PAID", body="${7}"), "expected an object"), (tells("PAID", key="${k}"), "correlation key")]
)
def test_a_message_that_cannot_be_made_is_an_incident_and_is_not_thrown(node: object, part: str) -> None:
    run = World(model("start -> tell -> end", tell=node)).start(k="")  # type: ignore[arg-type]
    assert run.throws == [] and part in run.incidents[0].message


def test_a_message_does_not_reach_its_own_case_in_the_same_step() -> None:
    run = World(model(*FORK, par=par(), wait=catch(on="GO"), after=user(), a=user(), go=tells("GO"), start=start())).start().complete("a")
    assert run.open == ["wait"] and len(run.throws) == 1


def test_a_branch_waits_for_the_signal_that_the_branch_beside_it_throws_whichever_is_drawn_first() -> None:
    flows = ("start -> par -> loud -> a -> end", "par -> wait -> b -> end2")
    run = World(model(*flows, loud=signals("GO"), wait=catch(signal="GO"))).start()
    assert run.tasks == ["a", "b"]
