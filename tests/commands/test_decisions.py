"""Decisions through the commands: deployed and versioned beside processes, and made in the step of the case that calls them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, ItemRetried, Refusal, Rejected, TaskCompleted
from engine.commands.retry import retry_item
from engine.commands.start import start_instance
from engine.core.known import Decidable, DecisionCall
from engine.db.decisions import asking
from engine.db.session import connect
from tests.cast import ADA, BO, OP, engage
from tests.commands.cases import kinds, places, status, the_task, variables
from tests.commands.test_execute_counts import counting
from tests.dmn.models import decision, file, literal, table

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def dish(winter: str = "Stew", *, tag: str = "") -> bytes:
    """Two decisions in one file; `dish` requires `season`."""
    season = decision("season", literal('if degrees < 10 then "Winter" else "Summer"'))
    rules = table(["season"], ["dish: string"], ('"Winter"', f'"{winter}"'), ('"Summer"', '"Salad"'))
    attributes = f'camunda:versionTag="{tag}"' if tag else ""
    return file(decision("dish", rules, name="The dish", needs=("season",), attributes=attributes), season)


def process(task: str = "", *, key: str = "dinner", first: str = "") -> bytes:
    """A process that chooses a dish and then waits for a person; `first` is an element before the choice."""
    how = task or 'camunda:decisionRef="dish" camunda:resultVariable="dish" camunda:mapDecisionResult="singleEntry"'
    flows = ["start", *(["first"] if first else []), "choose", "eat", "end"]
    lines = "".join(f'<sequenceFlow id="f{n}" sourceRef="{a}" targetRef="{b}"/>' for n, (a, b) in enumerate(pairwise(flows)))
    body = task if task.startswith("<") else f'<businessRuleTask id="choose" {how}/>'
    return (
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
        ' xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:flowable="http://flowable.org/bpmn" targetNamespace="t">'
        f'<process id="{key}" isExecutable="true"><startEvent id="start"/>{first}{body}<userTask id="eat" camunda:assignee="ada"/>'
        f'<endEvent id="end"/>{lines}</process></definitions>'
    ).encode()


def put(conn: Connection, **files: bytes) -> Deployed:
    """Deploy files: `dish_dmn=…` is dish.dmn."""
    outcome = deploy(conn, [(name.replace("_", "."), content) for name, content in files.items()], actor=OP)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def begun(conn: Connection, key: str = "dinner", **given: Any) -> Any:
    outcome = start_instance(conn, key, actor=ADA, variables={"degrees": 5, **given})
    assert not isinstance(outcome, Rejected), outcome
    return outcome.instance_id


def incidents(conn: Connection) -> list[tuple[str, str]]:
    return conn.execute("SELECT kind, message FROM incident ORDER BY created_at").fetchall()


def told(conn: Connection, instance: Any) -> list[dict[str, Any]]:
    rows = conn.execute(
        "SELECT data FROM history WHERE instance_id = %s AND kind = 'decision_evaluated' ORDER BY id", (instance,)
    ).fetchall()
    return [row[0] for row in rows]


# ---- deployed and versioned


def test_decisions_are_deployed_with_the_process_that_calls_them(conn: Connection) -> None:
    outcome = put(conn, dinner_bpmn=process(), dish_dmn=dish())
    assert [(each.key, each.version, each.file) for each in outcome.definitions] == [("dinner", 1, "dinner.bpmn")]
    assert [(each.key, each.version, each.file, each.unchanged) for each in outcome.decisions] == [
        ("dish", 1, "dish.dmn", False),
        ("season", 1, "dish.dmn", False),
    ]
    assert outcome.definitions[0].warnings == ()
    rows = conn.execute("SELECT d.key, d.version, d.deployment_id = %s FROM decision_definition d ORDER BY key", (outcome.deployment_id,))
    assert rows.fetchall() == [("dish", 1, True), ("season", 1, True)]
    assert conn.execute("SELECT count(*) FROM history WHERE kind = 'decision_deployed'").fetchone() == (2,)


def test_decisions_may_be_deployed_alone(conn: Connection) -> None:
    outcome = put(conn, dish_dmn=dish())
    assert (outcome.definitions, len(outcome.decisions)) == ((), 2)


def test_S49_the_same_file_makes_no_new_version_whatever_its_formatting(conn: Connection) -> None:
    first = put(conn, dish_dmn=dish())
    again = put(conn, dish_dmn=dish().replace(b"\n", b"\n  "))
    assert again.deployment_id is None
    assert [(each.id, each.version, each.unchanged) for each in again.decisions] == [(each.id, 1, True) for each in first.decisions]


def test_the_decisions_of_a_changed_file_are_new_versions_together(conn: Connection) -> None:
    put(conn, dish_dmn=dish())
    assert [(each.key, each.version) for each in put(conn, dish_dmn=dish("Roast")).decisions] == [("dish", 2), ("season", 2)]
    assert [each.version for each in put(conn, dish_dmn=dish()).decisions] == [3, 3]  # what was older is the newest again


def test_a_decision_that_moved_to_another_file_and_back_finds_its_requirements_beside_it(conn: Connection) -> None:
    put(conn, dinner_bpmn=process(), dish_dmn=dish())
    put(conn, season_dmn=file(decision("season", literal('"Summer"'))))
    back = put(conn, dish_dmn=dish())
    assert [(each.key, each.version) for each in back.decisions] == [("dish", 2), ("season", 3)]
    case = begun(conn)
    assert [(each["key"], each["version"]) for each in told(conn, case)] == [("season", 3), ("dish", 2)]


def test_a_wrong_table_deploys_nothing(conn: Connection) -> None:
    wrong = file(decision("dish", table([], ["x"], ("1 +",))))
    outcome = deploy(conn, [("dinner.bpmn", process()), ("dish.dmn", wrong)], actor=OP)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID
    (problem,) = outcome.problems
    assert problem.what.startswith("output entry 1 of rule 1 is not an expression")  # type: ignore[union-attr]  # a Problem
    assert conn.execute("SELECT count(*) FROM process_definition").fetchone() == (0,)


def test_a_file_of_thousands_of_decisions_which_would_be_kept_thousands_of_times_is_refused(conn: Connection) -> None:
    content = file(*(decision(f"d{number}", literal("1")) for number in range(1_500)))
    padded = content + b"<!--" + b"x" * (100_000_000 // 1_500) + b"-->"
    refused = deploy(conn, [("many.dmn", padded)], actor=OP)
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INVALID
    (problem,) = refused.problems
    assert (problem.file, problem.why) == ("many.dmn", "at most 100,000,000 bytes: fewer in one file, or several deployments")
    assert isinstance(deploy(conn, [("many.dmn", file(decision("d", literal("1"))))], actor=OP), Deployed)


def test_clerks_may_not_deploy_decisions(conn: Connection) -> None:
    outcome = deploy(conn, [("dish.dmn", dish())], actor=BO)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_ALLOWED


def test_a_repeated_deployment_of_decisions_is_answered_as_the_first_was(conn: Connection) -> None:
    first = deploy(conn, [("dish.dmn", dish())], actor=OP, request_id="1")
    again = deploy(conn, [("dish.dmn", dish())], actor=OP, request_id="1")
    assert isinstance(first, Deployed) and isinstance(again, Deployed)
    assert again.decisions == tuple(first.decisions) or all(each.unchanged for each in again.decisions)
    assert conn.execute("SELECT count(*) FROM decision_definition").fetchone() == (2,)


def test_a_process_that_calls_a_decision_which_is_not_deployed_is_warned_about(conn: Connection) -> None:
    (definition,) = put(conn, dinner_bpmn=process()).definitions
    assert [(each.element_id, each.what) for each in definition.warnings] == [
        ("choose", "choose calls the decision 'dish', which is not deployed")
    ]
    put(conn, dish_dmn=dish())
    (again,) = put(conn, dinner_bpmn=process()).definitions
    assert again.warnings == ()


# ---- made


def test_a_case_is_decided_in_its_one_transaction(conn: Connection) -> None:
    put(conn, dinner_bpmn=process(), dish_dmn=dish())
    case = begun(conn)
    assert variables(conn, case) == {"degrees": 5, "dish": "Stew"}
    assert places(conn, case) == [("eat", "waiting")]
    assert kinds(conn, case).count("decision_evaluated") == 2
    season, made = told(conn, case)
    assert (season["key"], season["inputs"], season["result"]) == ("season", [{"name": "degrees", "value": 5}], "Winter")
    assert (made["key"], made["version"], made["rules"]) == ("dish", 1, [{"number": 1, "id": "r1", "outputs": {"dish": "Stew"}}])
    assert made["inputs"] == [{"name": "season", "value": "Winter"}] and made["result"] == "Stew"


def test_an_event_names_the_version_by_which_it_was_decided(conn: Connection) -> None:
    put(conn, dinner_bpmn=process(), dish_dmn=dish())
    case = begun(conn)
    rows = conn.execute(
        "SELECT d.key FROM history h JOIN decision_definition d ON d.id = h.item_id"
        " WHERE h.instance_id = %s AND h.kind = 'decision_evaluated' ORDER BY h.id",
        (case,),
    ).fetchall()
    assert rows == [("season",), ("dish",)]


def test_the_newest_version_decides_from_the_next_step_on(conn: Connection) -> None:
    put(conn, dinner_bpmn=process(), dish_dmn=dish())
    assert variables(conn, begun(conn))["dish"] == "Stew"
    put(conn, dish_dmn=dish("Roast"))
    assert variables(conn, begun(conn))["dish"] == "Roast"


LATER = '<userTask id="first" camunda:assignee="ada"/>'
BOUND = 'camunda:decisionRef="dish" camunda:resultVariable="dish" camunda:mapDecisionResult="singleEntry" camunda:decisionRefBinding='


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        ('"latest"', "Roast"),
        ('"deployment"', "Stew"),
        ('"version" camunda:decisionRefVersion="1"', "Stew"),
        ('"version" camunda:decisionRefVersion="${2}"', "Roast"),
        ('"versionTag" camunda:decisionRefVersionTag="old"', "Stew"),
    ],
)
def test_each_binding_means_its_version(conn: Connection, binding: str, expected: str) -> None:
    put(conn, dinner_bpmn=process(BOUND + binding, first=LATER), dish_dmn=dish(tag="old"))
    case = begun(conn)
    put(conn, dish_dmn=dish("Roast", tag="new"))
    outcome = complete_task(conn, the_task(conn, "first"), actor=ADA, variables={}, request_id=None)
    assert isinstance(outcome, TaskCompleted)
    assert variables(conn, case)["dish"] == expected


@pytest.mark.parametrize(
    ("binding", "said"),
    [
        ('"version" camunda:decisionRefVersion="7"', "choose: expected the decision dish in version 7, found none that is deployed"),
        (
            '"versionTag" camunda:decisionRefVersionTag="v9"',
            "choose: expected the decision dish with the version tag 'v9', found none that is deployed",
        ),
        ('"version" camunda:decisionRefVersion="${degrees / 2}"', "choose: expected the number of a version, found Decimal('2.5')"),
    ],
)
def test_a_version_that_is_not_there_is_an_incident(conn: Connection, binding: str, said: str) -> None:
    put(conn, dinner_bpmn=process(BOUND + binding), dish_dmn=dish())
    begun(conn)
    assert incidents(conn) == [("no_decision", said)]


def test_a_decision_that_is_deployed_later_is_found_by_a_retry(conn: Connection) -> None:
    put(conn, dinner_bpmn=process())
    case = begun(conn)
    assert incidents(conn) == [("no_decision", "choose: expected the decision dish, found none that is deployed")]
    put(conn, dish_dmn=dish())
    (token,) = conn.execute("SELECT token_id FROM incident").fetchone() or ()
    outcome = retry_item(conn, "token", token, actor=OP, attempts=1, request_id="1")
    assert isinstance(outcome, ItemRetried), outcome
    assert places(conn, case) == [("eat", "waiting")] and variables(conn, case)["dish"] == "Stew"


def test_a_violated_hit_policy_is_an_incident_and_changes_nothing_else(conn: Connection) -> None:
    twice = table(["degrees: number"], ["dish"], ("> 0", '"Stew"'), ("> 1", '"Bread"'))
    put(conn, dinner_bpmn=process(), dish_dmn=file(decision("dish", twice)))
    case = begun(conn)
    ((kind, message),) = incidents(conn)
    assert kind == "decision" and message.endswith("expected at most one rule that matches (UNIQUE), found rule 1 and rule 2")
    assert variables(conn, case) == {"degrees": 5} and told(conn, case) == []


def test_a_zeebe_model_gets_the_value_of_feel(conn: Connection) -> None:
    task = (
        '<businessRuleTask id="choose"><extensionElements><zeebe:calledDecision decisionId="dish" resultVariable="dish"/>'
        "</extensionElements></businessRuleTask>"
    )
    (definition,) = put(conn, dinner_bpmn=process(task), dish_dmn=dish()).definitions
    assert definition.warnings == ()
    assert variables(conn, begun(conn))["dish"] == "Stew"


def test_a_flowable_model_gets_its_outputs_as_variables(conn: Connection) -> None:
    field = '<flowable:field name="decisionTableReferenceKey"><flowable:string><![CDATA[dish]]></flowable:string></flowable:field>'
    task = f'<serviceTask id="choose" flowable:type="dmn"><extensionElements>{field}</extensionElements></serviceTask>'
    (definition,) = put(conn, dinner_bpmn=process(task), dish_dmn=dish()).definitions
    assert definition.warnings == ()
    assert variables(conn, begun(conn))["dish"] == "Stew"


def test_a_case_that_ends_in_the_step_of_its_decision_keeps_the_outcome(conn: Connection) -> None:
    put(conn, dinner_bpmn=process().replace(b'<userTask id="eat" camunda:assignee="ada"/>', b'<task id="eat"/>'), dish_dmn=dish())
    case = begun(conn)
    assert status(conn, case) == "completed"
    assert conn.execute("SELECT final_variables -> 'dish' ->> 'value' FROM process_instance WHERE id = %s", (case,)).fetchone() == ("Stew",)


# ---- what it costs


def test_a_step_with_decisions_costs_four_at_most_however_many_it_makes(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    second = (
        '<businessRuleTask id="first" camunda:decisionRef="season" camunda:resultVariable="s" camunda:mapDecisionResult="singleEntry"/>'
    )
    model = process(first=second).replace(
        b'<startEvent id="start"/>', b'<startEvent id="begin"/><userTask id="start" camunda:assignee="ada"/>'
    )
    model = model.replace(b"</process>", b'<sequenceFlow id="f9" sourceRef="begin" targetRef="start"/></process>')
    put(conn, dinner_bpmn=model, dish_dmn=dish())
    for _ in range(2):  # the first time it reads the file as well
        case = begun(conn)
        task = the_task(conn, "start", instance_id=case)
        with counting(monkeypatch) as said:
            complete_task(conn, task, actor=ADA, variables={}, request_id="1")
        assert len(said) <= 4, said
        assert [each["key"] for each in told(conn, case)] == ["season", "season", "dish"]


def test_a_start_with_a_decision_costs_three(conn: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put(conn, dinner_bpmn=process(), dish_dmn=dish())
    with counting(monkeypatch) as said:
        begun(conn)
    assert len(said) == 3, said


def test_a_look_names_of_what_is_kept_the_versions_of_its_own_keys_alone(conn: Connection) -> None:
    put(conn, dish_dmn=dish(), drink_dmn=file(decision("drink", literal('"Tea"'))), p_bpmn=process())
    begun(conn)
    own, others = (asking([DecisionCall(key)])[1].values() for key in ("dish", "drink"))
    assert "dish" in {known.key for known in own if isinstance(known, Decidable)}
    assert "dish" not in {known.key for known in others if isinstance(known, Decidable)}
