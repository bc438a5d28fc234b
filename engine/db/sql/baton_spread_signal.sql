-- One bounded step of a thrown signal, by the job that the throw left: a delivery job for each start event, and for each
-- subscription that was open when it was thrown, `most` of them in one transaction; of a large payload, fewer. How far it
-- came stands in the job itself, so what dies between two steps goes on there: nobody twice, nobody missed.
-- Locks the job, compares the lease, and only then reads. Its rows hang off no token: a foreign key would wait for who
-- deletes one, in no order. Who has gone meanwhile is found out by the delivery; so is who is suspended, under the root's lock: written
-- held from here, it would stay so if a resumption passed by before this has committed.
-- Returns {"rows": how many, "ended": whether all have theirs}; NULL: the lease was lost, and nothing changed.
-- `new_ids`: as many keys as `most`.
CREATE OR REPLACE FUNCTION baton_spread_signal(of_job uuid, leased_under bigint, most integer, new_ids uuid[]) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  thrown job%ROWTYPE;
  told jsonb;
  room integer;
  started integer;
  begun integer;
  reached integer;
  last_at timestamptz;
  last_id uuid;
BEGIN
  SELECT j.* INTO thrown FROM job j
  WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  told := jsonb_build_object('name', thrown.payload->'name', 'variables', thrown.payload->'variables', 'throw_id', of_job,
    'thrown_by', thrown.payload->'instance_id');
  room := greatest(1, least(most, 4000000 / greatest(1, octet_length(told::text))));
  started := coalesce((thrown.payload->>'started')::integer, 0);

  INSERT INTO job (id, tenant_id, kind, root_id, definition_id, element_id, due_at, available_at, payload)
  SELECT new_ids[w.n], thrown.tenant_id, 'signal', NULL, w.definition_id, w.element_id, c.at, c.at, told
  FROM (
    SELECT row_number() OVER (ORDER BY o.place) AS n, (o.start->>'definition_id')::uuid AS definition_id, o.start->>'element_id' AS element_id
    FROM jsonb_array_elements(thrown.payload->'starts') WITH ORDINALITY AS o (start, place)
    WHERE o.place > started ORDER BY o.place LIMIT room) w
  JOIN process_definition d ON d.id = w.definition_id
  CROSS JOIN (SELECT baton_clock() AS at) c;
  begun := least(room, jsonb_array_length(thrown.payload->'starts') - started);
  room := room - begun;

  WITH waiting AS MATERIALIZED (
    SELECT s.id, s.instance_id, s.root_id, s.definition_id, s.element_id, s.created_at,
      row_number() OVER (ORDER BY s.created_at, s.id) + begun AS n
    FROM subscription s
    WHERE s.tenant_id = thrown.tenant_id AND s.message_name = thrown.payload->>'name' AND s.correlation_key = ''
      AND s.kind = 'signal'
      AND (s.created_at, s.id) > (coalesce((thrown.payload->>'after_at')::timestamptz, '-infinity'),
        coalesce((thrown.payload->>'after_id')::uuid, '00000000-0000-0000-0000-000000000000'))
      AND NOT coalesce(thrown.payload->'served', '[]') ? s.instance_id::text
      -- Open when it was thrown. A number that this server has not given yet is of another one: the row was restored.
      AND (s.xid IS NULL OR pg_visible_in_snapshot(s.xid, (thrown.payload->>'snapshot')::pg_snapshot)
        OR s.xid >= pg_snapshot_xmax(pg_current_snapshot()))
    ORDER BY s.created_at, s.id LIMIT room
  ), made AS (
    INSERT INTO job (id, tenant_id, kind, instance_id, root_id, definition_id, subscription_id, element_id, due_at, available_at,
      lock_first, payload)
    SELECT new_ids[w.n], thrown.tenant_id, 'signal', w.instance_id, w.root_id, w.definition_id, w.id, w.element_id, c.at, c.at, true, told
    FROM waiting w JOIN process_instance r ON r.id = w.root_id AND r.mark IS DISTINCT FROM 'cancelling' -- its last step may be behind us
    CROSS JOIN (SELECT baton_clock() AS at) c
  )
  SELECT count(*), (array_agg(w.created_at ORDER BY w.n DESC))[1], (array_agg(w.id ORDER BY w.n DESC))[1]
  INTO reached, last_at, last_id FROM waiting w;

  IF reached < room THEN
    WITH done AS (DELETE FROM job j WHERE j.id = of_job RETURNING j.*)
    INSERT INTO history (at, tenant_id, root_id, kind, element_id, actor, item_id, data)
    SELECT baton_clock(), tenant_id, root_id, 'job_completed', element_id, 'engine', id,
      jsonb_build_object('lease_number', lease_number, 'attempt', attempts, 'owner', lease_owner, 'leased_at', leased_at,
        'signal', payload->'name', 'reached', coalesce((payload->>'reached')::integer, 0) + begun + reached)
    FROM done;
    RETURN json_build_object('rows', begun + reached, 'ended', true);
  END IF;
  UPDATE job j SET payload = j.payload || jsonb_build_object('started', started + begun,
    'reached', coalesce((j.payload->>'reached')::integer, 0) + begun + reached)
    || CASE WHEN reached = 0 THEN '{}'::jsonb ELSE jsonb_build_object('after_at', last_at, 'after_id', last_id) END
  WHERE j.id = of_job;
  RETURN json_build_object('rows', begun + reached, 'ended', false);
END $$;
