-- One bounded step of a pause that stops no whole branch of acquisition: of a process, of an element, or of a tenant of its own.
-- At most `most` free items get the reason `paused`; how far it came stands in the job (kind `hold`), so that what dies goes on
-- there: with a process or an element, from which case it goes on, once those before hold no free item any more. What it misses, because somebody has it locked or is writing it, the worker's read hands back (R5).
-- Locks the job and compares the lease; items only where nobody has them.
-- Returns {"rows": how many, "ended": whether that was the last step}; NULL: the lease was lost, and nothing changed.
CREATE OR REPLACE FUNCTION baton_hold_paused(of_job uuid, leased_under bigint, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  mine job%ROWTYPE;
  told jsonb;
  versions uuid[];
  at_element text;
  cases uuid[];
  after jsonb;
  reached jsonb;
  n integer := 0;
  more integer;
BEGIN
  SELECT j.* INTO mine FROM job j WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  told := mine.payload;
  after := coalesce(told->'after', '["", -1, "-infinity", "00000000-0000-0000-0000-000000000000"]');
  IF EXISTS (SELECT FROM pause p WHERE p.tenant_id = mine.tenant_id AND p.kind = told->>'kind' AND p.topic = told->>'topic') THEN
    IF told->>'kind' IN ('definition', 'element') THEN
      at_element := CASE told->>'kind' WHEN 'element' THEN split_part(told->>'topic', '/', 2) END;
      versions := ARRAY(SELECT d.id FROM process_definition d
        WHERE d.tenant_id = mine.tenant_id AND d.key = split_part(told->>'topic', '/', 1));
      WITH next AS MATERIALIZED (
        SELECT i.id, i.definition_id, i.started_at FROM process_instance i
        WHERE i.definition_id = ANY (versions) AND i.status = 'running'
          AND (i.definition_id, i.started_at, i.id)
            > (coalesce(nullif(after->>0, ''), '00000000-0000-0000-0000-000000000000')::uuid, (after->>2)::timestamptz, (after->>3)::uuid)
        ORDER BY i.definition_id, i.started_at, i.id LIMIT most
      )
      SELECT array_agg(id), (array_agg(jsonb_build_array(definition_id, 0, started_at, id) ORDER BY definition_id DESC, started_at DESC, id DESC))[1]
      INTO cases, reached FROM next;

      WITH free AS MATERIALIZED (
        SELECT j.id FROM job j WHERE (j.instance_id = ANY (cases) OR j.instance_id IS NULL AND j.definition_id = ANY (versions))
          AND j.status = 'available' AND NOT 'paused' = ANY (j.held) AND j.kind NOT IN ('hold', 'cancel')
          AND (at_element IS NULL OR j.element_id = at_element)
        LIMIT most FOR UPDATE SKIP LOCKED
      )
      UPDATE job j SET held = j.held || '{paused}'::text[] FROM free WHERE j.id = free.id;
      GET DIAGNOSTICS n = ROW_COUNT;
      WITH free AS MATERIALIZED (
        SELECT e.id FROM external_task e WHERE e.instance_id = ANY (cases) AND e.status = 'available' AND NOT 'paused' = ANY (e.held)
          AND (at_element IS NULL OR e.element_id = at_element)
        LIMIT most - n FOR UPDATE SKIP LOCKED
      )
      UPDATE external_task e SET held = e.held || '{paused}'::text[] FROM free WHERE e.id = free.id;
      GET DIAGNOSTICS more = ROW_COUNT;
      n := n + more;
      WITH free AS MATERIALIZED (
        SELECT d.id FROM delivery d WHERE d.instance_id = ANY (cases) AND d.status = 'available' AND NOT 'paused' = ANY (d.held)
          AND (at_element IS NULL OR d.element_id = at_element)
        LIMIT most - n FOR UPDATE SKIP LOCKED
      )
      UPDATE delivery d SET held = d.held || '{paused}'::text[] FROM free WHERE d.id = free.id;
      GET DIAGNOSTICS more = ROW_COUNT;
      n := n + more;
      IF n = most THEN
        reached := after;  -- there may be more at these
      END IF;
    ELSIF told->>'kind' IN ('http', 'mail') THEN
      WITH free AS MATERIALIZED (
        SELECT d.id, d.level, d.available_at FROM delivery d
        WHERE d.kind = told->>'kind' AND d.status = 'available' AND d.held = '{}' AND d.tenant_id = mine.tenant_id
          AND (d.level, d.available_at, d.id) > ((after->>1)::integer, (after->>2)::timestamptz, (after->>3)::uuid)
        ORDER BY d.level, d.available_at, d.id LIMIT most FOR UPDATE SKIP LOCKED
      ), held AS (
        UPDATE delivery d SET held = d.held || '{paused}'::text[] FROM free WHERE d.id = free.id
      )
      SELECT count(*), (array_agg(jsonb_build_array('', level, available_at, id) ORDER BY level DESC, available_at DESC, id DESC))[1]
      INTO n, reached FROM free;
    ELSE
      WITH free AS MATERIALIZED (
        SELECT j.id, j.topic, j.level, j.available_at FROM job j
        WHERE j.kind = told->>'kind' AND told->>'topic' IN (j.topic, '*') AND j.status = 'available' AND j.held = '{}'
          AND j.tenant_id = mine.tenant_id
          AND (j.topic, j.level, j.available_at, j.id) > (after->>0, (after->>1)::integer, (after->>2)::timestamptz, (after->>3)::uuid)
        ORDER BY j.topic, j.level, j.available_at, j.id LIMIT most FOR UPDATE SKIP LOCKED
      ), held AS (
        UPDATE job j SET held = j.held || '{paused}'::text[] FROM free WHERE j.id = free.id
      )
      SELECT count(*), (array_agg(jsonb_build_array(topic, level, available_at, id)
        ORDER BY topic DESC, level DESC, available_at DESC, id DESC))[1]
      INTO n, reached FROM free;
    END IF;
  END IF;

  IF reached IS NULL THEN
    PERFORM baton_end_job(of_job);
    RETURN json_build_object('rows', n, 'ended', true);
  END IF;
  UPDATE job j SET payload = j.payload || jsonb_build_object('after', reached) WHERE j.id = of_job;
  RETURN json_build_object('rows', n, 'ended', false);
END $$;
