"""Small process models for the worker's tests, as BPMN text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

import psycopg

from engine.commands.outcome import InstanceStarted
from engine.commands.start import start_instance
from tests import rows
from tests.cast import ADA

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:baton="urn:baton:bpmn" id="defs" targetNamespace="urn:test">'
)


def service(name: str, handler: str, inputs: Mapping[str, object] | None = None, **attributes: str) -> str:
    """A service task. `attributes`: of the baton namespace (retry, …)."""
    more = "".join(f" baton:{key}={quoteattr(value)}" for key, value in attributes.items())
    given = "".join(
        f'<camunda:inputParameter name="{key}">{escape(str(value))}</camunda:inputParameter>' for key, value in (inputs or {}).items()
    )
    extension = f"<extensionElements><camunda:inputOutput>{given}</camunda:inputOutput></extensionElements>" if given else ""
    return f'<serviceTask id="{name}" baton:handler="{handler}"{more}>{extension}</serviceTask>'


def chain(key: str, *tasks: str, extra: str = "") -> bytes:
    """start -> the given tasks in their order -> end. `extra`: further elements of the process."""
    ids = ["start", *(task.split('id="', 1)[1].split('"', 1)[0] for task in tasks), "end"]
    flows = "".join(f'<sequenceFlow id="{source}_{target}" sourceRef="{source}" targetRef="{target}"/>' for source, target in pairwise(ids))
    body = '<startEvent id="start"/>' + "".join(tasks) + '<endEvent id="end"/>' + flows + extra
    return f'{HEAD}<process id="{key}" isExecutable="true">{body}</process></definitions>'.encode()


def timer(name: str, duration: str) -> str:
    when = f'<timeDuration xsi:type="tFormalExpression">{duration}</timeDuration>'
    event = f'<timerEventDefinition id="{name}_t">{when}</timerEventDefinition>'
    return f'<intermediateCatchEvent id="{name}">{event}</intermediateCatchEvent>'


def deployed(conn: psycopg.Connection[Any], key: str, xml: bytes) -> UUID:
    return rows.definition(conn, key, xml=xml, resource_name=f"{key}.bpmn")


def started(conn: psycopg.Connection[Any], key: str, **variables: Any) -> UUID:
    done = start_instance(conn, key, actor=ADA, variables=variables, business_key=variables.pop("business_key", None))
    assert isinstance(done, InstanceStarted), done
    return done.instance_id
