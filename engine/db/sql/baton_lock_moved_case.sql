-- Lock first, for a command that read the case before: `seen` is the revision that it saw. If nothing has moved, as
-- baton_lock_case, narrow and lean. Else the command may need more than it did, and has no call left to read it by: all of the
-- case if that is little, else the narrow read with its large variables if these are. VOLATILE, as baton_lock_case.
-- Little: 500 scopes, tokens and completed executions together; 4,000,000 bytes of variables, as stored. Counting stops there.
CREATE OR REPLACE FUNCTION baton_lock_moved_case(leaf_kind text, leaf_id uuid, seen bigint) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  narrow json;
  reached uuid[];
  rows_of bigint;
  bytes_of bigint;
BEGIN
  narrow := baton_lock_case(leaf_kind, leaf_id, false, true);
  IF coalesce((narrow->'instance'->>'revision')::bigint, seen) = seen THEN
    RETURN json_build_object('case', narrow, 'whole', false);
  END IF;
  reached := ARRAY(SELECT c.id FROM process_instance c WHERE c.root_id = (narrow->'instance'->>'root_id')::uuid
    AND c.parent_id IS NOT NULL AND c.status = 'running' LIMIT 501) || (narrow->'instance'->>'root_id')::uuid;
  SELECT count(*) INTO rows_of FROM (
    (SELECT FROM scope s WHERE s.instance_id = ANY (reached) LIMIT 501) UNION ALL
    (SELECT FROM token t WHERE t.instance_id = ANY (reached) LIMIT 501) UNION ALL
    (SELECT FROM completed_execution x WHERE x.instance_id = ANY (reached) LIMIT 501)) each;
  IF rows_of <= 500 THEN
    SELECT coalesce(sum(pg_column_size(v.value)), 0) INTO bytes_of
      FROM scope s JOIN variable v ON v.scope_id = s.id WHERE s.instance_id = ANY (reached);
    SELECT bytes_of + coalesce(sum(pg_column_size(x.variables)), 0) INTO bytes_of
      FROM completed_execution x WHERE x.instance_id = ANY (reached);
    IF bytes_of <= 4000000 THEN
      RETURN json_build_object('case', baton_read_case(leaf_kind, leaf_id, true), 'whole', true);
    END IF;
  END IF;
  SELECT sum(pg_column_size(v.value)) INTO bytes_of FROM json_array_elements(narrow->'scopes') c
    JOIN variable v ON v.scope_id = (c->>0)::uuid;
  IF bytes_of <= 4000000 THEN
    RETURN json_build_object('case', baton_read_case(leaf_kind, leaf_id, false), 'whole', false);
  END IF;
  RETURN json_build_object('case', narrow, 'whole', false);
END $$;
