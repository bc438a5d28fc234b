-- Two deployments of one process key meet here, before either takes anything else: the keys are locked, sorted, and only
-- then the newest versions are read (a name with a control character is no message name, so the numbers are apart): the
-- newest that is not deleted, or if all are, the last one; `version` is the last number that was given.
CREATE OR REPLACE FUNCTION baton_lock_deployment(tenant text, keys text[]) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM baton_lock_keys(ARRAY(SELECT baton_key_number(tenant, chr(29) || 'deployment', k) FROM unnest(keys) k), '{}');
  RETURN json_build_object('now', baton_now(), 'newest', (
    SELECT coalesce(json_agg(json_build_object('key', d.key, 'id', d.id, 'version', (
        SELECT max(n.version) FROM process_definition n WHERE n.tenant_id = tenant AND n.key = d.key),
      'live_version', d.version, 'status', d.status, 'content_hash', encode(d.content_hash, 'hex'))), '[]')
    FROM (SELECT DISTINCT ON (p.key) p.* FROM process_definition p WHERE p.tenant_id = tenant AND p.key = ANY (keys)
      ORDER BY p.key, p.status = 'deleting', p.version DESC) d));
END $$;
