-- Two deployments of one decision meet here, after those of one process have: the keys are locked, sorted, and only then the newest
-- versions are read.
CREATE OR REPLACE FUNCTION baton_lock_decisions(tenant text, keys text[]) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM baton_lock_keys(ARRAY(SELECT baton_key_number(tenant, chr(29) || 'decision', k) FROM unnest(keys) k), '{}');
  RETURN (
    SELECT coalesce(json_agg(json_build_object('key', d.key, 'id', d.id, 'version', d.version,
      'content_hash', encode(d.content_hash, 'hex'))), '[]')
    FROM (SELECT DISTINCT ON (p.key) p.* FROM decision_definition p WHERE p.tenant_id = tenant AND p.key = ANY (keys)
      ORDER BY p.key, p.version DESC) d);
END $$;
