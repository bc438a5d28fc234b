"""What the task page says the step is for: its documentation, as models of Camunda 7 and Flowable write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from engine.core.values import Variable
from tests.bpmn.models import around
from tests.web.tasks import open_task
from webapp.tasks.purpose import purpose

KNOWN = {"name": Variable("string", "<b>Kim</b> ${days}"), "days": Variable("double", 4.0)}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("${name} wants ${days + 1} days", "<b>Kim</b> ${days} wants 5 days"),
        ("#{days}", "4"),
        ("Costs 5 $ {each}", "Costs 5 $ {each}"),
        ("Ask ${nobody}", "Ask ${nobody}"),
        ("Ask ${bean.who()}", "Ask ${bean.who()}"),
        ("= not FEEL", "= not FEEL"),
    ],
)
def test_values_of_the_case_stand_in_it_and_what_cannot_be_read_stands_as_written(written: str, told: str) -> None:
    assert purpose(written, KNOWN) == told


def test_the_page_shows_values_as_text_and_never_as_markup(client_for: Callable[[str], Any], committed_db: psycopg.Connection) -> None:
    task = '<userTask id="check"><documentation>For ${name}</documentation></userTask>'
    xml = around(task).replace(b'"x"', b'"check"').replace(b'id="p"', b'id="invoice"')
    found = open_task(committed_db, groups=("clerks",), xml=xml, variables={"name": ("string", "<b>Kim</b>")})
    page = client_for("ada").get(f"/tasks/{found}").text
    assert "For &lt;b&gt;Kim&lt;/b&gt;" in page
