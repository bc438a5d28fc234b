"""docs/bpmn.md says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.bpmn import coverage, support
from engine.bpmn.definition import (
    AdHocConfig,
    BoundaryConfig,
    CallConfig,
    CatchConfig,
    ComplexGatewayConfig,
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


def test_the_page_has_the_tables_that_the_table_of_what_is_supported_makes() -> None:
    assert coverage.document(PAGE) == PAGE, "run: .venv/bin/python -m cli.main bpmn --document docs/bpmn.md"


def test_every_row_has_a_text() -> None:
    assert coverage.without_text() == [], "write it in engine/bpmn/coverage/elements.py or events.py"
    assert all(row.here and all(row.elsewhere) for row in coverage.ROWS)
    keys = [(row.part, row.what) for row in coverage.ROWS]
    assert len(keys) == len(set(keys))


def test_an_element_without_a_text_is_noticed_and_one_that_is_gone_is_told_as_refused() -> None:
    with support.registered("odd", support.Supported("odd", "activity", lambda element, context: None)):
        assert coverage.without_text() == ["odd with no event definition"]
    assert "| `manualTask` | done outside the engine" in coverage.tables()
    supported = support.TABLE.pop(("manualTask", None))
    try:
        assert "| `manualTask` | **refused** at deployment |" in coverage.tables()
    finally:
        support.TABLE["manualTask", None] = supported


def test_a_page_without_a_place_for_the_tables_is_named() -> None:
    with pytest.raises(ValueError, match="found neither"):
        coverage.document("# BPMN")


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
        "ad_hoc_subprocess": AdHocConfig,
        "complex_gateway": ComplexGatewayConfig,
        "transaction": SubprocessConfig,
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
        "call_activity": CallConfig,
    }
    models = ("every_element", "more_elements", "in_no_required_order", "compensation", "an_order_calls_a_check")
    read = read_files([(name, model(name)) for name in models])
    assert {node.kind: type(node.config) for _, definition in read.definitions for node in definition.nodes.values()} == expected


def test_a_row_is_refused_once_it_is_gone() -> None:
    supported = support.Supported("odd", "activity", lambda element, context: None)
    with support.registered("oddThing", supported):
        assert read_files([("m", around('<oddThing id="x"/>'))]).problems == ()
    (problem,) = read_files([("m", around('<oddThing id="x"/>'))]).problems
    assert problem.why == "an element of the list in docs/bpmn.md"
