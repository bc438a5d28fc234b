-- What a command must know of one leaf and its instance, as one JSON document; NULL when there is no such leaf.
-- STABLE on purpose and without locks: every statement in here reads from the snapshot of the statement that calls it.
-- `leaf_kind`: user_task, job, external_task, subscription, token, or instance (then `leaf_id` is the instance).
-- `whole` false: the scope chain of the leaf's token, on through the tokens that called its instance, and what joins need;
-- true: all of the case. `others`: the other instances that this reaches into; `homes`: which scopes are theirs, by id.
-- `memories`, `quiet_memories`: what tokens remember (conditional events), by id; NULL where none does.
-- Two statements, not ten: each costs some 25 microseconds of the server's time, and this is every command's first one.
-- `lean`: a value of more than 8 kB, as stored, stays where it is; null and a third element, true, stand for it.
CREATE OR REPLACE FUNCTION baton_read_case(leaf_kind text, leaf_id uuid, whole boolean, lean boolean DEFAULT false) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE
  leaf json;
  at_token uuid;
  at_instance uuid;
  at_scope uuid;
  is_event boolean := false;  -- what triggers may interrupt the token's own task, or stand beside another leaf
  chain uuid[];
  at_root uuid;
  reached uuid[];
  token json;
  remembered jsonb;
  siblings boolean;
  tasks json;
