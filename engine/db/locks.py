"""Every row lock but those of acquire.py, and the order in which they are taken.

The order (design, "Locks"). A command takes levels upwards only:

1. the root instance, `FOR NO KEY UPDATE` (`ROOT_IF_REVISION`; a plain FOR UPDATE would block the foreign-key
   checks of everybody else's child rows). Two deployments of one process key, or key of a decision, meet before it, on an advisory lock.
2. process definitions, sorted by id: `DEFINITION` (FOR KEY SHARE) by whatever starts an instance, FOR UPDATE by
   suspension, deletion and a deployment over an older version. A definition stands for its start timers and start
   subscriptions. All that one statement calls are taken by it, sorted (`CALLING_ROOT`); under a root's lock they may come after
   the leaf, because whoever takes a definition FOR UPDATE waits for no leaf of a case; never after the keys. What a start
   by a stored message, a signal or a thrown message calls at once comes after its own definition, which its lock function
   has taken: beside a deployment of both it may be a deadlock's victim, and is run again.
   What a parallel event-based gateway starts for a key meets after it, on an advisory lock (`GATHERED`).
3. the request row. In the one writing statement it comes after the leaf instead; that holds, because its key contains
   the target, so that a repeat meets its first at the same root or leaf. The row of a message's id (`message_receipt`) is written in the
   same place, and waits for whoever sends that id at the same moment. Its key does not contain the receiver: sent at once under two
   keys, once to be stored, once to who then waits for the other key, it is a deadlock, whose victim is run again and finds what was done.
4. leaf rows of the case, in any order (`LEAF`): user task, job, external task, delivery, subscription, token.
5. message keys: all that a command opens, in one statement, sorted by lock number, once (`KEYS`).
6. at most one stored message, re-checked after the lock. After that nothing that waits.

A command that holds no root locks exactly one leaf row, or takes its rows with SKIP LOCKED, and never waits while it
holds a leaf (claim, unclaim, assign, renew, release, fail, acquire, recover, take next). Root holders wait for such
commands only, so they may lock and delete leaves in any order, ON DELETE CASCADE included.

Who starts from a leaf reads its root id unlocked (it never changes), locks the root, then the leaf, then re-checks.
Lock in one statement, read in the next: a statement that waits for a lock reads everything else from before the wait.

Message keys are advisory transaction locks on `baton_key_number(tenant, name, key)`; key NULL is the name at large.

    who                          (tenant, name, key)    (tenant, name) at large    then
    publish                      exclusive              shared                     look for open subscriptions
    opens a catch subscription   shared                 -                          look for a stored message
    opens a start subscription   -                      exclusive                  look for a stored message

The job of a message that a case threw holds its own row while it waits for the keys. It belongs to no case, so no root holder
waits for it, and what else might (an operator who releases it) holds nothing. A signal needs no key: who is to have it is
what the snapshot of the throw saw (baton_signal_thrown). The rows that it writes for its receivers hang off no token, so that no
foreign key waits for who deletes one.

So a publisher meets the subscriber of its key, and a deployment whose start subscription takes any key; two publishers
of different keys do not meet. All numbers of one command are taken by one call, sorted: `baton_lock_keys(exclusive,
shared)` by the publisher, `baton_open_subscriptions(subscription_ids, job_ids)` by everybody else (it locks, looks in
its next statement, and writes a job of kind `message` for each subscription that has a message waiting).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from engine.db.workers import KNOWN_HANDLERS


class Level(IntEnum):
    """The levels of the order above; 0 is the advisory lock on which two deployments of one key meet."""

    DEPLOYMENT = 0
    ROOT = 1
    DEFINITION = 2
    REQUEST = 3
    LEAF = 4
    KEYS = 5
    MESSAGE = 6


# A guard finds its row by key. COLLATE changes nothing but the planner's mind: a status compared so is not the condition of
# a partial index (running instances, claimed tasks, leased jobs), which would be read from end to end, all that was consumed
# since the last vacuum included, while statistics say that it is small.

EXCLUSIVE = ("job", "external_task")  # tables of work that may wait for its turn (baton_take_turn)

# Level 1. `mark` says what the command read: a mark set meanwhile is a world that moved on.
ROOT_IF_REVISION = (
    "root AS MATERIALIZED (SELECT id FROM process_instance WHERE id = %(root_id)s AND revision = %(revision)s"
    " AND status COLLATE \"C\" = 'running' AND mark IS NOT DISTINCT FROM %(mark)s FOR NO KEY UPDATE)"
)

# Level 2. What starts an instance: the newest version that is active, as the command read it.
DEFINITION = (
    "definition AS MATERIALIZED (SELECT id FROM process_definition WHERE id = %(definition_id)s AND status = 'active' FOR KEY SHARE)"
)
# The same by memory: it must still be the newest version that is not being deleted.
_NEWER = (
    "EXISTS (SELECT FROM process_definition n WHERE n.tenant_id = d.tenant_id AND n.key = d.key"
    " AND n.version > d.version AND n.status <> 'deleting')"
)
NEWEST_DEFINITION = (
    "definition AS MATERIALIZED (SELECT d.id FROM process_definition d WHERE d.id = %(definition_id)s AND d.status = 'active'"
    f" AND NOT {_NEWER} FOR KEY SHARE OF d)"
)


# The same for what is called: every definition must be active, and those that were taken as the newest of their key must
# still be that. Sorted, a start's own definition among them. The command goes on only if all of them were found.
def _called(held: str) -> str:
    return (
        f"called AS MATERIALIZED (SELECT d.id FROM process_definition d{held} WHERE d.id = ANY (%(called)s) AND d.status = 'active'"
        f" AND NOT (d.id = ANY (%(called_newest)s) AND {_NEWER}) ORDER BY d.id FOR KEY SHARE OF d)"
    )


_ALL_CALLED = "(SELECT count(*) FROM called) = cardinality(%(called)s)"
CALLING_ROOT = (
    ROOT_IF_REVISION.replace("root AS", "held AS", 1),
    _called(", held"),
    f"root AS MATERIALIZED (SELECT id FROM held WHERE {_ALL_CALLED})",
)
CALLING_START = (
    _called(""),
    f"definition AS MATERIALIZED (SELECT id FROM called WHERE id = %(definition_id)s AND {_ALL_CALLED})",
)

# Level 2 as well, after the definition: what a parallel event-based gateway of it starts for a key (engine.commands.gathering).
# Who finds an instance that waits for its message starts none. A job does not wait for others; it looks again.
_GATHERED = (
    "alone AS MATERIALIZED (SELECT definition.id FROM definition"
    " WHERE {function}(%(tenant_id)s, %(gateway)s, %(message_name)s, %(message_key)s))"
)
GATHERED = _GATHERED.format(function="baton_lock_gathering")
GATHERED_IF_FREE = _GATHERED.format(function="baton_try_gathering")

# Level 4: the leaf that triggered, guarded by its status and by all that leaf-only commands may have changed since the
# read. Member `go`; every other member of the writing statement, the revision bump included, reads from it. Its columns
# are those of CASE, in that order.
CASE = "tenant_id, instance_id, root_id, definition_id"
_OF_LEAF = "l.tenant_id, l.instance_id, l.root_id, l.definition_id"
_OF_PARAMETERS = (
    "%(tenant_id)s::text AS tenant_id, %(instance_id)s::uuid AS instance_id, %(root_id)s::uuid AS root_id,"
    " %(definition_id)s::uuid AS definition_id"
)
_LEASED = (
    "go AS (DELETE FROM {table} l USING root WHERE l.id = %(leaf_id)s AND l.status COLLATE \"C\" = 'leased'"
    f" AND l.lease_number = %(fence)s RETURNING {_OF_LEAF}, baton_clock() AS at)"
)
LEAF = {
    "user_task": (
        "go AS (UPDATE user_task l SET status = 'completed', ended_at = baton_clock(), ended_by = %(actor)s, token_id = NULL,"
        " version = version + 1 FROM root WHERE l.id = %(leaf_id)s AND l.status COLLATE \"C\" = 'claimed' AND l.assignee = %(fence)s"
        f" RETURNING {_OF_LEAF}, l.ended_at AS at)"
    ),
    "job": _LEASED.format(table="job"),
    # The job of a delivery, and with it the subscription that receives: it must be there, and goes only if the job does.
    "message_job": (
        "receiver AS MATERIALIZED (SELECT s.id FROM subscription s, root WHERE s.id = %(received_by)s FOR UPDATE OF s), "
        + _LEASED.format(table="job").replace("USING root", "USING root, receiver")
        + ", received AS (DELETE FROM subscription s USING go WHERE s.id = %(received_by)s)"
    ),
    # The job that brings a signal, or a message that another case threw; its own columns may be those of no case at all.
    "reception": (
        "receiver AS MATERIALIZED (SELECT s.id FROM subscription s, root WHERE s.id = %(received_by)s FOR UPDATE OF s), "
        + "go AS (DELETE FROM job l USING root, receiver WHERE l.id = %(leaf_id)s AND l.status COLLATE \"C\" = 'leased'"
        f" AND l.lease_number = %(fence)s RETURNING {_OF_PARAMETERS}, baton_clock() AS at)"
        + ", received AS (DELETE FROM subscription s USING go WHERE s.id = %(received_by)s)"
    ),
    "external_task": _LEASED.format(table="external_task"),
    "subscription": (
        "go AS (DELETE FROM subscription l USING root WHERE l.id = %(leaf_id)s AND l.kind = 'catch'"
        f" RETURNING {_OF_LEAF}, baton_clock() AS at)"
    ),
    # Locked here, changed by the member that moves it or deletes it.
    "token": (
        f"go AS MATERIALIZED (SELECT {_OF_PARAMETERS}, baton_clock() AS at FROM token l, root"
        " WHERE l.id = %(leaf_id)s AND l.status = 'failed' FOR NO KEY UPDATE OF l)"
    ),
    # Cancelling: the root itself is the leaf.
    "instance": f"go AS MATERIALIZED (SELECT {_OF_PARAMETERS}, baton_clock() AS at FROM root)",
}
# Level 4 under a definition's lock: the start subscription that a publisher found. Locked, so that one which a deployment
# has taken away meanwhile is not there; unlocked it would still be read from before the wait.
START_SUBSCRIPTION = (
    "cause AS MATERIALIZED (SELECT d.id FROM definition d JOIN subscription l ON l.definition_id = d.id"
    " WHERE l.id = %(leaf_id)s AND l.kind COLLATE \"C\" = 'start' FOR KEY SHARE OF l)"
)
# The same where a case threw the message: its job ends with it.
START_BY_THROW = (
    "receiver AS MATERIALIZED (SELECT d.id FROM subscription l JOIN definition d ON d.id = l.definition_id"
    " WHERE l.id = %(received_by)s AND l.kind COLLATE \"C\" = 'start' FOR KEY SHARE OF l)"
)
# Level 4 by a command that holds no root: one leased item ends its attempt. `before` is the row as the statement's
# snapshot has it, for the event alone; status and lease number are compared on the row that is locked.
FAILING = (
    "FROM (SELECT id, lease_owner AS owner, leased_at AS began_at FROM {table} WHERE id = %(item_id)s) before"
    " WHERE l.id = before.id AND l.status COLLATE \"C\" = 'leased' AND l.lease_number = %(lease_number)s"
)
# The same under the root's lock (ROOT_OF_ITEM), for what gives its turn up.
FAILING_IN_TURN = FAILING.replace(") before", ") before, root")
# The same for whoever takes one lease away from its holder; the rows that this locks are updated by the same statement.
TAKEN_AWAY = (
    "FROM {table} j WHERE j.id = %(item_id)s AND j.tenant_id = %(tenant_id)s AND j.status COLLATE \"C\" = 'leased'{keeps} FOR UPDATE OF j"
)
# Its last attempt over, exclusive work gives its turn up, under the root's lock; leaf-only commands leave it alone then.
GIVES_UP = "{alias}.exclusive AND {alias}.attempts >= {alias}.max_attempts"


def keeps_turn(table: str, alias: str = "j") -> str:
    """For a WHERE: no turn is given up if the attempt that is running ends here."""
    return f" AND NOT ({GIVES_UP.format(alias=alias)})" if table in EXCLUSIVE else ""


# For the client that renews one lease and must know: it holds nothing while it waits.
WAIT_FOR_LEASE = "SELECT 1 FROM external_task WHERE id = %s FOR NO KEY UPDATE"
# The second statement of a write too long for one: the locks are held, the case is that of the first.
GO_ON = f"go AS MATERIALIZED (SELECT {_OF_PARAMETERS}, %(at)s::timestamptz AS at)"

# A leaf of no case: a feed of events is moved on by one worker at a time, and nobody waits for it.
FEED_IF_FREE = "FOR UPDATE OF f SKIP LOCKED"

# Level 4 again, after the write of a root holder: the next of a case's exclusive work.
TURN_CALL = "baton_take_turn(%(root_id)s)"
TURN = f"SELECT {TURN_CALL}"
# For what fails, is taken back or is retried and has a turn to give up or to wait for: the root, and that one row after it.
ROOT_OF_ITEM = (
    "root AS MATERIALIZED (SELECT r.id FROM process_instance r"
    " WHERE r.id = (SELECT w.root_id FROM {table} w WHERE w.id = %(item_id)s) FOR NO KEY UPDATE)"
)
ROOT_OF_ITEM_IF_FREE = ROOT_OF_ITEM.replace("UPDATE)", "UPDATE SKIP LOCKED)")

# The next of each line of deliveries: rows SKIP LOCKED, under no root.
NEXT_IN_LINE = "SELECT baton_next_in_line(%s, %s, %s, %s)"

# Cases of which exclusive work waits and none has its turn: a replica of a release before exclusive work has ended it. Whoever has
# the root looks after it.
TURNLESS = """
SELECT r.id FROM process_instance r WHERE r.id IN (
  SELECT w.root_id FROM (
    SELECT j.root_id FROM job j WHERE j.exclusive AND j.held @> '{exclusive}'
    UNION SELECT e.root_id FROM external_task e WHERE e.exclusive AND e.held @> '{exclusive}') w
  WHERE NOT EXISTS (SELECT FROM job j WHERE j.root_id = w.root_id AND j.exclusive AND j.status <> 'failed' AND NOT j.held @> '{exclusive}')
    AND NOT EXISTS (SELECT FROM external_task e
      WHERE e.root_id = w.root_id AND e.exclusive AND e.status <> 'failed' AND NOT e.held @> '{exclusive}'))
