"""What a model gives to whoever does the work, besides variables: texts."""

from __future__ import annotations

from tests.bpmn.models import around, definition, read
from tests.core.world import World

PROPERTY = '<camunda:property name="system" value="{}"/>'
PROPERTIES = f"<camunda:properties>{PROPERTY.format('crm')}{PROPERTY.format('erp')}<camunda:property/></camunda:properties>"
HEADERS = '<zeebe:taskHeaders><zeebe:header key="retry hint" value="slow"/></zeebe:taskHeaders>'


def task(inside: str) -> bytes:
    return around(f'<serviceTask id="x" baton:handler="h"><extensionElements>{inside}</extensionElements></serviceTask>')


def test_headers_go_along_with_the_job() -> None:
    run = World(definition(task(HEADERS + PROPERTIES))).start("s")
    (job,) = run.last.jobs
    assert job.payload == {"headers": {"retry hint": "slow", "system": "crm"}}


def test_a_header_without_a_name_or_with_a_name_that_was_there_is_reported() -> None:
    assert [each.what for each in read(task(PROPERTIES)).warnings] == ["the element camunda:property is not read"] * 2
