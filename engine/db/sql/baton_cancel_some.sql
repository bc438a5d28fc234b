-- One bounded step of finishing a case that is marked `cancelling`, by the job that does it. At most `most` rows go: first
-- what hangs from tokens, then tokens and scopes from the inside out (a token goes when it owns no scope, a scope when it
-- is empty, so that no cascade is unbounded); not the job that frees what outlives a suspended case, nor a message thrown to it. A step that finds none of these left ends instances: those that have no token
-- left, and so call none that runs; their going frees the tokens that called them. The root is the last.
-- Locks the root and then the job, compares the lease, and only then reads and deletes.
-- Returns {"rows": how many, "ended": whether the root has ended}; NULL: the lease was lost, and nothing changed.
CREATE OR REPLACE FUNCTION baton_cancel_some(of_job uuid, leased_under bigint, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  of_root uuid;
  told jsonb;  -- who cancels, and why
  instances uuid[];
  room integer := most;
  n integer;
  root_ended boolean := false;
BEGIN
  -- The root of a job never changes: read unlocked.
  SELECT j.root_id INTO of_root FROM job j WHERE j.id = of_job;
  PERFORM 1 FROM process_instance r WHERE r.id = of_root FOR NO KEY UPDATE;
  SELECT j.payload INTO told FROM job j
  WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  instances := ARRAY(SELECT i.id FROM process_instance i WHERE i.root_id = of_root AND i.status = 'running');

  DELETE FROM job j WHERE j.id = ANY (ARRAY(
    SELECT w.id FROM job w WHERE w.instance_id = ANY (instances) AND w.kind NOT IN ('hold', 'throw') AND w.id <> of_job LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  DELETE FROM external_task e WHERE e.id = ANY (ARRAY(
    SELECT w.id FROM external_task w WHERE w.instance_id = ANY (instances) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  DELETE FROM subscription s WHERE s.id = ANY (ARRAY(
    SELECT w.id FROM subscription w WHERE w.instance_id = ANY (instances) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  WITH over AS (
    UPDATE user_task t SET status = 'cancelled', ended_at = baton_clock(), ended_by = told->>'by', token_id = NULL,
      version = t.version + 1
    WHERE t.id = ANY (ARRAY(
      SELECT w.id FROM user_task w WHERE w.instance_id = ANY (instances) AND w.status IN ('open', 'claimed') LIMIT room))
    RETURNING t.*
  ), unlisted AS (
    DELETE FROM inbox_entry e USING over WHERE e.task_id = over.id
  ), noted AS (
    INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, element_id, actor, item_id)
    SELECT ended_at, tenant_id, root_id, instance_id, definition_id, 'task_cancelled', element_id, 'engine', id FROM over
  )
  SELECT count(*) INTO n FROM over;
  room := room - n;

  DELETE FROM token t WHERE t.id = ANY (ARRAY(
    SELECT w.id FROM token w
    WHERE w.instance_id = ANY (instances) AND NOT EXISTS (SELECT FROM scope s WHERE s.token_id = w.id) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  -- From the inside out, too: one goes when none lies within it.
  DELETE FROM completed_execution x WHERE x.id = ANY (ARRAY(
    SELECT w.id FROM completed_execution w
    WHERE w.instance_id = ANY (instances) AND NOT EXISTS (SELECT FROM completed_execution i WHERE i.within_id = w.id) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  -- Those of the process scopes are kept in the rows of the instances, below.
  WITH inner_ones AS MATERIALIZED (
    SELECT w.scope_id, w.name FROM scope s JOIN variable w ON w.scope_id = s.id
    WHERE s.instance_id = ANY (instances) AND s.parent_id IS NOT NULL LIMIT room
  )
  DELETE FROM variable v USING inner_ones w WHERE v.scope_id = w.scope_id AND v.name = w.name;
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  DELETE FROM scope s WHERE s.id = ANY (ARRAY(
    SELECT w.id FROM scope w
    WHERE w.instance_id = ANY (instances) AND w.parent_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM token t WHERE t.scope_id = w.id) AND NOT EXISTS (SELECT FROM scope c WHERE c.parent_id = w.id)
    LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  IF room < most THEN
    RETURN json_build_object('rows', most - room, 'ended', false);
  END IF;

  WITH chosen AS MATERIALIZED (
    SELECT i.id FROM process_instance i
    WHERE i.id = ANY (instances) AND NOT EXISTS (SELECT FROM token t WHERE t.instance_id = i.id)
    ORDER BY i.id = of_root, i.id LIMIT most
  ), ended AS (
    UPDATE process_instance i SET status = 'cancelled', mark = NULL, revision = i.revision + 1, ended_at = baton_clock(),
      ended_by = told->>'by', final_variables = (
        SELECT coalesce(jsonb_object_agg(v.name, jsonb_build_object('type', v.type, 'value', v.value)), '{}')
        FROM scope s JOIN variable v ON v.scope_id = s.id WHERE s.instance_id = i.id)
    FROM chosen WHERE i.id = chosen.id RETURNING i.*
  ), unscoped AS (
    DELETE FROM scope s USING ended WHERE s.instance_id = ended.id
  ), noted AS (
    INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, actor, data)
    SELECT ended_at, tenant_id, root_id, id, definition_id, 'instance_cancelled', ended_by,
      jsonb_build_object('reason', told->>'reason')
    FROM ended
  )
  SELECT count(*), bool_or(id = of_root) INTO n, root_ended FROM ended;

  IF root_ended THEN
    PERFORM baton_end_job(of_job);
  END IF;
  RETURN json_build_object('rows', n, 'ended', root_ended);
END $$;
