"""POST /messages: ids and criteria."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program


def test_a_message_with_an_id_is_answered_as_a_duplicate_when_it_is_sent_again(program: Any, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    sent = {"name": "paid", "correlation_key": "4711", "time_to_live_seconds": 60, "message_id": "m-1"}
    first = olga.post("/messages", sent).get_json()
    again = olga.post("/messages", {**sent, "variables": {"b": 2}}).get_json()
    assert first["duplicate"] is False
    assert again == {**first, "duplicate": True}


def test_a_message_by_criteria_is_refused_where_nobody_meets_them_and_where_it_would_be_stored(
    program: Any, committed_db: psycopg.Connection
) -> None:
    olga = program("olga")
    problem(olga.post("/messages", {"name": "ANSWER", "business_key": "A"}), 409, "no_subscription")
    problem(olga.post("/messages", {"name": "ANSWER", "correlation_variables": {"x": 1}, "time_to_live_seconds": 5}), 422, "invalid")
    problem(olga.post("/messages", {"name": "ANSWER", "process_instance_id": "nobody"}), 422, "invalid")
