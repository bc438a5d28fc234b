-- Two deployments of one form meet here, after those of one process and one decision have: the keys are locked, sorted, and only then
-- the newest versions are read.
CREATE OR REPLACE FUNCTION baton_lock_forms(tenant text, keys text[]) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM baton_lock_keys(ARRAY(SELECT baton_key_number(tenant, chr(29) || 'form', k) FROM unnest(keys) k), '{}');
  RETURN (
    SELECT coalesce(json_agg(json_build_object('key', f.key, 'id', f.id, 'version', f.version,
      'content_hash', encode(f.content_hash, 'hex'))), '[]')
    FROM (SELECT DISTINCT ON (p.key) p.* FROM form_definition p WHERE p.tenant_id = tenant AND p.key = ANY (keys)
      ORDER BY p.key, p.version DESC) f);
END $$;
