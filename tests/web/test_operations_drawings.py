"""The drawing of a process on the pages of operations: the model's own, or one that is laid out once and kept."""

from __future__ import annotations

from urllib.parse import unquote

import psycopg
import pytest

from engine.bpmn.diagram import read_diagram
from engine.drawings import drawing
from engine.drawings.drawing import Drawing
from tests.web.operations import Client, deployed, model, one, sample, started
from webapp.operations import drawings

DRAWING = "/operations/processes/a_group_task/1/drawing"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The processes that were laid out."""
    keys: list[str] = []

    def draw(content: bytes, key: str) -> Drawing:
        keys.append(key)
        return drawing.draw(content, key)

    monkeypatch.setattr(drawings, "draw", draw)
    return keys


def test_a_model_without_a_drawing_is_laid_out_once_and_says_so(
    client_for: Client, committed_db: psycopg.Connection, asked: list[str]
) -> None:
    deployed(committed_db, "a_group_task")
    olga = client_for("olga")
    first = olga.get(DRAWING)
    assert first.status_code == 200
    assert {"start", "check", "end"} == {shape.element_id for shape in read_diagram(first.data).shapes}
    assert unquote(first.headers["Drawing-Note"]) == "The model has no drawing of its own; this one was laid out by Baton."
    again = olga.get(DRAWING)
    assert (again.data, asked) == (first.data, ["a_group_task"])
    assert one(committed_db, "SELECT count(*) FROM drawing") == 1
    assert olga.get(DRAWING, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304


def test_S38_a_model_is_given_back_byte_for_byte_whatever_was_laid_out(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "names_of_the_world")
    olga = client_for("olga")
    page = "/operations/processes/names_of_the_world/1"
    drawn = read_diagram(olga.get(f"{page}/drawing").data)
    assert {"審批", "Оплата 🙂", "مراجعة"} <= {shape.name for shape in drawn.shapes}
    assert olga.get(f"{page}/model").data == model("names_of_the_world")


def test_a_model_with_a_drawing_is_shown_as_it_is(client_for: Client, committed_db: psycopg.Connection, asked: list[str]) -> None:
    deployed(committed_db, "leave-request")
    answer = client_for("olga").get("/operations/processes/leave-request/1/drawing")
    assert (answer.data, answer.headers["Drawing-Note"], asked) == (sample("leave-request"), "", [])


def test_the_page_of_an_instance_has_the_same_drawing(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_group_task")
    here = started(committed_db, "a_group_task")
    olga = client_for("olga")
    assert olga.get(f"/operations/instances/{here}/drawing").data == olga.get(DRAWING).data
    assert f"/operations/instances/{here}/drawing" in olga.get(f"/operations/instances/{here}").text


def test_why_there_is_none_is_said_and_kept_unless_it_only_took_too_long(
    client_for: Client, committed_db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(committed_db, "a_group_task")
    olga = client_for("olga")
    monkeypatch.setattr(drawings, "draw", lambda *_: Drawing(None, "it took too long", final=False))
    answer = olga.get(DRAWING)
    assert (answer.status_code, unquote(answer.headers["Drawing-Note"])) == (404, "it took too long")
    assert answer.headers["Cache-Control"] == "no-store"
    assert one(committed_db, "SELECT count(*) FROM drawing") == 0

    monkeypatch.setattr(drawings, "draw", lambda *_: Drawing(None, "it is too large"))
    assert unquote(olga.get(DRAWING).headers["Drawing-Note"]) == "it is too large"
    monkeypatch.setattr(drawings, "draw", lambda *_: pytest.fail("it was asked again"))
    assert unquote(olga.get(DRAWING).headers["Drawing-Note"]) == "it is too large"
    assert olga.get("/operations/processes/a_group_task/1").status_code == 200


def test_a_drawing_is_for_operators(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_group_task")
    assert client_for("ada").get(DRAWING).status_code in (403, 404)
    assert client_for("olga").get("/operations/processes/nothing/1/drawing").status_code == 404
