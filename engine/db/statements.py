"""The writing statement of a command, composed once for each mix of effects and cached.

It begins with the locked and compared root (locks.ROOT_IF_REVISION) and the guarded leaf, member `go`. Everything else,
the revision bump included, reads from `go`: a member that does not join the guard runs even when the guard found nothing.
Rows travel as JSON documents, scalars as parameters. Each text stays below 4,096 characters and 50 parameters, beyond
which psycopg parses it anew at every call; a mix that does not fit goes on in a second statement of the same transaction,
so it is never written the optimistic way. The request row is the last member, without ON CONFLICT: 23505 is a repeat.
"""

from __future__ import annotations

from functools import lru_cache

from engine.db.locks import (
    CALLING_ROOT,
    CALLING_START,
    CASE,
    DEFINITION,
    GATHERED,
    GATHERED_IF_FREE,
    GO_ON,
    KEYS_CALL,
    LEAF,
    NEWEST_DEFINITION,
    ROOT_IF_REVISION,
    START_BY_THROW,
    START_SUBSCRIPTION,
)
from engine.db.mix import Mix
from engine.db.pauses import is_paused
from engine.db.receipts import receipt
from engine.db.routes import DESTINATION_OF, ORIGIN
from engine.db.single_rows import single_row

LIMIT_CHARACTERS, LIMIT_PARAMETERS = 4096, 50


@lru_cache(maxsize=512)
def fitting(mix: Mix) -> Mix:
    """The mix with as many rows as fit in the one statement as parameters; documents take longer, but less text."""
    for name in ("jobs", "tasks", "scopes", "tokens", "variables"):
        if len(writing_statements(mix)) == 1:
            break
        if getattr(mix, name) == 1:
            mix = mix._replace(**{name: 2})  # type: ignore[arg-type]  # all five are numbers
    return mix


@lru_cache(maxsize=512)
def writing_statements(mix: Mix) -> tuple[str, ...]:
    """One statement for this mix, or two, for rows of several instances at most three.

    The first returns one row (at, tasks withdrawn), or none: a guard found nothing. The last takes the keys.
    """
    asked = f"asked AS ({mix.request})" if mix.request else ""
    withdrawn = "(SELECT count(*) FROM withdrawn)" if mix.cancelled else "0"
    end = f"\nSELECT at, {withdrawn} FROM go"
    first = _guards(mix) + [text for wanted, text in _first_members(mix) if wanted]
    room = LIMIT_CHARACTERS - len(end) - len(asked) - sum(map(len, first)) - 2 * len(first) - len("WITH ,\n")
    more: list[str] = []
    for text in (text for wanted, text in _other_members(mix) if wanted):
        if len(text) + 2 < room:
            first.append(text)
            room -= len(text) + 2
        else:
            more.append(text)
    whole = _joined([*first, asked] if asked else first, end)
    if not more:
        return (whole,)
    keys = KEYS_CALL if mix.subscriptions and not mix.keys_later else "0"
    last = f"\nSELECT {keys}"
    rest = _joined([GO_ON, *more], last)
    if len(rest) < LIMIT_CHARACTERS:
        return whole, rest
    half = len(more) // 2
    return whole, _joined([GO_ON, *more[:half]], "\nSELECT 0"), _joined([GO_ON, *more[half:]], last)


@lru_cache(maxsize=64)
def together(statements: tuple[str, ...]) -> str:
    """The statements of one write, the taking of its keys among them, as one text for `Statements.execute_together`.

    Those after the first learn from a setting of the transaction when it was, and do nothing if the first found a guard stale.
    """
    first, *rest = statements
    told = first.replace("\nSELECT at, ", "\nSELECT set_config('baton.at', at::text, true)::timestamptz, ")
    return ";\n".join([told, *(text.replace(GO_ON, _GO_ON_TOLD) for text in rest)])


_TOLD = "nullif(current_setting('baton.at', true), '')::timestamptz"
_GO_ON_TOLD = GO_ON.replace("%(at)s::timestamptz AS at)", f"{_TOLD} AS at WHERE {_TOLD} IS NOT NULL)")


