"""The outbox over the API: listed, followed, retried, skipped and sent again, each once a key."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.web.operations import one
from tests.web.rows import Rows
from tests.web.test_api_contract import problem
from tests.web.test_api_contract import program as program


@pytest.fixture
def failed(committed_db: psycopg.Connection) -> UUID:
    """A delivery that used up its attempts, beside its incident; another waits."""
    made = Rows(committed_db)
    process = made.definition()
    case = made.instance(process, business_key="INV-1")
    made.delivery(process, case, destination="other-hook")
    delivery = made.delivery(process, case, status="failed", attempts=3, last_error="503")
    made.incident("503", definition=process, instance=case, delivery_id=delivery)
    return delivery


def test_deliveries_are_listed_filtered_counted_and_shown(program: Any, failed: UUID) -> None:
    olga = program("olga")
    assert len(olga.get("/deliveries").json["items"]) == 2
    [shown] = olga.get("/deliveries?status=failed").json["items"]
    assert (shown["id"], shown["destination"], shown["business_key"], shown["last_error"]) == (
        str(failed),
        "accounting-hook",
        "INV-1",
        "503",
    )
    assert [each["destination"] for each in olga.get("/deliveries?q=other&due=true").json["items"]] == ["other-hook"]
    assert olga.get(f"/deliveries/{failed}").json == shown
    assert olga.get("/deliveries/counts").json == {"available": 1, "leased": 0, "failed": 1}
    first = olga.get("/deliveries?limit=1").json
    assert olga.get("/deliveries", query_string={"cursor": first["next_cursor"]}).json["items"][0]["id"] != first["items"][0]["id"]
    problem(olga.get(f"/deliveries/{uuid4()}"), 404, "not_found")
    problem(olga.get(f"/deliveries/{uuid4()}/history"), 404, "not_found")


def test_a_failed_delivery_is_retried_once_a_key(program: Any, failed: UUID, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    done = olga.post(f"/deliveries/{failed}/retry", {"attempts": 2}, key="k")
    assert done.json == {"id": str(failed), "status": "available", "attempts_left": 2}
    assert olga.post(f"/deliveries/{failed}/retry", {"attempts": 2}, key="k").json == done.json
    assert problem(olga.post(f"/deliveries/{failed}/retry"), 409, "not_failed")["by"] == "olga"
    assert [event["kind"] for event in olga.get(f"/deliveries/{failed}/history").json["items"]] == ["incident_resolved", "delivery_retried"]
    assert one(committed_db, "SELECT count(*) FROM incident") == 0


def test_a_delivery_is_skipped_for_good_and_sent_again_as_a_new_one(program: Any, failed: UUID, committed_db: psycopg.Connection) -> None:
    olga = program("olga")
    assert olga.post(f"/deliveries/{failed}/skip", {"reason": "by mail"}, key="k").json == {"id": str(failed), "status": "skipped"}
    assert olga.post(f"/deliveries/{failed}/skip", {"reason": "by mail"}, key="k").status_code == 200
    problem(olga.post(f"/deliveries/{failed}/skip", {}), 409, "not_failed")
    again = olga.post(f"/deliveries/{failed}/replay", {}, key="r")
    assert again.status_code == 201
    assert again.json["id"] != str(failed)
    assert olga.post(f"/deliveries/{failed}/replay", {}, key="r").json == again.json
    assert one(committed_db, "SELECT count(*) FROM delivery") == 3


@pytest.mark.parametrize("verb", ["retry", "skip", "replay"])
def test_only_operators_may_and_what_is_not_there_is_not_found(program: Any, failed: UUID, verb: str) -> None:
    problem(program("ada").post(f"/deliveries/{failed}/{verb}", {}), 403, "not_allowed")
    problem(program("olga").post(f"/deliveries/{uuid4()}/{verb}", {}), 404, "not_found")
