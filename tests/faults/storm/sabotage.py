"""Eight ways to break the engine; each must be reported. They live here and in nothing that is shipped.

Some are triggers in the storm's database, others change a module in each process before anything else imports it
(tests.faults.storm.entry).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import psycopg

from tests.faults.storm.checker import Violation

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Sabotage:
    """`rule`, `sentence`: what the checker must say of it (a pattern), with `settings` under which it comes to light soon."""

    name: str
    rule: str
    sentence: str
    settings: Mapping[str, str] = field(default_factory=dict)


SABOTAGES: Mapping[int, Sabotage] = MappingProxyType(
    {
        1: Sabotage("drop a history row", "lost", "expected also .*flow_taken"),
        2: Sabotage("double a delivery", "doubled", "seen [0-9]+ times in [0-9]+ attempts"),
        3: Sabotage("unfence complete", "fence", "although a higher one had been given out"),
        4: Sabotage("recover by read-then-write", "lease", "was taken back .* before", {"BATON_RECOVERY_SECONDS": "0.3"}),
        5: Sabotage("reset a lease number", "lease", "was given out twice"),
        6: Sabotage("lose a stored message", "lost", "nobody received it, and it is gone"),
        7: Sabotage("skip one re-check", "doubled", "claimed by .* while .* had it"),
        8: Sabotage("notify inside the command", "notify", "notifies"),
    }
)


def reported(number: int, found: Iterable[Violation]) -> bool:
    """Whether the checker said of this sabotage what it must."""
    expected = SABOTAGES[number]
    return any(each.rule == expected.rule and re.search(expected.sentence, each.what) for each in found)


# ---- triggers


def in_the_database(conn: Connection, number: int) -> None:
    """Install the trigger of `number`, if it has one."""
    for statement in _TRIGGERS.get(number, ()):
        conn.execute(statement)


def _function(body: str) -> str:
    return f"CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"


_TRIGGERS: Mapping[int, tuple[str, ...]] = {
    1: (
        "CREATE SEQUENCE sabotaged",
        _function("IF NEW.kind = 'flow_taken' AND nextval('sabotaged') % 7 = 0 THEN RETURN NULL; END IF; RETURN NEW;"),
        "CREATE TRIGGER sabotage BEFORE INSERT ON history FOR EACH ROW EXECUTE FUNCTION sabotage()",
    ),
    5: (
        _function("IF OLD.status = 'leased' AND NEW.status = 'available' THEN NEW.lease_number := 0; END IF; RETURN NEW;"),
        *(
            f"CREATE TRIGGER sabotage BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION sabotage()"
            for table in ("job", "external_task", "delivery")
        ),
    ),
    6: (
        "CREATE SEQUENCE sabotaged",
        _function("IF nextval('sabotaged') % 2 = 0 THEN DELETE FROM message WHERE id = NEW.id; END IF; RETURN NULL;"),
        "CREATE TRIGGER sabotage AFTER INSERT ON message FOR EACH ROW EXECUTE FUNCTION sabotage()",
    ),
}


# ---- changed processes


def in_a_process(number: int) -> None:
    """Break this process. Imports what it changes only here: whoever imports it later gets it changed."""
    change = _CHANGES.get(number)
    if change is not None:
        change()


def _double_a_delivery() -> None:
    from worker import outbox

    send = outbox.send

    def twice(*args: Any) -> Any:
        send(*args)
        return send(*args)

    outbox.send = twice


def _unfence_complete() -> None:
    """Neither the look before the locks nor the guard in the writing statement compares the number."""
    from dataclasses import replace

    from engine.commands import jobs
    from engine.db import locks

    guard = " AND l.lease_number = %(fence)s"
    for leaf in ("job", "external_task"):
        assert guard in locks.LEAF[leaf], f"expected {guard!r} in the leaf of a {leaf}"
        locks.LEAF[leaf] = locks.LEAF[leaf].replace(guard, "")
    judge = jobs.judge

    def blind(loaded: Any, lease: Any, tenant_id: str | None = None) -> Any:
        current = lease if loaded is None or loaded.leaf.fence is None else replace(lease, number=loaded.leaf.fence)
        return judge(loaded, current, tenant_id)

    jobs.judge = blind


def _recover_by_read_then_write() -> None:
    """Reads what has expired, waits until something of it has moved on, and writes over all of it."""
    from engine.db import acquire

    def naive(conn: Connection, *, limit: int, forgiven: Any = ()) -> list[Any]:
        for table in ("job", "external_task", "delivery"):
            read = conn.execute(_EXPIRED.format(table=table), (limit,)).fetchall()
            if read:
                _wait_until_one_moves(conn, table, read)
                for item, number, _ in read:
                    conn.execute(_PUT_BACK.format(table=table), {"id": item, "number": number})
        return []

    acquire.recover_expired = naive


_EXPIRED = "SELECT id, lease_number, lease_expires_at FROM {table} WHERE status = 'leased' AND lease_expires_at < baton_now() LIMIT %s"
_PUT_BACK = """
WITH back AS (UPDATE {table} SET status = 'available', lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL, ended_at = NULL,
  available_at = baton_clock() WHERE id = %(id)s RETURNING *)
INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
SELECT baton_clock(), tenant_id, root_id, instance_id, definition_id, '{table}_recovered', element_id, 'engine', id,
  jsonb_build_object('lease_number', %(number)s::bigint, 'attempt', attempts) FROM back"""


def _wait_until_one_moves(conn: Connection, table: str, read: list[Any], *, seconds: float = 1.5) -> None:
    end = time.monotonic() + seconds
    ids = [row[0] for row in read]
    now = f"SELECT id, lease_number, lease_expires_at FROM {table} WHERE id = ANY (%s) AND status = 'leased'"
    while time.monotonic() < end and len({*conn.execute(now, (ids,)).fetchall()} & {*read}) == len(read):
        time.sleep(0.02)


def _skip_one_recheck() -> None:
    """A claim no longer compares the status of the row that it locked with what the page showed."""
    from engine.commands import tasks

    guard = "t.status COLLATE \"C\" = 'open'"
    assert all(guard in statement for statement in tasks._CLAIM), f"expected {guard!r} in the statements of a claim"
    plain, with_request = (statement.replace(guard, "t.status COLLATE \"C\" IN ('open', 'claimed')") for statement in tasks._CLAIM)
    tasks._CLAIM = (plain, with_request)


def _notify_inside_the_command() -> None:
    from engine.commands import transaction

    whole = transaction.transaction

    @contextmanager
    def notifying(conn: Connection) -> Iterator[Connection]:
        with whole(conn):
            yield conn
            conn.execute("NOTIFY storm")

    transaction.transaction = notifying


_CHANGES: Mapping[int, Callable[[], None]] = {
    2: _double_a_delivery,
    3: _unfence_complete,
    4: _recover_by_read_then_write,
    7: _skip_one_recheck,
    8: _notify_inside_the_command,
}