BEGIN
  IF leaf_kind = 'user_task' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', l.status, 'fence', l.assignee, 'element_id', l.element_id,
        'token_id', l.token_id, 'name', l.name, 'tenant_id', l.tenant_id, 'assignee', l.assignee,
        'assigned_at', l.assigned_at, 'ended_at', l.ended_at, 'ended_by', l.ended_by,
        'candidate_users', l.candidate_users, 'candidate_groups', l.candidate_groups),
        s.id, s.path, json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status), t.memory
      INTO at_token, at_instance, leaf, at_scope, chain, token, remembered
      FROM user_task l LEFT JOIN token t ON t.id = l.token_id LEFT JOIN scope s ON s.id = t.scope_id WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'job' THEN
    SELECT l.token_id, l.instance_id, l.kind <> 'service', json_build_object('status', l.status, 'fence', l.lease_number,
        'element_id', l.element_id, 'token_id', l.token_id, 'kind', l.kind, 'tenant_id', l.tenant_id, 'payload', l.payload,
        'due_at', l.due_at, 'attempts', l.attempts),
        s.id, s.path, json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status), t.memory
      INTO at_token, at_instance, is_event, leaf, at_scope, chain, token, remembered
      FROM job l LEFT JOIN token t ON t.id = l.token_id LEFT JOIN scope s ON s.id = t.scope_id WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'external_task' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', l.status, 'fence', l.lease_number, 'element_id', l.element_id,
        'token_id', l.token_id, 'tenant_id', l.tenant_id, 'topic', l.topic, 'payload', l.payload, 'attempts', l.attempts,
        'max_attempts', l.max_attempts, 'lease_owner', l.lease_owner, 'lease_expires_at', l.lease_expires_at),
        s.id, s.path, json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status), t.memory
      INTO at_token, at_instance, leaf, at_scope, chain, token, remembered
      FROM external_task l LEFT JOIN token t ON t.id = l.token_id LEFT JOIN scope s ON s.id = t.scope_id WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'subscription' THEN
    SELECT l.token_id, l.instance_id, true, json_build_object('status', 'open', 'element_id', l.element_id, 'token_id', l.token_id,
        'tenant_id', l.tenant_id, 'kind', l.kind, 'message_name', l.message_name, 'correlation_key', l.correlation_key,
        'definition_id', l.definition_id),
        s.id, s.path, json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status), t.memory
      INTO at_token, at_instance, is_event, leaf, at_scope, chain, token, remembered
      FROM subscription l LEFT JOIN token t ON t.id = l.token_id LEFT JOIN scope s ON s.id = t.scope_id WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'token' THEN
    SELECT t.id, t.instance_id, json_build_object('status', t.status, 'element_id', t.element_id, 'token_id', t.id),
        s.id, s.path, json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status), t.memory
      INTO at_token, at_instance, leaf, at_scope, chain, token, remembered
      FROM token t JOIN scope s ON s.id = t.scope_id WHERE t.id = leaf_id;
  ELSIF leaf_kind = 'instance' THEN
    SELECT l.id, json_build_object('status', l.status, 'tenant_id', l.tenant_id)
      INTO at_instance, leaf FROM process_instance l WHERE l.id = leaf_id;
  ELSE
    RAISE EXCEPTION 'baton_read_case: expected a kind of leaf, found %', leaf_kind;
  END IF;
  IF leaf IS NULL THEN
    RETURN NULL;
  END IF;
  IF leaf->>'kind' = 'continue' THEN  -- it concerns the scope that its token owns, if it owns one
    SELECT coalesce(s.id, at_scope), coalesce(s.path, chain) INTO at_scope, chain
      FROM (VALUES (at_token)) AS one (id) LEFT JOIN scope s ON s.token_id = one.id;
  END IF;

  IF whole THEN
    SELECT i.root_id INTO at_root FROM process_instance i WHERE i.id = at_instance;
    reached := ARRAY(SELECT c.id FROM process_instance c WHERE c.root_id = at_root AND c.parent_id IS NOT NULL AND c.status = 'running')
      || at_root;
    RETURN (
      SELECT json_build_object('leaf', leaf, 'now', baton_now(), 'instance',
        json_build_object('id', i.id, 'tenant_id', i.tenant_id, 'root_id', i.root_id, 'definition_id', i.definition_id,
          'business_key', i.business_key, 'started_by', i.started_by, 'status', i.status, 'ended_at', i.ended_at,
          'ended_by', i.ended_by, 'revision', r.revision, 'root_status', r.status, 'mark', r.mark, 'takes_turns', r.takes_turns),
        'scopes', (SELECT json_agg(json_build_array(s.id, s.parent_id, s.element_id, s.token_id, (
            SELECT json_object_agg(v.name, json_build_array(v.type, v.value)) FROM variable v WHERE v.scope_id = s.id), s.counters))
          FROM scope s WHERE s.instance_id = ANY (reached)),
        'tokens', every.tokens, 'memories', every.memories,
        'others', (SELECT json_agg(json_build_array(o.id, o.definition_id, o.business_key, o.started_by))
          FROM process_instance o WHERE o.id = ANY (reached) AND o.id <> at_instance),
        'homes', (SELECT json_object_agg(s.id, s.instance_id) FROM scope s
          WHERE s.instance_id = ANY (reached) AND s.instance_id <> at_instance),
        'tasks', (SELECT json_agg(json_build_array(u.id, u.token_id, u.element_id))
          FROM user_task u WHERE u.instance_id = ANY (reached) AND u.status IN ('open', 'claimed')),
        'signals', (SELECT json_agg(json_build_array(s.id, s.token_id, s.element_id, s.message_name) ORDER BY s.created_at, s.id)
          FROM subscription s WHERE s.instance_id = ANY (reached) AND s.kind = 'signal' AND s.id <> leaf_id),
        'executions', (SELECT json_agg(json_build_array(x.id, x.scope_id, x.within_id, x.element_id, x.number, x.variables))
          FROM completed_execution x WHERE x.instance_id = ANY (reached)))
      FROM process_instance i JOIN process_instance r ON r.id = i.root_id
        CROSS JOIN LATERAL (SELECT json_agg(json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status)) AS tokens,
            json_object_agg(t.id, t.memory) FILTER (WHERE t.memory IS NOT NULL) AS memories
          FROM token t WHERE t.instance_id = ANY (reached)) every
      WHERE i.id = at_instance);
  END IF;

  IF is_event THEN
    siblings := EXISTS (SELECT FROM job j WHERE j.token_id = at_token AND j.id <> leaf_id)
      OR EXISTS (SELECT FROM subscription b WHERE b.token_id = at_token AND b.id <> leaf_id);
    SELECT json_agg(json_build_array(u.id, u.token_id, u.element_id)) INTO tasks FROM user_task u WHERE u.token_id = at_token;
  END IF;

  IF cardinality(chain) = 1 THEN  -- the usual case: straight in the process scope, which no token owns
    RETURN (
      SELECT json_build_object('leaf', leaf, 'now', baton_now(), 'instance',
        json_build_object('id', i.id, 'tenant_id', i.tenant_id, 'root_id', i.root_id, 'definition_id', i.definition_id,
          'business_key', i.business_key, 'started_by', i.started_by, 'status', i.status, 'ended_at', i.ended_at,
          'ended_by', i.ended_by, 'revision', r.revision, 'root_status', r.status, 'mark', r.mark, 'takes_turns', r.takes_turns),
        'scopes', json_build_array(json_build_array(at_scope, NULL, NULL, NULL, (
          SELECT json_object_agg(v.name, CASE WHEN lean AND pg_column_size(v.value) > 8192 THEN json_build_array(v.type, NULL, true)
            ELSE json_build_array(v.type, v.value) END) FROM variable v WHERE v.scope_id = at_scope), '{}'::json)),
        'tokens', json_build_array(token), 'memories', CASE WHEN remembered IS NOT NULL THEN json_build_object(at_token, remembered) END,
        'joining', quiet.tokens, 'quiet_memories', quiet.memories,
        'crowded', CASE WHEN EXISTS (
          SELECT FROM token o WHERE o.scope_id = at_scope AND o.id <> at_token AND o.status NOT IN ('joining', 'listening')) THEN chain END,
        'other_leaves', siblings, 'tasks', tasks)
      FROM process_instance i JOIN process_instance r ON r.id = i.root_id
        CROSS JOIN LATERAL (SELECT json_agg(json_build_array(j.id, j.scope_id, j.element_id, j.flow_id, j.status)) AS tokens,
            json_object_agg(j.id, j.memory) FILTER (WHERE j.memory IS NOT NULL) AS memories
          FROM token j WHERE j.scope_id = at_scope AND j.status IN ('joining', 'listening')) quiet
      WHERE i.id = at_instance);
  END IF;

  RETURN (
    SELECT json_build_object('leaf', leaf, 'now', baton_now(), 'instance',
      CASE WHEN i.id IS NOT NULL THEN
        json_build_object('id', i.id, 'tenant_id', i.tenant_id, 'root_id', i.root_id, 'definition_id', i.definition_id,
          'business_key', i.business_key, 'started_by', i.started_by, 'status', i.status, 'ended_at', i.ended_at,
          'ended_by', i.ended_by, 'revision', r.revision, 'root_status', r.status, 'mark', r.mark, 'takes_turns', r.takes_turns) END,
      'scopes', (SELECT json_agg(json_build_array(c.id, c.parent_id, c.element_id, c.token_id, (
          SELECT json_object_agg(v.name, CASE WHEN lean AND pg_column_size(v.value) > 8192 THEN json_build_array(v.type, NULL, true)
            ELSE json_build_array(v.type, v.value) END) FROM variable v WHERE v.scope_id = c.id), c.counters))
        FROM scope c WHERE c.id = ANY (chain)),
      'others', CASE WHEN i.parent_id IS NOT NULL THEN (
        SELECT json_agg(json_build_array(o.id, o.definition_id, o.business_key, o.started_by)) FROM process_instance o
        WHERE o.id = ANY (ARRAY(SELECT c.instance_id FROM scope c WHERE c.id = ANY (chain))) AND o.id <> i.id) END,
      'homes', CASE WHEN i.parent_id IS NOT NULL THEN (
        SELECT json_object_agg(c.id, c.instance_id) FROM scope c WHERE c.id = ANY (chain) AND c.instance_id <> i.id) END,
      -- The token itself and the owners of the scopes that it lies in; what waits at joins there, and what listens there.
      'tokens', own.tokens, 'memories', own.memories, 'joining', quiet.tokens, 'quiet_memories', quiet.memories,
      'crowded', ARRAY(SELECT c FROM unnest(chain) c WHERE EXISTS (
          SELECT FROM token o WHERE o.scope_id = c AND o.id <> at_token AND o.status NOT IN ('joining', 'listening')
            AND NOT EXISTS (SELECT FROM scope q WHERE q.token_id = o.id AND q.id = ANY (chain)))),
      'other_leaves', siblings, 'tasks', tasks,
      -- What is undone next in the scopes of the chain that are compensating: the last of each, with all within it.
      'executions', CASE WHEN EXISTS (SELECT FROM scope c WHERE c.id = ANY (chain) AND c.counters ? 'compensating') THEN (
        WITH RECURSIVE next AS (
          SELECT x.* FROM scope c CROSS JOIN LATERAL (
            SELECT e.* FROM completed_execution e WHERE e.scope_id = c.id ORDER BY e.number DESC LIMIT 1) x
          WHERE c.id = ANY (chain) AND c.counters ? 'compensating'
          UNION ALL SELECT w.* FROM next JOIN completed_execution w ON w.within_id = next.id)
        SELECT json_agg(json_build_array(n.id, n.scope_id, n.within_id, n.element_id, n.number, n.variables)) FROM next n) END)
    FROM (SELECT json_agg(json_build_array(o.id, o.scope_id, o.element_id, o.flow_id, o.status)) AS tokens,
          json_object_agg(o.id, o.memory) FILTER (WHERE o.memory IS NOT NULL) AS memories
        FROM token o WHERE o.id = at_token OR o.id = ANY (ARRAY(SELECT c.token_id FROM scope c WHERE c.id = ANY (chain)))) own
    CROSS JOIN LATERAL (SELECT json_agg(json_build_array(j.id, j.scope_id, j.element_id, j.flow_id, j.status)) AS tokens,
          json_object_agg(j.id, j.memory) FILTER (WHERE j.memory IS NOT NULL) AS memories
        FROM token j WHERE j.scope_id = ANY (chain) AND j.status IN ('joining', 'listening')) quiet
    LEFT JOIN process_instance i ON i.id = at_instance
    LEFT JOIN process_instance r ON r.id = i.root_id);
END $$;