def _joined(members: list[str], end: str) -> str:
    return "WITH " + ",\n".join(members) + end


def _guards(mix: Mix) -> list[str]:
    """The root and the leaf; or, for a new instance, its definition and what started it."""
    if mix.leaf in STARTS:
        newest = NEWEST_DEFINITION if mix.leaf == "start_newest" else DEFINITION
        definition = CALLING_START if mix.calls else (newest,)
        starts = STARTS[mix.leaf] if not mix.alone else _alone(mix.leaf)
        return [*definition, *starts, _STARTED_AND_ENDED if mix.ended else _STARTED_IN_TURN if mix.exclusive else _STARTED]
    besides = _ENDING if mix.ended else ", takes_turns = true" if mix.exclusive else ""
    return [*(CALLING_ROOT if mix.calls else (ROOT_IF_REVISION,)), LEAF[mix.leaf], _BUMPED.format(besides)]


def _alone(leaf: str) -> list[str]:
    gathered = GATHERED if leaf == "start_by_message" else GATHERED_IF_FREE
    return [gathered, *(text.replace("definition d", "alone d") for text in STARTS[leaf])]


# Re-checked under the definition's lock, which stands for its start timers and start subscriptions: a deployment that
# takes them away waits.
STARTS = {
    "start": ["cause AS (SELECT id FROM definition)"],
    "start_newest": ["cause AS (SELECT id FROM definition)"],
    "start_by_job": [
        "cause AS (DELETE FROM job l USING definition d WHERE l.id = %(leaf_id)s AND l.status COLLATE \"C\" = 'leased'"
        " AND l.lease_number = %(fence)s RETURNING d.id)"
    ],
    "start_by_message": [START_SUBSCRIPTION],
    "start_by_throw": [
        START_BY_THROW,
        "cause AS (DELETE FROM job l USING receiver WHERE l.id = %(leaf_id)s AND l.status COLLATE \"C\" = 'leased'"
        " AND l.lease_number = %(fence)s RETURNING receiver.id)",
    ],
}
_NEW_INSTANCE = (
    "go AS (INSERT INTO process_instance (id, tenant_id, root_id, definition_id, business_key, started_by, started_at{columns})"
    " SELECT %(instance_id)s, %(tenant_id)s, %(root_id)s, cause.id, %(business_key)s, %(actor)s, c.at{values}"
    " FROM cause, (SELECT baton_clock() AS at) c RETURNING tenant_id, id AS instance_id, root_id, definition_id, started_at AS at)"
)
_STARTED = _NEW_INSTANCE.format(columns="", values="")
_STARTED_IN_TURN = _NEW_INSTANCE.format(columns=", takes_turns", values=", true")
_STARTED_AND_ENDED = _NEW_INSTANCE.format(
    columns=", status, ended_at, ended_by, final_variables", values=", %(ended)s, c.at, %(actor)s, %(final)s::jsonb"
)

_BUMPED = "bumped AS (UPDATE process_instance p SET revision = revision + 1{} FROM go WHERE p.id = %(root_id)s)"
_ENDING = ", status = %(ended)s, mark = NULL, ended_at = go.at, ended_by = %(actor)s, final_variables = %(final)s::jsonb"


def _first_members(mix: Mix) -> list[tuple[object, str]]:
    """What others hang from by foreign key, what must be seen to be done, and the subscriptions, whose keys come last."""
    at = int(mix.several)
    return [
        (mix.calls, _INSTANCES),
        (mix.returns, _RETURNED),
        (mix.scopes, _SCOPES[_form(mix, mix.scopes)]),
        (mix.counters, _COUNTERS),
        (mix.gone_scopes, "unscoped AS (DELETE FROM scope s USING go WHERE s.id = ANY (%(gone_scopes)s))"),
        (mix.tokens, (_TOKENS_WITH_MEMORY if mix.remember else _TOKENS)[_form(mix, mix.tokens)]),
        (mix.moved == 1, _MOVED_ONE),
        (mix.moved == 2, _MOVED_MANY if not mix.remember else _MOVED_WITH_MEMORY),
        (mix.memories, _MEMORIES),
        (mix.gone_tokens, "gone AS (DELETE FROM token t USING go WHERE t.id = ANY (%(gone_tokens)s))"),
        (mix.variables and not mix.several, _variables(mix)),
        (mix.cancelled, _WITHDRAWN),
        (mix.cancelled or mix.leaf == "user_task", _UNLISTED),
        (mix.gone_subscriptions, "unsubscribed AS (DELETE FROM subscription s USING go WHERE s.id = ANY (%(gone_subscriptions)s))"),
        (mix.subscriptions, _SUBSCRIPTIONS[at]),
        (not mix.several, _HISTORY[at]),
    ]


