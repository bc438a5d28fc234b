"""Request ids: outcomes survive JSON, and whichever row was inserted first is the answer (R10)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import Problem
from engine.commands import outcome as outcomes
from engine.commands.outcome import Actor, Claimed, FieldProblem, Refusal, Rejected
from engine.commands.requests import decode, encode, recorded, refuse, request_for, reserve
from engine.ids import new_id

ADA = Actor("ada", groups=frozenset({"billing"}))
WHEN = datetime(2026, 11, 29, 10, 0, 0, 123456, tzinfo=UTC)
PROBLEMS = (Problem("t1", 7, "what", "why", "a.bpmn"), FieldProblem("amount", "not a number"))


def filled(cls: type[Any]) -> Any:
    """One outcome with a telling value in every field."""
    values: dict[str, Any] = {
        "UUID": new_id(),
        "datetime": WHEN,
        "bool": True,
        "int": 7,
        "str": "text",
        "Refusal": Refusal.ALREADY_CLAIMED,
        "Mapping[UUID, datetime]": {new_id(): WHEN},
        "frozenset[UUID]": frozenset({new_id(), new_id()}),
        "tuple[Problem | FieldProblem, ...]": PROBLEMS,
        "tuple[Problem, ...]": PROBLEMS[:1],
    }
    if cls.__name__ == "Deployed":
        return cls(new_id(), (filled(outcomes.DeployedDefinition),))
    if cls.__name__ == "MessageKnown":
        return cls(filled(outcomes.MessagePublished))
    return cls(**{f.name: values[str(f.type).removesuffix(" | None")] for f in fields(cls)})


OUTCOMES = [
    cls
    for cls in vars(outcomes).values()
    if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == outcomes.__name__ and cls not in (Actor, outcomes.Lease)
]


@pytest.mark.parametrize("cls", OUTCOMES, ids=lambda cls: cls.__name__)
def test_R10_every_outcome_is_the_same_after_json(cls: type[Any], db: psycopg.Connection) -> None:
    outcome = filled(cls)
    stored = db.execute("SELECT %s::jsonb", (encode(outcome),)).fetchone()
    assert stored is not None
    assert decode(stored[0]) == outcome


def test_R10_a_refusal_is_answered_again_and_written_once(committed_db: psycopg.Connection) -> None:
    request = request_for(ADA, "press-1", "claim", new_id())
    first = Rejected(Refusal.ALREADY_CLAIMED, by="bo", by_name="Bo", at=WHEN)
    assert refuse(committed_db, "claim", "ada", "", first, request) == first

    later = Rejected(Refusal.ALREADY_COMPLETED, by="bo", at=WHEN)
    assert refuse(committed_db, "claim", "ada", "", later, request) == first
    assert committed_db.execute("SELECT count(*) FROM request").fetchone() == (1,)


def test_R10_a_refusal_that_meets_a_win_under_its_key_answers_with_the_win(committed_db: psycopg.Connection) -> None:
    request = request_for(ADA, "press-1", "claim", new_id())
    assert request is not None
    win = Claimed(new_id(), "ada", WHEN)
    committed_db.execute("INSERT INTO request VALUES ('', 'ada', 'press-1', %s, %s)", (request.hash, encode(win)))
    assert refuse(committed_db, "claim", "ada", "", Rejected(Refusal.ALREADY_CLAIMED, by="bo"), request) == win


def test_R10_invalid_input_and_refusals_of_permission_are_never_recorded(committed_db: psycopg.Connection) -> None:
    request = request_for(ADA, "press-1", "claim", new_id())
    for reason in (Refusal.INVALID, Refusal.UNSUPPORTED, Refusal.NOT_FOUND, Refusal.NOT_ALLOWED):
        refuse(committed_db, "claim", "ada", "", Rejected(reason), request)
        refuse(committed_db, "claim", "ada", "", Rejected(reason))
    assert committed_db.execute("SELECT (SELECT count(*) FROM request), (SELECT count(*) FROM refusal)").fetchone() == (0, 0)


def test_R10_a_late_completion_without_a_request_id_is_counted(committed_db: psycopg.Connection) -> None:
    job = new_id()
    refuse(committed_db, "complete_job", "engine", "", Rejected(Refusal.LEASE_LOST, item_id=job))
    row = committed_db.execute("SELECT command, item_id, reason FROM refusal").fetchone()
    assert row == ("complete_job", job, "lease_lost")


def test_R10_the_same_id_with_another_target_or_payload_is_judged_afresh() -> None:
    task, other = new_id(), new_id()
    base = request_for(ADA, "x", "complete", task, {"amount": 1})
    assert base == request_for(ADA, "x", "complete", UUID(str(task)), {"amount": 1})
    assert base != request_for(ADA, "x", "complete", other, {"amount": 1})
    assert base != request_for(ADA, "x", "complete", task, {"amount": 2})
    assert base != request_for(ADA, "x", "claim", task, {"amount": 1})
    assert base != request_for(Actor("bo"), "x", "complete", task, {"amount": 1})
    assert request_for(ADA, None, "complete", task) is None


def test_R10_a_reserved_row_is_found_by_the_repeat(committed_db: psycopg.Connection) -> None:
    request = request_for(ADA, "press-1", "deploy", "")
    assert request is not None
    assert reserve(committed_db, request) is None
    win = Claimed(new_id(), "ada", WHEN)
    committed_db.execute("UPDATE request SET outcome = %s", (encode(win),))
    assert reserve(committed_db, request) == win
    assert recorded(committed_db, request) == win
