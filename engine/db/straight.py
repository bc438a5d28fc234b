"""The reads of the usual case as one statement each: a leaf whose token lies straight in the process scope.

`baton_read_case` (engine/db/sql) answers any question in two statements, each made ready anew. Where no token owns the scope of the leaf's
token, which is most of what people and workers do, these answer with the same document, and call the function for the
rest. tests/db/test_straight_reads.py compares the two.
"""

from __future__ import annotations

_LEAVES = {
    "user_task": (
        "'status', l.status, 'fence', l.assignee, 'element_id', l.element_id, 'token_id', l.token_id, 'name', l.name,"
        " 'tenant_id', l.tenant_id, 'assignee', l.assignee, 'assigned_at', l.assigned_at, 'ended_at', l.ended_at,"
        " 'ended_by', l.ended_by, 'candidate_users', l.candidate_users, 'candidate_groups', l.candidate_groups"
    ),
    "job": (
        "'status', l.status, 'fence', l.lease_number, 'element_id', l.element_id, 'token_id', l.token_id, 'kind', l.kind,"
        " 'tenant_id', l.tenant_id, 'payload', l.payload, 'due_at', l.due_at, 'attempts', l.attempts"
    ),
    "external_task": (
        "'status', l.status, 'fence', l.lease_number, 'element_id', l.element_id, 'token_id', l.token_id,"
        " 'tenant_id', l.tenant_id, 'topic', l.topic, 'payload', l.payload, 'attempts', l.attempts,"
        " 'max_attempts', l.max_attempts, 'lease_owner', l.lease_owner, 'lease_expires_at', l.lease_expires_at"
    ),
}
# The leaf with its token, and the scope of that only if nothing else has to be read.
_FROM = (
    " FROM {kind} l LEFT JOIN token t ON t.id = l.token_id"
    " LEFT JOIN scope s ON s.id = t.scope_id AND cardinality(s.path) = 1{only}"
    " LEFT JOIN process_instance i ON i.id = l.instance_id LEFT JOIN process_instance r ON r.id = i.root_id"
    " CROSS JOIN LATERAL (SELECT json_agg(json_build_array(o.id, o.scope_id, o.element_id, o.flow_id, o.status)) AS tokens,"
    " json_object_agg(o.id, o.memory) FILTER (WHERE o.memory IS NOT NULL) AS memories"
    " FROM token o WHERE o.scope_id = s.id AND o.status IN ('joining', 'listening')) quiet"
)
# What triggers an event may stand beside another leaf, or withdraw its token's task: the function looks for both.
_ONLY = {"job": " AND l.kind = 'service'"}
_INSTANCE = (
    "json_build_object('id', i.id, 'tenant_id', i.tenant_id, 'root_id', i.root_id, 'definition_id', i.definition_id,"
    " 'business_key', i.business_key, 'started_by', i.started_by, 'status', i.status, 'ended_at', i.ended_at,"
    " 'ended_by', i.ended_by, 'revision', r.revision, 'root_status', r.status, 'mark', r.mark, 'takes_turns', r.takes_turns)"
)
_VARIABLES = (
    "(SELECT json_object_agg(v.name, CASE WHEN {lean} AND pg_column_size(v.value) > 8192 THEN json_build_array(v.type, NULL, true)"
    " ELSE json_build_array(v.type, v.value) END) FROM variable v WHERE v.scope_id = s.id)"
)
_CROWDED = "EXISTS (SELECT FROM token o WHERE o.scope_id = s.id AND o.id <> t.id AND o.status NOT IN ('joining', 'listening'))"


def document(kind: str, lean: str) -> str:
    """The expression that gives the document of baton_read_case (`whole` false) for leaf `l`, beside `leaf_and_case(kind)`."""
    return (
        f"CASE WHEN s.id IS NULL THEN baton_read_case('{kind}', l.id, false, {lean}) ELSE json_build_object("
        f"'leaf', json_build_object({_LEAVES[kind]}), 'now', baton_now(), 'instance', {_INSTANCE},"
        f" 'scopes', json_build_array(json_build_array(s.id, NULL, NULL, NULL, {_VARIABLES.format(lean=lean)}, '{{}}'::json)),"
        " 'tokens', json_build_array(json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status)),"
        " 'memories', CASE WHEN t.memory IS NOT NULL THEN json_build_object(t.id, t.memory) END,"
        " 'joining', quiet.tokens, 'quiet_memories', quiet.memories,"
        f" 'crowded', CASE WHEN {_CROWDED} THEN s.path END,"
        " 'other_leaves', NULL::boolean, 'tasks', NULL) END"
    )


def leaf_and_case(kind: str) -> str:
    """The tables that `document` speaks of."""
    return _FROM.format(kind=kind, only=_ONLY.get(kind, ""))


READ = {kind: f"SELECT {document(kind, '%(lean)s')}{leaf_and_case(kind)} WHERE l.id = %(leaf_id)s" for kind in _LEAVES}
"""By kind of leaf."""