def _other_members(mix: Mix) -> list[tuple[object, str]]:
    at = int(mix.several)
    return [
        (mix.variables and mix.several, _variables(mix)),  # these texts are longer
        (mix.several, _HISTORY[at]),
        (mix.tasks, _TASKS[_form(mix, mix.tasks)]),
        (mix.entries, _ENTRIES),
        (mix.jobs, (_JOBS_IN_TURN if mix.exclusive else _JOBS)[_form(mix, mix.jobs)]),
        (mix.resolved, "resolved AS (DELETE FROM incident i USING go WHERE i.token_id = ANY (%(resolved)s))"),
        (mix.incidents, _INCIDENTS[at]),
        (mix.external_tasks, (_EXTERNAL_TASKS_IN_TURN if mix.exclusive else _EXTERNAL_TASKS)[at]),
        (mix.deliveries, _DELIVERIES[at]),
        (mix.throws, _THROWS),
        (mix.fires, _FIRED),
        (mix.receipt, receipt("go", "go.at")),
        (mix.executions, _EXECUTIONS[at]),
        (mix.moved_executions, _MOVED_EXECUTIONS),
        (mix.handed_over, _HANDED_OVER),
        (mix.gone_executions, _GONE_EXECUTIONS),
        (
            mix.forgets,
            "forgotten AS (DELETE FROM completed_execution x USING go WHERE x.instance_id = ANY (go.root_id || %(forgotten)s::uuid[]))",
        ),
    ]


def _rows(table: str, name: str) -> str:
    """The rows of a document, typed as the table's columns; a column that the document lacks is NULL."""
    return f"FROM go, jsonb_populate_recordset(NULL::{table}, %({name})s) u"


def _both(text: str) -> tuple[str, str]:
    """A member for rows of one instance, that of `go`, and for rows that say which is theirs. `{name}`: a key of these."""
    return text.format_map(_ONE), text.format_map(_SEVERAL)


def _three(text: str, rows: str, alone: str, end: str = ")") -> tuple[str, str, str]:
    """The same, and for a row alone of its kind. `rows`: where the rows of a document come from; `alone`: the kind of row."""
    return *_both(text + rows + end), (text + single_row(alone) + end).format_map(_ONE)


def _form(mix: Mix, number: int) -> int:
    """Which of the three a mix takes that has 1 or more of the rows."""
    return 1 if mix.several else 2 if number == 1 else 0


# Why a new item may not be taken yet: its case is suspended, or somebody paused work like it.
# A delivery of a line waits for those before it, besides (baton_next_in_line).
def _held(name: str, kind: str, topic: str, process: str) -> str:
    paused = is_paused("go.tenant_id", kind, topic, process, "u.element_id")
    in_line = ", CASE WHEN u.line IS NOT NULL THEN 'ordered' END" if name == "held_delivery" else ""
    return f"array_remove(ARRAY[%(held)s, CASE WHEN {paused} THEN 'paused' END{in_line}], NULL)"


_ITEMS = {"held_job": ("u.kind", "u.topic"), "held_external": ("'external_task'", "u.topic"), "held_delivery": ("u.kind", "''")}
_ONE = {
    "case": "go.*",
    "instance": "go.instance_id",
    "process": "%(process_name)s, %(business_key)s",
    "columns": "",
    **{name: _held(name, kind, topic, "%(definition_key)s") for name, (kind, topic) in _ITEMS.items()},
}
_KEY = "(SELECT d.key FROM process_definition d WHERE d.id = u.definition_id)"
_SEVERAL = {
    "case": "go.tenant_id, u.instance_id, go.root_id, u.definition_id, go.at",
    "instance": "u.instance_id",
    "process": "u.process_name, u.business_key",
    "columns": ", instance_id uuid, definition_id uuid",
    **{name: _held(name, kind, topic, _KEY) for name, (kind, topic) in _ITEMS.items()},
}