ORDER BY r.id LIMIT 100 FOR NO KEY UPDATE OF r SKIP LOCKED
"""

# Level 5 (and 6 by those who find a message): one call each, in a statement of its own after the write.
KEYS_CALL = "baton_open_subscriptions(%(subscription_ids)s, %(job_ids)s)"
KEYS = f"SELECT {KEYS_CALL}"
TURN_AND_KEYS = f"SELECT {TURN_CALL}, {KEYS_CALL}"
PUBLISHER_KEYS = (
    "SELECT baton_lock_keys(ARRAY[baton_key_number(%(tenant_id)s, %(name)s, %(key)s)],"
    " ARRAY[baton_key_number(%(tenant_id)s, %(name)s, NULL)])"
)

# All levels of one delivery of a stored message, in two calls: root or definition, job and subscription before the
# core; keys and the message itself after the write.
DELIVERY = "SELECT baton_lock_delivery(%s, %s)"
TAKE_MESSAGE = "SELECT baton_take_message(%s, %s::uuid[], %s::uuid[], %s, %s)"
# A signal, or a message that a case threw, meets who waits: all that comes before the core.
RECEPTION = "SELECT baton_lock_reception(%s, %s, %s)"
# A job that publishes: itself, and the publisher's keys.
THROW = "SELECT baton_take_throw(%s, %s)"
# One step of a signal's way to its subscribers: the job alone.
SPREAD_SIGNAL = "SELECT baton_spread_signal(%s, %s, %s, %s)"
# One step of a large cancel: the root, the job, and then what it takes apart.
CANCEL_SOME = "SELECT baton_cancel_some(%s, %s, %s)"
# The items of a case that is suspended or goes on again: at once as many as one transaction may change, under the root's lock,
# and step by step by a job: the root, the job, the items. Of a version with its cases: a root, the version, the job, the items.
HOLD_SOME = "SELECT baton_hold_some(%s, %s)"
FREE_SOME = "SELECT baton_free_some(%s, %s, %s, false)"
HOLD_STEP = "SELECT baton_hold_step(%s, %s, %s)"
# A delivery that found nothing to do ends its job, under the locks of DELIVERY.
END_DELIVERY = (
    "WITH leaf AS (DELETE FROM job l WHERE l.id = %(item_id)s AND l.status COLLATE \"C\" = 'leased' AND l.lease_number = %(lease_number)s"
    f" RETURNING {_OF_LEAF}, l.id, l.element_id)"
    f" INSERT INTO history (at, {CASE}, kind, element_id, actor, item_id, data)"
    f" SELECT baton_clock(), {CASE}, 'job_completed', element_id, 'engine', id,"
    " jsonb_build_object('lease_number', %(lease_number)s::bigint, 'attempt', %(attempt)s::int, 'outcome', %(why)s::text) FROM leaf"
)

# A deployment, before everything else: its process keys, sorted; then the newest versions as they are under those locks.
# Besides, for a warning, which of the processes, decisions and forms that it refers to are there. With decisions: their keys as well, after
# those of the processes; with forms: theirs after both.
# And level 2: the versions that it takes over from, FOR UPDATE; then their start timers.
DEPLOYMENT = (
    "SELECT baton_lock_deployment(%(tenant_id)s, %(keys)s), ARRAY(SELECT DISTINCT d.key FROM process_definition d"
    " WHERE d.tenant_id = %(tenant_id)s AND d.key = ANY (%(called)s) AND d.status <> 'deleting'),"
    " ARRAY(SELECT DISTINCT d.key FROM decision_definition d WHERE d.tenant_id = %(tenant_id)s AND d.key = ANY (%(decided)s)),"
    " ARRAY(SELECT DISTINCT d.key FROM form_definition d WHERE d.tenant_id = %(tenant_id)s AND d.key = ANY (%(formed)s)),"
    " ARRAY(SELECT DISTINCT d.resource_name FROM form_definition d WHERE d.tenant_id = %(tenant_id)s AND d.resource_name = ANY (%(filed)s))"
    f", {KNOWN_HANDLERS}"
)
DEPLOYMENT_OF_DECISIONS = DEPLOYMENT + ", baton_lock_decisions(%(tenant_id)s, %(decisions)s)"
DEPLOYMENT_OF_FORMS = DEPLOYMENT_OF_DECISIONS + ", baton_lock_forms(%(tenant_id)s, %(forms)s)"
TAKEN_OVER = "SELECT baton_lock_definitions(%(definition_ids)s)"
# The deletion of a version, or its suspension: its key, then itself.
DELETION = "SELECT baton_lock_deletion(%s, %s, %s)"


# ---- what each of them locks, for the tests that watch the order (tests/lock_order.py)

# Whatever spells a lock is one of these, or a SKIP LOCKED of acquire.py, which takes leaves and never waits.
FRAGMENTS: tuple[tuple[Level, str], ...] = (
    (Level.ROOT, ROOT_IF_REVISION),
    (Level.DEFINITION, DEFINITION),
    (Level.DEFINITION, NEWEST_DEFINITION),
    (Level.ROOT, CALLING_ROOT[0]),
    (Level.DEFINITION, CALLING_ROOT[1]),
    (Level.DEFINITION, CALLING_START[0]),
    *((Level.LEAF, text) for text in LEAF.values()),
    (Level.LEAF, START_SUBSCRIPTION),
    (Level.LEAF, START_BY_THROW),
    *((Level.LEAF, TAKEN_AWAY.format(table=table, keeps=keeps_turn(table))) for table in ("job", "external_task", "delivery")),
    *((Level.LEAF, TAKEN_AWAY.format(table=f"root, {table}", keeps="")) for table in EXCLUSIVE),
    (Level.LEAF, WAIT_FOR_LEASE),
    (Level.LEAF, FEED_IF_FREE),
    *((Level.ROOT, text.format(table=table)) for table in EXCLUSIVE for text in (ROOT_OF_ITEM, ROOT_OF_ITEM_IF_FREE)),
    (Level.ROOT, TURNLESS),
)
# What starts an instance, once it is known to be alone.
FRAGMENTS += tuple((Level.LEAF, text.replace("definition d", "alone d")) for text in (START_SUBSCRIPTION, START_BY_THROW))
# The functions of engine/db/sql that lock, with the levels that they take, in their order.
FUNCTIONS: Mapping[str, tuple[Level, ...]] = {
    "baton_cancel_some": (Level.ROOT, Level.LEAF),
    "baton_end_job": (Level.LEAF,),
    "baton_free_paused": (Level.LEAF,),  # the job; the items SKIP LOCKED
    "baton_free_some": (Level.LEAF,),
    "baton_hold_next_case": (Level.ROOT, Level.DEFINITION, Level.LEAF),
    "baton_hold_paused": (Level.LEAF,),  # the job; the items SKIP LOCKED
    "baton_hold_some": (Level.LEAF,),
    "baton_hold_step": (Level.ROOT, Level.LEAF),
    "baton_lock_case": (Level.ROOT, Level.LEAF),
    "baton_lock_decisions": (Level.DEPLOYMENT,),
    "baton_lock_definitions": (Level.DEFINITION,),
    "baton_lock_deletion": (Level.DEPLOYMENT, Level.DEFINITION),
    "baton_lock_delivery": (Level.ROOT, Level.DEFINITION, Level.LEAF),
    "baton_lock_deployment": (Level.DEPLOYMENT,),
    "baton_lock_forms": (Level.DEPLOYMENT,),
    "baton_lock_gathering": (Level.DEFINITION,),
    "baton_lock_keys": (Level.KEYS,),
    "baton_lock_moved_case": (Level.ROOT, Level.LEAF),
    "baton_lock_reception": (Level.ROOT, Level.DEFINITION, Level.LEAF),
    "baton_lock_subscription_keys": (Level.KEYS,),
    "baton_next_in_line": (Level.LEAF,),  # SKIP LOCKED
    "baton_open_subscriptions": (Level.KEYS,),
    "baton_spread_signal": (Level.LEAF,),
    "baton_take_message": (Level.KEYS, Level.MESSAGE),
    "baton_take_throw": (Level.LEAF, Level.KEYS),
    "baton_take_turn": (Level.LEAF,),
    "baton_try_gathering": (),  # it does not wait
}
# These hold a leaf of no case, and may wait with it in hand: no root holder waits for it.
OF_NO_CASE = frozenset({"baton_take_throw"})
# What an UPDATE or DELETE of a row locks, and for a request or the id of a message its INSERT, which waits for a repeat. The rows of a leaf
# (inbox entries, incidents) go with it; scopes, variables and executions are changed by those who hold the root. Other tables, such as
# people and workers, belong to no case, and no command that locks one of these touches them.
TABLES: Mapping[str, Level] = {
    "process_instance": Level.ROOT,
    "process_definition": Level.DEFINITION,
    "request": Level.REQUEST,
    "message_receipt": Level.REQUEST,
    **dict.fromkeys(("user_task", "job", "external_task", "delivery", "subscription"), Level.LEAF),
    **dict.fromkeys(("token", "scope", "variable", "completed_execution"), Level.LEAF),
    "message": Level.MESSAGE,
}
