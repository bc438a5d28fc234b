-- A version is to be deleted. The advisory lock of its key comes first, so that no deployment and no other deletion decides
-- meanwhile which version is the newest; then the version, FOR UPDATE: a start under way has finished by then, and one that
-- begins now waits, and finds it deleted. Only then: how many instances run (at most `most` are counted), its start timers,
-- and `before`, the version that becomes the newest, if this one is.
-- NULL: there is no such version.
CREATE OR REPLACE FUNCTION baton_lock_deletion(of_definition uuid, tenant text, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  process_key text;
BEGIN
  -- The key of a version never changes: read unlocked.
  SELECT d.key INTO process_key FROM process_definition d WHERE d.id = of_definition AND d.tenant_id = tenant;
  IF process_key IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM baton_lock_keys(ARRAY[baton_key_number(tenant, chr(29) || 'deployment', process_key)], '{}');
  PERFORM 1 FROM process_definition d WHERE d.id = of_definition FOR UPDATE;

  RETURN (
    SELECT json_build_object('now', baton_now(), 'key', d.key, 'version', d.version, 'status', d.status,
      'running', (SELECT count(*) FROM (
        SELECT FROM process_instance i WHERE i.definition_id = of_definition AND i.status = 'running' LIMIT most) r),
      'timers', (SELECT coalesce(json_agg(json_build_object('definition_id', j.definition_id, 'element_id', j.element_id,
          'due_at', j.due_at, 'payload', j.payload)), '[]')
        FROM job j WHERE j.definition_id = of_definition AND j.kind = 'start_timer'),
      'before', (SELECT json_build_object('id', b.id, 'version', b.version, 'file', b.resource_name)
        FROM process_definition b
        WHERE b.tenant_id = tenant AND b.key = d.key AND b.id <> d.id AND b.status <> 'deleting'
          AND NOT EXISTS (SELECT FROM process_definition n
            WHERE n.tenant_id = tenant AND n.key = d.key AND n.version > d.version AND n.status <> 'deleting')
        ORDER BY b.version DESC LIMIT 1))
    FROM process_definition d WHERE d.id = of_definition);
END $$;