_INSTANCES = (
    "instances AS (INSERT INTO process_instance (id, tenant_id, root_id, parent_id, parent_token_id, definition_id, business_key,"
    " started_by, started_at, status, ended_at, ended_by, final_variables)"
    " SELECT u.id, go.tenant_id, go.root_id, u.parent_id, u.parent_token_id, u.definition_id, u.business_key, u.started_by, go.at,"
    " u.status, CASE WHEN u.status <> 'running' THEN go.at END, CASE WHEN u.status <> 'running' THEN %(actor)s END, u.final_variables "
    + _rows("process_instance", "instances")
    + ")"
)
_RETURNED = (
    "returned AS (UPDATE process_instance p SET status = u.status, ended_at = go.at, ended_by = %(actor)s,"
    " final_variables = u.final_variables " + _rows("process_instance", "ended_instances") + " WHERE p.id = u.id)"
)

_SCOPES = _three(
    "scopes AS (INSERT INTO scope (id, instance_id, parent_id, token_id, element_id, path, counters)"
    " SELECT u.id, {instance}, u.parent_id, u.token_id, u.element_id, u.path, u.counters ",
    _rows("scope", "scopes"),
    "scope",
)
_COUNTERS = "counted AS (UPDATE scope s SET counters = u.counters " + _rows("scope", "counters") + " WHERE s.id = u.id)"
_TOKENS = _three(
    "tokens AS (INSERT INTO token (id, instance_id, root_id, scope_id, element_id, flow_id, status, arrived_at)"
    " SELECT u.id, {instance}, go.root_id, u.scope_id, u.element_id, u.flow_id, u.status, go.at ",
    _rows("token", "tokens"),
    "token",
)
_MOVED_ONE = (
    "moved AS (UPDATE token t SET element_id = %(to_element)s, flow_id = %(to_flow)s, status = %(to_status)s,"
    " arrived_at = go.at FROM go WHERE t.id = %(moved_token)s)"
)
_MOVED_MANY = (
    "moved AS (UPDATE token t SET element_id = u.element_id, flow_id = u.flow_id, status = u.status, arrived_at = go.at "
    + _rows("token", "moved")
    + " WHERE t.id = u.id)"
)
# What a token remembers is written only where one does: no other process pays for it.
_TOKENS_WITH_MEMORY = [text.replace("arrived_at)", "arrived_at, memory)").replace("go.at FROM", "go.at, u.memory FROM") for text in _TOKENS]
_MOVED_WITH_MEMORY = _MOVED_MANY.replace("arrived_at = go.at", "arrived_at = go.at, memory = u.memory")
_MEMORIES = "remembered AS (UPDATE token t SET memory = u.memory " + _rows("token", "memories") + " WHERE t.id = u.id)"
_SET = "variables AS (INSERT INTO variable (scope_id, name, type, value) SELECT "
_VARIABLES = f"{_SET}(e->>0)::uuid, e->>1, e->>2, e->3 FROM go, jsonb_array_elements(%(variables)s) e"
_VARIABLE = f"{_SET}u.scope_id, u.name, u.type, u.value {single_row('variable')}"
_OR_AGAIN = " ON CONFLICT (scope_id, name) DO UPDATE SET type = excluded.type, value = excluded.value, revision = variable.revision + 1"


def _variables(mix: Mix) -> str:
    return (_VARIABLE if mix.variables == 1 else _VARIABLES) + ("" if mix.fresh else _OR_AGAIN) + ")"


