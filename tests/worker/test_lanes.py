"""Slots per kind of work: how they are planned, and that a flood of long jobs keeps nothing else waiting (F19)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.config import ConfigurationError, Settings
from tests import rows
from tests.worker.processes import eventually, row, worker
from worker.handlers import Handler
from worker.lanes import ENGINE_JOBS, Plan, plan, unknown

Connection = psycopg.Connection[Any]
HANDLERS = {
    name: Handler(name, lambda context: None, inline=inline) for name, inline in (("charge", False), ("report", False), ("note", True))
}
SLOTS = {"handler_processes": 4, "worker_slots": 4, "delivery_slots": 2}


def planned(handlers: dict[str, Handler] = HANDLERS, **settings: Any) -> dict[str, tuple[int, tuple[Any, ...]]]:
    return {lane.name: (lane.slots, lane.kinds) for lane in plan(Settings(**SLOTS, **settings), handlers)}


def test_without_a_word_there_are_lanes_for_handlers_engine_inline_handlers_and_the_outbox():
    assert planned() == {
        "handlers": (4, (("service", "charge"), ("service", "report"))),
        "engine": (2, ENGINE_JOBS),
        "inline": (2, (("service", "note"),)),
        "outbox": (2, (("http", ""),)),
    }


def test_where_no_handler_is_inline_the_engine_has_all_its_slots():
    assert planned({"charge": HANDLERS["charge"]})["engine"] == (4, ENGINE_JOBS)


def test_a_kind_with_slots_of_its_own_leaves_its_lane():
    found = planned(kind_slots=(("report", 1), ("timer", 2), ("throw", 1), ("http", 3), ("note", 1)))
    rest = tuple(kind for kind in ENGINE_JOBS if kind[0] not in ("timer", "throw"))
    assert found == {
        "handlers": (4, (("service", "charge"),)),
        "report": (1, (("service", "report"),)),
        "engine": (4, rest),
        "timer": (2, (("timer", ""),)),
        "throw": (1, (("throw", "signal"), ("throw", "message"))),
        "note": (1, (("service", "note"),)),
        "http": (3, (("http", ""),)),
    }


def test_every_kind_is_in_one_lane_and_what_no_worker_runs_is_named():
    settings = Settings(**SLOTS, kind_slots=(("report", 1), ("repart", 1)))
    lanes = plan(settings, HANDLERS)
    kinds = [kind for lane in lanes for kind in lane.kinds]
    assert len(kinds) == len(set(kinds)) == len(ENGINE_JOBS) + len(HANDLERS) + 1
    assert unknown(settings, lanes) == ["repart"]
    assert [lane for lane in lanes if lane.children] == [
        Plan("handlers", 4, (("service", "charge"),), children=True),
        Plan("report", 1, (("service", "report"),), children=True),
    ]


@pytest.mark.parametrize("text", ["report", "report=0", "report=65", "report=x", "=1", "a=1,,b=1", "a=1,a=2", "a b=1"])
def test_slots_that_cannot_be_read_are_refused_by_the_name_of_the_variable(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"BATON_KIND_SLOTS: expected .*, found"):
        Settings.from_env({"BATON_KIND_SLOTS": text})


def job(conn: Connection, topic: str, **values: Any) -> UUID:
    return rows.job(conn, topic=topic, **values)


def test_F19_a_flood_of_long_jobs_keeps_no_other_kind_waiting(database_url, committed_db, tmp_path):
    """Ten jobs that never end by themselves, of higher priority and due first, and one process for them."""
    payload = psycopg.types.json.Jsonb({"inputs": {"folder": {"type": "string", "value": str(tmp_path)}}})
    for _ in range(10):
        job(committed_db, "test.waits", payload=payload, priority=9, level=9, overdue=600)
    for _ in range(4):
        job(committed_db, "test.inline_waits", payload=payload, priority=9, level=9, overdue=600)
    with worker(database_url, tmp_path, kind_slots="test.waits=1", handler_processes="1", worker_slots="2") as process:
        eventually(lambda: list(tmp_path.glob("running-*")) and list(tmp_path.glob("inline-*")), "long jobs in every slot of theirs")
        others = [job(committed_db, "test.fails", max_attempts=1), rows.job(committed_db, topic="", kind="message", max_attempts=1)]
        delivery = rows.delivery(committed_db, kind="http", max_attempts=1)
        eventually(
            lambda: row(committed_db, "SELECT count(*) FROM job WHERE id = ANY (%s) AND status = 'available'", others) == (0,),
            "a handler of another kind, and a job of the engine, to be run meanwhile",
        )
        process.says("delivery_failed")
        assert rows.columns(committed_db, "delivery", delivery, "status") == ("failed",)
        assert len(list(tmp_path.glob("running-*"))) == 1
        (tmp_path / "go").touch()
