"""Message ids: one message that is sent twice has one effect, and the second sender is told.

The row of an id is written by the statement that correlates, starts or stores, and is unique by tenant, name and id: of two publishers
that send it at once, one waits, is rolled back and finds what the other did. An id counts for as long as its message lives, at least a day,
and to the very moment, whether or not upkeep has removed it; after that it is the id of a new message. What was refused leaves no row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from psycopg import errors

from engine.commands.outcome import FieldProblem, MessageKnown, MessagePublished
from engine.commands.requests import decode, encode

LEAST_SECONDS = 24 * 3600.0  # that an id counts
MAX_ID = 255  # characters: it is part of a unique key
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The id of one message, as its sender gave it. `seconds`: how long it counts."""

    name: str
    id: str
    key: str
    seconds: float

    @property
    def asked(self) -> dict[str, str]:
        """What `known` looks for."""
        return {"receipt_name": self.name, "receipt_id": self.id}

    def params(self, outcome: MessagePublished) -> dict[str, Any]:
        """What the member of the writing statement takes (engine.db.statements.receipt)."""
        return {**self.asked, "receipt_key": self.key, "receipt_seconds": self.seconds, "receipt": encode(outcome)}


def receipt_of(name: str, sent_id: str | None, key: str, time_to_live: float | None) -> Receipt | None:
    """None: the sender gave no id."""
    return None if sent_id is None else Receipt(name, sent_id, key, max(time_to_live or 0.0, LEAST_SECONDS))


def id_problem(sent_id: str | None) -> tuple[FieldProblem, ...]:
    """What is wrong with an id."""
    if sent_id is not None and (not sent_id or len(sent_id) > MAX_ID or _CONTROL.search(sent_id)):
        return (FieldProblem("message_id", f"expected 1 to {MAX_ID} characters without control characters"),)
    return ()


def known(document: Any) -> MessageKnown:
    """The answer to who sends a message again."""
    return MessageKnown(decode(document))


def is_known(error: errors.UniqueViolation) -> bool:
    """Whether a write was rolled back because another publisher has sent this very message."""
    return error.diag.constraint_name == "pk_message_receipt"


# A look that finds the receipt finds nobody who waits: it is the answer.
LOOK_UNKNOWN = (
    "SELECT r.outcome, w.* FROM (SELECT 1) one"
    " LEFT JOIN message_receipt r ON r.tenant_id = %(tenant_id)s AND r.name = %(receipt_name)s AND r.message_id = %(receipt_id)s"
    " AND r.kept_until > baton_now() LEFT JOIN ({look}) w ON r.outcome IS NULL"
)
FIND_KNOWN = (
    "SELECT r.outcome FROM message_receipt r WHERE r.tenant_id = %(tenant_id)s AND r.name = %(receipt_name)s"
    " AND r.message_id = %(receipt_id)s AND r.kept_until > baton_now()"
)
