"""Definitions and deployments: deployed, listed, shown, started."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.bpmn.models import around, file_of
from tests.web.engine_rest.conftest import Program, refused
from tests.web.operations import one

EXTERNAL = '<serviceTask id="x" camunda:type="external" camunda:topic="{topic}"/>'


@pytest.fixture
def olga(program: Callable[[str], Program]) -> Program:
    return program("olga")


def deploy(who: Program, *files: bytes, name: str = "a.bpmn", **settings: str) -> Any:
    """As pycamunda does: one part for each file."""
    parts = {f"resource-{place}": (io.BytesIO(content), f"{place}-{name}") for place, content in enumerate(files)}
    return who.client.post("/engine-rest/deployment/create", headers=who.headers, data={**settings, **parts})


def model(topic: str = "t", *, attributes: str = 'isExecutable="true"') -> bytes:
    return around(EXTERNAL.format(topic=topic)).replace(b'isExecutable="true"', attributes.encode())


def test_a_deployment_says_what_is_new_in_it_and_the_same_again_makes_nothing(olga: Program) -> None:
    settings = {"deployment-name": "Shipping", "enable-duplicate-filtering": "false", "deployment-source": "a script"}
    answer = deploy(olga, model(), **settings)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert (answer.json["name"], answer.json["links"], answer.json["tenantId"]) == ("Shipping", [], None)
    assert answer.json["deploymentTime"].endswith("+0000")
    ((id, shape),) = answer.json["deployedProcessDefinitions"].items()
    assert (shape["id"], shape["key"], shape["version"], shape["resource"]) == (id, "p", 1, "0-a.bpmn")
    again = deploy(olga, model()).json
    assert (again["id"], again["deployedProcessDefinitions"]) == (answer.json["id"], None)
    assert [each["version"] for each in olga.get("/process-definition").json] == [1]
    assert olga.get("/deployment", name="Shipping").json == [{key: answer.json[key] for key in again if not key.startswith("deployed")}]
    assert olga.get(f"/deployment/{answer.json['id']}").json["name"] == "Shipping"
    assert olga.get("/deployment/count", nameLike="Ship%").json == {"count": 1}
    refused(olga.get(f"/deployment/{uuid4()}"), 404)


def test_what_cannot_be_deployed_is_refused_with_every_problem(olga: Program, program: Callable[[str], Program]) -> None:
    broken = file_of('<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="gone"/><userTask id="s"/>')
    message = refused(deploy(olga, broken), 400, "0-a.bpmn:3", "gone", "expected")
    assert len(message.splitlines()) > 1
    refused(deploy(olga, b"no xml"), 400)
    refused(deploy(olga, **{"deployment-name": "x"}), 415)  # no part is a file, so the form is none with parts
    refused(olga.post("/deployment/create", {"deployment-name": "x"}), 415)
    refused(deploy(olga, model(), **{"deployment-activation-time": "2030-01-01T00:00:00.000+0000"}), 400, "deployment-activation-time")
    refused(deploy(olga, model(), **{"tenant-id": "somebody"}), 400, "tenant-id")
    refused(deploy(olga, model(), nonsense="x"), 400, "nonsense")
    refused(deploy(program("ada"), model()), 403)
    assert olga.get("/process-definition/count").json == {"count": 0}


@pytest.fixture
def versions(olga: Program) -> tuple[str, str]:
    """The ids of two versions of `p`, the second tagged."""
    first = deploy(olga, model("one")).json
    second = deploy(olga, model("two", attributes='isExecutable="true" name="The second" camunda:versionTag="v2.1"')).json
    (one_id,), (two_id,) = first["deployedProcessDefinitions"], second["deployedProcessDefinitions"]
    return one_id, two_id


def test_definitions_are_found_by_what_programs_ask(olga: Program, versions: tuple[str, str]) -> None:
    def found(**asked: Any) -> list[int]:
        listed = [each["version"] for each in olga.get("/process-definition", **asked).json]
        assert olga.get("/process-definition/count", **asked).json == {"count": len(listed)}
        return listed

    assert (
        found() == found(key="p") == found(keysIn="p,q") == found(keyLike="_") == found(active="true", startableInTasklist="true") == [1, 2]
    )
    assert found(latestVersion="true") == found(versionTag="v2.1") == found(name="The second") == found(version=2) == [2]
    assert found(withoutVersionTag="true") == found(processDefinitionIdIn=versions[0]) == [1]
    assert found(suspended="true") == found(key="q") == found(deploymentId=str(uuid4())) == []
    # What camunda-external-task-client-python3 asks to start by a tag.
    asked = {"key": "p", "versionTagLike": "v2%", "sortBy": "version", "sortOrder": "desc", "firstResult": 0, "maxResults": 1}
    assert [each["id"] for each in olga.get("/process-definition", **asked).json] == [versions[1]]
    refused(olga.get("/process-definition", startableBy="ada"), 400, "startableBy")
    refused(olga.get("/process-definition", incidentId="1"), 400, "incidentId")


def test_one_is_shown_by_id_and_the_newest_by_key(olga: Program, versions: tuple[str, str], program: Callable[[str], Program]) -> None:
    assert olga.get(f"/process-definition/{versions[0]}").json["version"] == 1
    newest = olga.get("/process-definition/key/p").json
    assert (newest["version"], newest["versionTag"], newest["name"], newest["suspended"]) == (2, "v2.1", "The second", False)
    refused(olga.get("/process-definition/key/q"), 404, "q")
    refused(olga.get("/process-definition/p:1:7"), 404)
    refused(olga.get("/process-definition/key/p/tenant-id/somebody"), 404)
    xml = olga.get(f"/process-definition/{versions[0]}/xml").json
    assert xml["id"] == versions[0] and xml["bpmn20Xml"].encode() == model("one")
    assert "two" in olga.get("/process-definition/key/p/xml").json["bpmn20Xml"]
    refused(program("ada").get("/process-definition/key/p/xml"), 403)


def test_a_start_by_key_begins_the_newest_and_by_id_that_very_version(
    olga: Program, versions: tuple[str, str], committed_db: psycopg.Connection
) -> None:
    sent = {
        "variables": {"n": {"value": 3, "type": "integer"}, "day": {"value": "2026-11-30T10:00:00.000+0000", "type": "Date"}},
        "businessKey": "K",
    }
    for path, definition in ((f"/process-definition/{versions[0]}/start", versions[0]), ("/process-definition/key/p/start", versions[1])):
        made = olga.post(path, sent)
        assert made.status_code == 200
        assert (made.json["definitionId"], made.json["businessKey"], made.json["ended"], made.json["links"]) == (definition, "K", False, [])
        stored = one(
            committed_db,
            "SELECT jsonb_object_agg(v.name, v.type) FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.instance_id = %s",
            UUID(made.json["id"]),
        )
        assert stored == {"n": "integer", "day": "datetime"}
    with_variables = olga.post("/process-definition/key/p/start", {**sent, "withVariablesInReturn": True})
    assert with_variables.json["variables"]["n"] == {"type": "Integer", "value": 3, "valueInfo": {}}


def test_a_start_without_a_body_and_with_nulls_is_a_start(olga: Program, versions: tuple[str, str]) -> None:
    assert olga.post("/process-definition/key/p/start").status_code == 200
    assert (
        olga.post("/process-definition/key/p/start", {"variables": None, "businessKey": None, "startInstructions": []}).status_code == 200
    )


def test_a_start_that_cannot_be_is_refused_and_starts_nothing(
    olga: Program, versions: tuple[str, str], committed_db: psycopg.Connection
) -> None:
    for sent, word in (
        ({"variables": {"n": {"value": "x", "type": "Integer"}}}, "n"),
        ({"variables": []}, "variables"),
        ({"businessKey": "x" * 300}, ""),
        ({"startInstructions": [{"type": "startBeforeActivity"}]}, "startInstructions"),
        ({"caseInstanceId": "1"}, "caseInstanceId"),
    ):
        refused(olga.post("/process-definition/key/p/start", sent), 400, word)
    refused(olga.post("/process-definition/key/p/tenant-id/somebody/start", {}), 404)
    refused(olga.post("/process-definition/key/none/start", {}), 404)
    assert one(committed_db, "SELECT count(*) FROM process_instance") == 0


def test_whoever_is_signed_in_may_start_and_sees_what_was_started(program: Callable[[str], Program], versions: tuple[str, str]) -> None:
    ada = program("ada")
    made = ada.post("/process-definition/key/p/start", {})
    assert made.status_code == 200
    assert ada.get(f"/process-instance/{made.json['id']}").status_code == 200
    refused(ada.get("/deployment"), 403)
    refused(ada.get("/deployment/count"), 403)
