"""Forms through the commands: deployed and versioned beside processes, and found again by what refers to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import FormReference, UserTaskConfig
from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed, Refusal, Rejected
from engine.db.definitions import compiled
from engine.db.forms import FoundForm, NoForm, form_of
from engine.db.session import connect
from tests.cast import ADA, OP, engage
from tests.forms.schemas import ORDER, component, schema

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def process(attributes: str = "", inside: str = "", *, before: str = "") -> bytes:
    """A process with one user task, `fill`."""
    return (
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
        f' xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t"><process id="buying" isExecutable="true">{before}'
        f'<startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="fill"/><userTask id="fill" {attributes}>'
        f"<extensionElements>{inside}</extensionElements></userTask>"
        '<sequenceFlow id="f2" sourceRef="fill" targetRef="end"/><endEvent id="end"/></process></definitions>'
    ).encode()


def put(conn: Connection, **files: bytes) -> Deployed:
    """Deploy files: `order_form=…` is order.form."""
    outcome = deploy(conn, [(name.replace("_", "."), content) for name, content in files.items()], actor=OP)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def titled(label: str, **more: Any) -> bytes:
    return schema(component("textfield", "title", label=label), **more)


def shown(conn: Connection, definition: UUID, *, page: UUID | None = None, **variables: Any) -> FoundForm | NoForm:
    """What the page of the task shows."""
    config = compiled(conn, definition).nodes["fill"].config
    assert isinstance(config, UserTaskConfig) and isinstance(config.form, FormReference)
    return form_of(conn, config.form, tenant_id="", definition_id=definition, variables=variables, shown=page)


def label(found: FoundForm | NoForm) -> str:
    assert isinstance(found, FoundForm), found
    return found.form.fields[0].label


# ---- deployed and versioned


def test_a_form_is_deployed_with_the_process_that_refers_to_it(conn: Connection) -> None:
    outcome = put(conn, buying_bpmn=process('camunda:formRef="order"'), order_form=schema(*ORDER))
    assert [(each.key, each.version, each.file, each.unchanged) for each in outcome.forms] == [("order", 1, "order.form", False)]
    assert outcome.definitions[0].warnings == ()
    row = conn.execute("SELECT key, version, deployment_id = %s FROM form_definition", (outcome.deployment_id,)).fetchall()
    assert row == [("order", 1, True)]
    told = conn.execute("SELECT item_id, actor FROM history WHERE kind = 'form_deployed'").fetchall()
    assert told == [(outcome.forms[0].id, OP.username)]


def test_forms_may_be_deployed_alone_and_with_decisions(conn: Connection) -> None:
    outcome = put(conn, order_json=schema(*ORDER))
    assert (outcome.definitions, outcome.decisions, [each.version for each in outcome.forms]) == ((), (), [1])


def test_S49_the_same_form_makes_no_new_version_whatever_its_formatting(conn: Connection) -> None:
    first = put(conn, order_form=titled("What"))
    again = put(conn, order_form=titled("What").replace(b"\n", b"\n  "))
    assert again.deployment_id is None
    assert [(each.id, each.version, each.unchanged) for each in again.forms] == [(first.forms[0].id, 1, True)]
    assert [each.version for each in put(conn, order_form=titled("Which")).forms] == [2]
    assert [each.version for each in put(conn, order_form=titled("What")).forms] == [3]


def test_a_refused_form_deploys_nothing_of_all_files(conn: Connection) -> None:
    outcome = deploy(conn, [("a.bpmn", process()), ("a.form", schema(component("taglist", "a")))], actor=OP)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.INVALID
    assert [getattr(each, "file", "") for each in outcome.problems] == ["a.form"]
    assert conn.execute("SELECT count(*) FROM deployment").fetchone() == (0,)


def test_who_may_not_deploy_processes_may_not_deploy_forms(conn: Connection) -> None:
    outcome = deploy(conn, [("a.form", titled("What"))], actor=ADA)
    assert isinstance(outcome, Rejected) and outcome.refusal is Refusal.NOT_ALLOWED


# ---- referred to


@pytest.mark.parametrize(
    ("attributes", "inside", "what"),
    [
        ('camunda:formRef="order"', "", "the form 'order'"),
        ('camunda:formKey="order"', "", "the form 'order'"),
        ("", '<zeebe:formDefinition formId="order"/>', "the form 'order'"),
        ('camunda:formKey="camunda-forms:deployment:order.form"', "", "the form in 'order.form'"),
    ],
)
def test_a_form_that_is_not_there_is_a_warning(conn: Connection, attributes: str, inside: str, what: str) -> None:
    model = process(attributes, inside)
    outcome = put(conn, buying_bpmn=model)
    assert [(each.element_id, each.what) for each in outcome.definitions[0].warnings] == [
        ("fill", f"fill refers to {what}, which is not deployed")
    ]
    assert isinstance(shown(conn, outcome.definitions[0].id), NoForm)
    put(conn, order_form=titled("What"))
    assert put(conn, buying_bpmn=model).definitions[0].warnings == ()


def test_latest_is_the_newest_when_somebody_looks(conn: Connection) -> None:
    case = put(conn, buying_bpmn=process('camunda:formRef="order"'), order_form=titled("What")).definitions[0].id
    assert label(shown(conn, case)) == "What"
    put(conn, order_form=titled("Which"))
    assert label(shown(conn, case)) == "Which"


@pytest.mark.parametrize(
    ("attributes", "inside"),
    [
        ('camunda:formRef="order" camunda:formRefBinding="deployment"', ""),
        ('camunda:formRef="order" camunda:formRefBinding="version" camunda:formRefVersion="1"', ""),
        ('camunda:formKey="camunda-forms:deployment:order.form"', ""),
        ("", '<zeebe:formDefinition formId="order" bindingType="deployment"/>'),
        ("", '<zeebe:formDefinition formId="order" bindingType="versionTag" versionTag="first"/>'),
    ],
)
def test_a_pinned_form_stays_what_it_was(conn: Connection, attributes: str, inside: str) -> None:
    case = put(conn, buying_bpmn=process(attributes, inside), order_form=titled("What", versionTag="first")).definitions[0].id
    put(conn, order_form=titled("Which", versionTag="second"))
    assert label(shown(conn, case)) == "What"


def test_a_pinned_form_that_did_not_change_is_found_by_a_later_process(conn: Connection) -> None:
    model = process('camunda:formRef="order" camunda:formRefBinding="deployment"')
    put(conn, buying_bpmn=model, order_form=titled("What"))
    later = put(conn, buying_bpmn=model.replace(b'id="end"', b'id="end" name="Done"'), order_form=titled("What"))
    assert [each.unchanged for each in (*later.definitions, *later.forms)] == [False, True]
    assert label(shown(conn, later.definitions[0].id)) == "What"


def test_a_version_that_is_not_there_is_named(conn: Connection) -> None:
    model = process('camunda:formRef="order" camunda:formRefBinding="version" camunda:formRefVersion="7"')
    case = put(conn, buying_bpmn=model, order_form=titled("What")).definitions[0].id
    assert shown(conn, case) == NoForm("order", "missing", "7")


def test_a_key_may_be_an_expression_over_the_case(conn: Connection) -> None:
    case = put(conn, buying_bpmn=process('camunda:formRef="${which}"'), order_form=titled("What")).definitions[0].id
    assert label(shown(conn, case, which="order")) == "What"
    missing = shown(conn, case)
    assert isinstance(missing, NoForm) and (missing.name, missing.why) == ("${which}", "unknown")


def test_a_page_goes_on_showing_its_version_and_none_of_another_form(conn: Connection) -> None:
    first = put(conn, buying_bpmn=process('camunda:formRef="order"'), order_form=titled("What"))
    put(conn, order_form=titled("Which"))
    other = put(conn, other_form=titled("Else", key="other"))
    case = first.definitions[0].id
    kept = shown(conn, case, page=first.forms[0].id)
    assert isinstance(kept, FoundForm) and (label(kept), kept.version, kept.newer) == ("What", 1, 2)
    assert label(shown(conn, case, page=other.forms[0].id)) == "Which"


def test_a_form_that_stands_in_the_model_is_shown(conn: Connection) -> None:
    inside = '<zeebe:formDefinition formKey="camunda-forms:bpmn:userTaskForm_1"/>'
    held = f'<extensionElements><zeebe:userTaskForm id="userTaskForm_1">{titled("What").decode()}</zeebe:userTaskForm></extensionElements>'
    outcome = put(conn, buying_bpmn=process("", inside, before=held))
    assert outcome.definitions[0].warnings == ()
    assert label(shown(conn, outcome.definitions[0].id)) == "What"


def test_one_in_the_model_that_cannot_be_shown_is_a_warning(conn: Connection) -> None:
    inside = '<zeebe:formDefinition formKey="camunda-forms:bpmn:userTaskForm_1"/>'
    form = schema(component("taglist", "a")).decode()
    held = f'<extensionElements><zeebe:userTaskForm id="userTaskForm_1">{form}</zeebe:userTaskForm></extensionElements>'
    outcome = put(conn, buying_bpmn=process("", inside, before=held))
    assert [each.what for each in outcome.definitions[0].warnings] == [
        "the form 'userTaskForm_1' of fill is not shown: taglist Field_a is a component that is not read"
    ]
    assert shown(conn, outcome.definitions[0].id) == NoForm("userTaskForm_1", "refused")


def test_forms_of_another_tenant_are_not_found(conn: Connection) -> None:
    case = put(conn, buying_bpmn=process('camunda:formRef="order"'), order_form=titled("What")).definitions[0].id
    conn.execute("UPDATE form_definition SET tenant_id = 'else'")
    assert shown(conn, case) == NoForm("order")
