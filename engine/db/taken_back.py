"""The statement that takes leases from holders who may still be running: recovery does (acquire.py), and an operator."""

from __future__ import annotations

from engine.db.locks import ROOT_OF_ITEM, TAKEN_AWAY, keeps_turn

FRONT = 10  # the level of what was recovered, for its next attempt: before any backlog younger than a day

# Columns of what is taken back.
LOST = "j.id, j.lease_number, j.lease_owner AS owner, j.lease_expires_at AS expired_at, j.leased_at AS began_at"


def take_back_sql(
    table: str, lost: str, *, kind: str, actor: str, why: str, wait: str, more: str = "", root: str = "", left: str = "",
    forgiven: str = "false",
) -> str:  # fmt: skip
    """A statement that takes leases from holders who may still be running: the attempt stays spent.

    `lost`: a query for (id, lease_number, owner, expired_at, began_at) that locks its rows; only those are updated, with
    status and lease number repeated. The last attempt is judged as when a handler fails: then the item rests as
    `failed`, beside one incident. `more`: further members that read from `back`. `root`: the lock under which a turn is given up.
    `left`: a query for those that need it, and did not get it here. `forgiven`: of whom the attempt is given back, as one more to come.
    """
    t = table
    over = "j.attempts >= j.max_attempts" if forgiven == "false" else f"j.attempts >= j.max_attempts AND NOT {forgiven}"
    again = "" if forgiven == "false" else f", max_attempts = j.max_attempts + CASE WHEN {forgiven} THEN 1 ELSE 0 END"
    if t == "external_task":
        again += ", error_detail = NULL"  # it told of another failure
    return f"""
WITH {root}lost AS MATERIALIZED ({lost}),
numbered AS (SELECT lost.*, row_number() OVER () AS place, count(*) OVER () AS many FROM lost),
back AS (
  UPDATE {t} j SET status = CASE WHEN {over} THEN 'failed' ELSE 'available' END{again},
    lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL, level = {FRONT},
    available_at = baton_clock() + {wait}, last_error = {why}
  FROM numbered n WHERE j.id = n.id AND j.status = 'leased' AND j.lease_number = n.lease_number
  RETURNING j.*, n.owner, n.expired_at, n.began_at, (%(incidents)s::uuid[])[n.place] AS incident
), opened AS (
  INSERT INTO incident (id, tenant_id, kind, message, instance_id, root_id, definition_id, element_id, created_at, {t}_id)
  SELECT incident, tenant_id, 'lease_lost', last_error, instance_id, root_id, definition_id, element_id, baton_clock(), id
  FROM back WHERE status = 'failed'
  ON CONFLICT ON CONSTRAINT uq_incident_{t} DO NOTHING RETURNING {t}_id AS id
), event AS (
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data)
  SELECT baton_clock(), tenant_id, root_id, instance_id, definition_id, e.kind, element_id, {actor}, id,
    CASE e.kind WHEN 'incident_opened' THEN jsonb_build_object('incident_id', incident, 'kind', 'lease_lost', 'message', last_error)
    ELSE jsonb_build_object('lease_number', lease_number, 'attempt', attempts, 'status', status, 'owner', owner,
      'leased_at', began_at, 'expired_at', expired_at) END
  FROM back CROSS JOIN LATERAL (VALUES ('{t}_{kind}'), ('incident_opened')) AS e (kind)
  WHERE e.kind <> 'incident_opened' OR back.id IN (SELECT id FROM opened)
){more}
SELECT id, lease_number, status, root_id FROM back{left}
"""


def release_by_operator_sql(table: str, more: str = "", *, in_turn: bool = False) -> str:
    """Take one lease away, whoever holds it; waits for that one row. `more`: a member that reads from `back`.

    `in_turn`: under the root's lock, which exclusive work needs that has no attempt left.
    """
    taken = TAKEN_AWAY.format(table=f"root, {table}" if in_turn else table, keeps="" if in_turn else keeps_turn(table))
    return take_back_sql(
        table,
        f"SELECT {LOST} {taken}",
        kind="released",
        actor="%(actor)s",
        why="format('%%s released the lease (number %%s): %%s', %(actor)s::text, j.lease_number, %(reason)s::text)",
        wait="interval '0'",
        more=", noted AS (INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, reason)"
        f" SELECT baton_clock(), tenant_id, %(actor)s, 'release', '{table}', id::text, %(reason)s FROM back){more}",
        root=f"{ROOT_OF_ITEM.format(table=table)},\n" if in_turn else "",
    )
