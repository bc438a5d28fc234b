"""Migration 0018 reads the version tags of what was deployed before it."""

import importlib

import pytest

from tests.bpmn.models import file_of

tag_of = importlib.import_module("migrations.versions.0018_processes_have_version_tags").tag_of


@pytest.mark.parametrize(
    ("data", "tag"),
    [
        (file_of("", attributes='camunda:versionTag=" 1.0 "'), "1.0"),
        (file_of('<extensionElements><zeebe:versionTag value="2"/></extensionElements>'), "2"),
        (file_of('<startEvent id="versionTag"/>'), None),
        (file_of("", attributes='camunda:versionTag=" "'), None),
    ],
)
def test_the_version_tag_of_a_stored_model(data: bytes, tag: str | None) -> None:
    assert tag_of(data, "p") == tag
    assert tag_of(data, "another") is None
