-- What a command must know of one leaf and its instance, as one JSON document; NULL when there is no such leaf.
-- STABLE on purpose and without locks: every statement in here reads from the snapshot of the statement that calls it.
-- `leaf_kind`: user_task, job, external_task, subscription, token, or instance (then `leaf_id` is the instance).
-- `whole` false: the scope chain of the leaf's token and what joins need; true: all of the instance.
CREATE OR REPLACE FUNCTION baton_read_case(leaf_kind text, leaf_id uuid, whole boolean) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE
  leaf json;
  at_token uuid;
  at_instance uuid;
  instance json;
  chain uuid[];
  own uuid[];
  scopes json;
  tokens json;
  crowded uuid[];
  siblings boolean := false;
  tasks json;
BEGIN
  IF leaf_kind = 'user_task' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', l.status, 'fence', l.assignee, 'element_id', l.element_id,
        'token_id', l.token_id, 'name', l.name, 'tenant_id', l.tenant_id, 'assignee', l.assignee,
        'assigned_at', l.assigned_at, 'ended_at', l.ended_at, 'ended_by', l.ended_by,
        'candidate_users', l.candidate_users, 'candidate_groups', l.candidate_groups)
      INTO at_token, at_instance, leaf FROM user_task l WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'job' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', l.status, 'fence', l.lease_number, 'element_id', l.element_id,
        'token_id', l.token_id, 'kind', l.kind, 'tenant_id', l.tenant_id, 'topic', l.topic, 'payload', l.payload,
        'due_at', l.due_at, 'attempts', l.attempts, 'max_attempts', l.max_attempts,
        'definition_id', l.definition_id, 'subscription_id', l.subscription_id, 'lock_first', l.lock_first)
      INTO at_token, at_instance, leaf FROM job l WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'external_task' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', l.status, 'fence', l.lease_number, 'element_id', l.element_id,
        'token_id', l.token_id, 'tenant_id', l.tenant_id, 'topic', l.topic, 'payload', l.payload, 'attempts', l.attempts,
        'max_attempts', l.max_attempts, 'lease_owner', l.lease_owner, 'lease_expires_at', l.lease_expires_at)
      INTO at_token, at_instance, leaf FROM external_task l WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'subscription' THEN
    SELECT l.token_id, l.instance_id, json_build_object('status', 'open', 'element_id', l.element_id, 'token_id', l.token_id,
        'tenant_id', l.tenant_id, 'kind', l.kind, 'message_name', l.message_name, 'correlation_key', l.correlation_key,
        'definition_id', l.definition_id)
      INTO at_token, at_instance, leaf FROM subscription l WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'token' THEN
    SELECT l.id, l.instance_id, json_build_object('status', l.status, 'element_id', l.element_id, 'token_id', l.id)
      INTO at_token, at_instance, leaf FROM token l WHERE l.id = leaf_id;
  ELSIF leaf_kind = 'instance' THEN
    SELECT l.id, json_build_object('status', l.status, 'tenant_id', l.tenant_id)
      INTO at_instance, leaf FROM process_instance l WHERE l.id = leaf_id;
  ELSE
    RAISE EXCEPTION 'baton_read_case: expected a kind of leaf, found %', leaf_kind;
  END IF;
  IF leaf IS NULL THEN
    RETURN NULL;
  END IF;

  SELECT json_build_object('id', i.id, 'tenant_id', i.tenant_id, 'root_id', i.root_id, 'definition_id', i.definition_id,
      'business_key', i.business_key, 'started_by', i.started_by, 'status', i.status, 'ended_at', i.ended_at,
      'ended_by', i.ended_by, 'revision', r.revision, 'root_status', r.status, 'mark', r.mark)
    INTO instance FROM process_instance i JOIN process_instance r ON r.id = i.root_id WHERE i.id = at_instance;

  IF whole THEN
    SELECT array_agg(s.id) INTO chain FROM scope s WHERE s.instance_id = at_instance;
  ELSE
    SELECT s.path INTO chain FROM token t JOIN scope s ON s.id = t.scope_id WHERE t.id = at_token;
  END IF;

  IF chain IS NOT NULL THEN
    SELECT array_agg(s.token_id) FILTER (WHERE s.token_id IS NOT NULL) || at_token,
        json_agg(json_build_array(s.id, s.parent_id, s.element_id, s.token_id,
          (SELECT json_object_agg(v.name, json_build_array(v.type, v.value)) FROM variable v WHERE v.scope_id = s.id)))
      INTO own, scopes FROM scope s WHERE s.id = ANY (chain);
  END IF;

  IF whole THEN
    SELECT json_agg(json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status))
      INTO tokens FROM token t WHERE t.instance_id = at_instance;
    SELECT json_agg(json_build_array(u.id, u.token_id, u.element_id))
      INTO tasks FROM user_task u WHERE u.instance_id = at_instance AND u.status IN ('open', 'claimed');
  ELSIF chain IS NOT NULL THEN
    SELECT json_agg(json_build_array(t.id, t.scope_id, t.element_id, t.flow_id, t.status))
      INTO tokens
      FROM (SELECT * FROM token o WHERE o.id = ANY (own)
            UNION SELECT * FROM token j WHERE j.scope_id = ANY (chain) AND j.status = 'joining') t;
    crowded := ARRAY(SELECT c FROM unnest(chain) c
                     WHERE EXISTS (SELECT FROM token t
                                   WHERE t.scope_id = c AND t.id <> ALL (own) AND t.status <> 'joining'));
  END IF;

  IF at_token IS NOT NULL THEN
    IF NOT whole THEN
      SELECT json_agg(json_build_array(u.id, u.token_id, u.element_id)) INTO tasks FROM user_task u WHERE u.token_id = at_token;
    END IF;
    siblings := EXISTS (SELECT FROM job j WHERE j.token_id = at_token AND j.id <> leaf_id)
      OR EXISTS (SELECT FROM subscription s WHERE s.token_id = at_token AND s.id <> leaf_id)
      OR EXISTS (SELECT FROM user_task u WHERE u.token_id = at_token AND u.id <> leaf_id)
      OR EXISTS (SELECT FROM external_task e WHERE e.token_id = at_token AND e.id <> leaf_id)
      OR EXISTS (SELECT FROM scope s WHERE s.token_id = at_token);
  END IF;

  RETURN json_build_object('leaf', leaf, 'instance', instance, 'scopes', scopes, 'tokens', tokens, 'crowded', crowded,
    'other_leaves', siblings, 'tasks', tasks, 'now', baton_now());
END $$;
