-- Publisher meets subscriber: subscriptions that this transaction has just inserted take their keys, then look whether
-- a stored message waits, and write one delivery job for each that has one, due at once. Returns how many.
-- `job_ids`: as many new keys as subscriptions.
CREATE OR REPLACE FUNCTION baton_open_subscriptions(subscription_ids uuid[], job_ids uuid[]) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  written integer;
BEGIN
  PERFORM baton_lock_subscription_keys(subscription_ids);

  -- A statement of its own: it sees what a publisher stored while we waited for the keys.
  INSERT INTO job (id, tenant_id, kind, instance_id, root_id, definition_id, token_id, subscription_id, element_id,
                   due_at, available_at, held, lock_first)
  SELECT o.job_id, s.tenant_id, 'message', s.instance_id, s.root_id, s.definition_id, s.token_id, s.id, s.element_id,
         c.at, c.at, CASE WHEN r.mark IS NULL THEN '{}' ELSE '{suspended}' END::text[], true
  FROM unnest(subscription_ids, job_ids) AS o (subscription_id, job_id)
  JOIN subscription s ON s.id = o.subscription_id
  LEFT JOIN process_instance r ON r.id = s.root_id
  CROSS JOIN (SELECT baton_clock() AS at) c
  WHERE s.kind IN ('catch', 'start') AND EXISTS (SELECT FROM message m
                WHERE m.tenant_id = s.tenant_id AND m.name = s.message_name
                  AND (s.kind = 'start' OR m.correlation_key = s.correlation_key) AND m.expires_at > baton_now());
  GET DIAGNOSTICS written = ROW_COUNT;
  RETURN written;
END $$;