_WITHDRAWN = (
    "withdrawn AS (UPDATE user_task t SET status = 'cancelled', ended_at = go.at, ended_by = %(withdrawn_by)s, token_id = NULL,"
    " version = version + 1 FROM go WHERE t.id = ANY (%(cancelled)s) AND t.status IN ('open', 'claimed') RETURNING t.id)"
)
_UNLISTED = "unlisted AS (DELETE FROM inbox_entry e USING go WHERE e.task_id = ANY (%(unlisted)s))"
_SUBSCRIPTIONS = _both(
    f"subscriptions AS (INSERT INTO subscription (id, {CASE}, created_at, kind, message_name, correlation_key, token_id, element_id)"
    " SELECT u.id, {case}, u.kind, u.message_name, u.correlation_key, u.token_id, u.element_id "
    + _rows("subscription", "subscriptions")
    + ")"
)
# Of one instance: kind, element, actor, item and data by their places, for the rows are many.
_NOTED = f"noted AS (INSERT INTO history ({CASE}, at, kind, element_id, actor, item_id, data) SELECT "
_HISTORY = (
    f"{_NOTED}go.*, e->>0, e->>1, e->>2, (e->>3)::uuid, e->4 FROM go, jsonb_array_elements(%(history)s) e)",
    (f"{_NOTED}{{case}}, u.kind, u.element_id, u.actor, u.item_id, u.data " + _rows("history", "history") + ")").format_map(_SEVERAL),
)
_TASKS = _three(
    f"tasks AS (INSERT INTO user_task (id, {CASE}, created_at, token_id, element_id, name, sort_key, process_name, business_key, about,"
    " status, assignee, assigned_at, assigned_by, candidate_users, candidate_groups, priority, due_at, follow_up_at)"
    " SELECT u.id, {case}, u.token_id, u.element_id, u.name, u.sort_key, {process}, u.about,"
    " CASE WHEN u.assignee IS NULL THEN 'open' ELSE 'claimed' END, u.assignee, CASE WHEN u.assignee IS NOT NULL THEN go.at END,"
    " CASE WHEN u.assignee IS NOT NULL THEN 'engine' END, u.candidate_users, u.candidate_groups, u.priority, u.due_at, u.follow_up_at ",
    _rows("user_task", "tasks"),
    "task",
)
_ENTRIES = (
    "entries AS (INSERT INTO inbox_entry (task_id, tenant_id, created_at, kind, name)"
    " SELECT (e->>0)::uuid, go.tenant_id, go.at, e->>1, e->>2 FROM go, jsonb_array_elements(%(entries)s) e)"
)
_JOBS = _three(
    f"jobs AS (INSERT INTO job (id, {CASE}, created_at, kind, topic, token_id, element_id, due_at, available_at, priority, level,"
    " held, lease_seconds, max_attempts, retry, lock_first, payload)"
    " SELECT u.id, {case}, u.kind, u.topic, u.token_id, u.element_id, d.due, greatest(d.due, go.at), u.priority, u.priority,"
    " {held_job}, u.lease_seconds, u.max_attempts, u.retry, u.lock_first, u.payload ",
    "FROM go, jsonb_to_recordset(%(jobs)s) AS u (id uuid, kind text, topic text, token_id uuid, element_id text,"
    " due_at timestamptz, due_in_seconds float8, priority smallint, max_attempts int, retry text, lease_seconds int,"
    " lock_first boolean, payload jsonb{columns})",
    "job",
    ", LATERAL (SELECT coalesce(u.due_at, go.at + make_interval(secs => coalesce(u.due_in_seconds, 0))) AS due) d)",
)


def _in_turn(text: str) -> str:
    """The same with exclusive work among the new items: it is written held, until baton_take_turn lets go of one."""
    return (
        text.replace(", payload)", ", payload, exclusive)", 1)
        .replace("u.payload FROM", "u.payload, u.exclusive FROM", 1)
        .replace("payload jsonb", "payload jsonb, exclusive boolean", 1)
        .replace("ARRAY[%(held)s,", "ARRAY[%(held)s, CASE WHEN u.exclusive THEN 'exclusive' END,", 1)
    )


