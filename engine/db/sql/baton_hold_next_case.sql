-- One step of suspending a version with its cases, or of letting those go on that went along: the next case, in one
-- transaction of its own, and how far it came, in the job itself (kind `hold`), so that what dies between two steps goes on there.
-- The version was marked, and that was committed, before the job existed: whoever started meanwhile was committed too, or is refused.
-- A case that somebody suspended for itself stays so; one that an earlier suspension of the version left, because its resumption
-- has not come to it yet, is this one's from now on. One whose work is more than `most` items gets a job of its own for the rest.
-- Locks the root, the version (a resumption waits, or has ended this suspension), the job, compares the lease, then changes.
-- Returns {"rows": items, "ended": whether there was none left}; NULL: the lease was lost, and nothing changed.
CREATE OR REPLACE FUNCTION baton_hold_next_case(of_job uuid, leased_under bigint, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  mine job%ROWTYPE;
  next record;
  stands boolean;
  told jsonb;
  moved boolean := false;
  n integer := 0;
BEGIN
  -- Only the holder of the lease moves the job on: read unlocked, the lease is compared below.
  SELECT j.* INTO mine FROM job j WHERE j.id = of_job;
  told := mine.payload;
  IF told->>'what' = 'hold_cases' THEN
    SELECT i.id, i.started_at INTO next FROM process_instance i
    WHERE i.definition_id = mine.definition_id AND i.root_id = i.id AND i.status = 'running'
      AND (i.started_at, i.id) > (coalesce((told->>'after_at')::timestamptz, '-infinity'),
        coalesce((told->>'after_id')::uuid, '00000000-0000-0000-0000-000000000000'))
    ORDER BY i.started_at, i.id LIMIT 1;
  ELSE
    SELECT s.object_id AS id, NULL::timestamptz AS started_at INTO next FROM suspension s
    WHERE s.cause_id = (told->>'suspension')::uuid
      AND s.object_id > coalesce((told->>'after_id')::uuid, '00000000-0000-0000-0000-000000000000')
    ORDER BY s.object_id LIMIT 1;
  END IF;

  PERFORM 1 FROM process_instance r WHERE r.id = next.id FOR NO KEY UPDATE;
  PERFORM 1 FROM process_definition d WHERE d.id = mine.definition_id FOR KEY SHARE;
  PERFORM 1 FROM job j WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;

  IF told->>'what' = 'hold_cases' THEN
    stands := next.id IS NOT NULL
      AND EXISTS (SELECT FROM suspension s WHERE s.object_id = mine.definition_id AND s.id = (told->>'suspension')::uuid);
    IF stands AND EXISTS (SELECT FROM process_instance r WHERE r.id = next.id AND r.status = 'running'
        AND (r.mark IS NULL OR r.mark IN ('suspending', 'suspended')
          AND EXISTS (SELECT FROM suspension s WHERE s.object_id = r.id AND s.cause_id <> (told->>'suspension')::uuid))) THEN
      moved := true;
      n := baton_hold_some(next.id, most);
      UPDATE process_instance r SET mark = CASE n WHEN most THEN 'suspending' ELSE 'suspended' END, revision = r.revision + 1
      WHERE r.id = next.id;
      INSERT INTO suspension AS s (object_id, id, tenant_id, kind, suspended_by, reason, cause_id)
      SELECT next.id, gen_random_uuid(), c.tenant_id, 'instance', c.suspended_by, c.reason, c.id
      FROM suspension c WHERE c.object_id = mine.definition_id
      ON CONFLICT ON CONSTRAINT pk_suspension DO UPDATE SET id = excluded.id, suspended_by = excluded.suspended_by,
        suspended_at = excluded.suspended_at, reason = excluded.reason, cause_id = excluded.cause_id;
    END IF;
  ELSE
    stands := next.id IS NOT NULL;
    IF EXISTS (SELECT FROM process_instance r JOIN suspension s ON s.object_id = r.id
        WHERE r.id = next.id AND r.mark IN ('suspending', 'suspended') AND s.cause_id = (told->>'suspension')::uuid) THEN
      moved := true;
      UPDATE process_instance r SET mark = NULL, revision = r.revision + 1 WHERE r.id = next.id;
      n := baton_free_some(next.id, most, (told->>'spread')::float8, false);
    END IF;
    -- Also what was left by a case that has ended.
    DELETE FROM suspension s WHERE s.object_id = next.id AND s.cause_id = (told->>'suspension')::uuid;
  END IF;

  IF NOT stands THEN
    PERFORM baton_end_job(of_job);
    RETURN json_build_object('rows', 0, 'ended', true);
  END IF;
  IF moved THEN
    INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, actor, data)
    SELECT baton_clock(), r.tenant_id, r.id, r.id, r.definition_id,
      CASE told->>'what' WHEN 'hold_cases' THEN 'instance_suspended' ELSE 'instance_resumed' END, told->>'by',
      jsonb_build_object('reason', told->>'reason', 'with', 'definition')
    FROM process_instance r WHERE r.id = next.id;
  END IF;
  IF n = most THEN
    INSERT INTO job (id, tenant_id, kind, instance_id, root_id, definition_id, element_id, due_at, available_at, priority, level,
      max_attempts, payload)
    SELECT gen_random_uuid(), r.tenant_id, 'hold', r.id, r.id, r.definition_id, '', c.at, c.at, 9, 9, 10,
      jsonb_build_object('what', CASE told->>'what' WHEN 'hold_cases' THEN 'hold' ELSE 'free' END, 'spread', coalesce((told->>'spread')::float8, 0))
    FROM process_instance r, (SELECT baton_clock() AS at) c WHERE r.id = next.id;
  END IF;
  UPDATE job j SET payload = j.payload || jsonb_build_object('after_at', next.started_at, 'after_id', next.id) WHERE j.id = of_job;
  RETURN json_build_object('rows', n, 'ended', false);
END $$;
