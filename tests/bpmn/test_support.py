"""docs/bpmn.md says what the table says."""

from __future__ import annotations

import re
from pathlib import Path

from engine.bpmn import support
from engine.bpmn.definition import (
    BoundaryConfig,
    CatchConfig,
    EndConfig,
    EventGatewayConfig,
    MessageConfig,
    ReceiveTaskConfig,
    ScriptConfig,
    ServiceTaskConfig,
    StartConfig,
    SubprocessConfig,
    ThrowConfig,
    UserTaskConfig,
)
from engine.bpmn.reader import read_files
from tests.bpmn.models import around, model

PAGE = (Path(__file__).parents[2] / "docs" / "bpmn.md").read_text()


def documented() -> set[tuple[str, str | None]]:
    rows: set[tuple[str, str | None]] = set()
    for tag, events in re.findall(r"^\| `(\w+)` \| ([^|]*)\|", PAGE, re.MULTILINE):
        found = re.findall(r"`(\w+EventDefinition)`", events)
        rows |= {(tag, event) for event in found}
        if not found or "none" in events:
            rows.add((tag, None))
    return rows


def test_the_page_lists_what_the_table_holds() -> None:
    assert documented() == set(support.TABLE)


def test_every_kind_has_the_configuration_that_it_documents() -> None:
    expected = {
        "start_event": StartConfig,
        "end_event": EndConfig,
        "intermediate_catch_event": CatchConfig,
        "boundary_event": BoundaryConfig,
        "user_task": UserTaskConfig,
        "service_task": ServiceTaskConfig,
        "subprocess": SubprocessConfig,
        "event_subprocess": SubprocessConfig,
        "exclusive_gateway": type(None),
        "inclusive_gateway": type(None),
        "parallel_gateway": type(None),
        "event_based_gateway": EventGatewayConfig,
        "intermediate_throw_event": ThrowConfig,
        "task": type(None),
        "manual_task": type(None),
        "send_task": MessageConfig,
        "receive_task": ReceiveTaskConfig,
        "script_task": ScriptConfig,
        "business_rule_task": ServiceTaskConfig,
    }
    read = read_files([(name, model(name)) for name in ("every_element", "more_elements")])
    assert {node.kind: type(node.config) for _, definition in read.definitions for node in definition.nodes.values()} == expected


def test_a_row_is_refused_once_it_is_gone() -> None:
    supported = support.Supported("odd", "activity", lambda element, context: None)
    with support.registered("complexGateway", supported):
        assert read_files([("m", around('<complexGateway id="x"/>'))]).problems == ()
    (problem,) = read_files([("m", around('<complexGateway id="x"/>'))]).problems
    assert problem.why == support.INSTEAD["complexGateway"]