_JOBS_IN_TURN = tuple(map(_in_turn, _JOBS[:2]))  # such work is never a row alone
# A token that fails again keeps its one incident, with the new reason.
_INCIDENTS = _both(
    f"incidents AS (INSERT INTO incident (id, {CASE}, created_at, kind, message, token_id, element_id)"
    " SELECT u.id, {case}, u.kind, u.message, u.token_id, u.element_id "
    + _rows("incident", "incidents")
    + " ON CONFLICT (token_id) DO UPDATE SET kind = excluded.kind, message = excluded.message, created_at = excluded.created_at)"
)
_EXTERNAL_TASKS = _both(
    f"external_tasks AS (INSERT INTO external_task (id, {CASE}, created_at, topic, token_id, element_id, due_at, available_at,"
    " priority, level, held, max_attempts, retry, lock_first, payload)"
    " SELECT u.id, {case}, u.topic, u.token_id, u.element_id, go.at, go.at, u.priority, u.priority,"
    " {held_external}, u.max_attempts, u.retry, u.lock_first, u.payload " + _rows("external_task", "external_tasks") + ")"
)
_EXTERNAL_TASKS_IN_TURN = tuple(map(_in_turn, _EXTERNAL_TASKS))
# A line of no destination is one of its origin. The destination's retry policy is for what has none of its own.
_DELIVERIES = _both(
    f"deliveries AS (INSERT INTO delivery (id, {CASE}, created_at, kind, destination, element_id, due_at, available_at, held,"
    " max_attempts, retry, request, address, route, line)"
    " SELECT u.id, {case}, u.kind, u.destination, u.element_id, go.at, go.at,"
    " {held_delivery}, coalesce(u.max_attempts, w.max_attempts, 8), CASE WHEN u.max_attempts IS NULL THEN w.retry ELSE u.retry END,"
    " u.request, u.address, coalesce(w.id::text, ''),"
    f" CASE WHEN w.id IS NULL THEN {ORIGIN} || ' ' || u.line ELSE u.line END " + _rows("delivery", "deliveries") + f"{DESTINATION_OF})"
)
# It hangs off nothing: it outlives the case that threw it, and the definition.
_THROWS = (
    "throws AS (INSERT INTO job (id, tenant_id, root_id, created_at, kind, topic, element_id, due_at, available_at, held, max_attempts,"
    " payload) SELECT u.id, go.tenant_id, go.root_id, go.at, 'throw', u.topic, u.element_id, go.at, go.at,"
    " array_remove(ARRAY[%(held)s::text], NULL), 10,"
    " CASE u.topic WHEN 'signal' THEN baton_signal_thrown(go.tenant_id, u.payload) ELSE u.payload END " + _rows("job", "throws") + ")"
)


# Who fires an occurrence that has fired already meets its row (pk_timer_firing), and everything is rolled back.
_FIRED = (
    "fired AS (INSERT INTO timer_firing (tenant_id, schedule_id, due_at, fired_at, instance_id, missed)"
    " SELECT go.tenant_id, %(schedule_id)s, %(was_due_at)s, go.at, go.instance_id, %(missed)s FROM go)"
)
# Completed executions that can be compensated. An execution that others lie within takes them along by cascade when it goes;
# those that a statement moves elsewhere are gone from it by then, since cascades follow at the end of the statement.
_EXECUTIONS = _both(
    "executions AS (INSERT INTO completed_execution (id, instance_id, scope_id, within_id, element_id, number, completed_at, variables)"
    " SELECT u.id, {instance}, u.scope_id, u.within_id, u.element_id, u.number, go.at, u.variables "
    + _rows("completed_execution", "executions")
    + ")"
)
_MOVED_EXECUTIONS = (
    "moved_executions AS (UPDATE completed_execution x SET scope_id = u.scope_id, within_id = u.within_id "
    + _rows("completed_execution", "moved_executions")
    + " WHERE x.id = u.id)"
)
_HANDED_OVER = (
    "handed_over AS (UPDATE completed_execution x SET scope_id = u.scope_id, within_id = u.within_id"
    " FROM go, jsonb_to_recordset(%(handed_over)s::jsonb) AS u (from_scope uuid, scope_id uuid, within_id uuid)"
    " WHERE x.scope_id = u.from_scope)"
)
_GONE_EXECUTIONS = (
    "gone_executions AS (DELETE FROM completed_execution x USING go"
    " WHERE x.id = ANY (%(gone_executions)s) OR x.scope_id = ANY (%(forgotten_scopes)s))"
)
