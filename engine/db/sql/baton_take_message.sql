-- The end of a delivery: the keys of the subscriptions that it opened, then the stored message, waited for (with SKIP
-- LOCKED a message that comes back by rollback would strand both sides). False: it is gone; roll back and look again.
-- A start subscription outlives its message: while another one waits, the next delivery job is written (`next_job`).
CREATE OR REPLACE FUNCTION baton_take_message(of_message uuid, opened uuid[], opened_jobs uuid[], start_subscription uuid, next_job uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF cardinality(opened) > 0 THEN
    PERFORM baton_lock_subscription_keys(opened);
  END IF;
  PERFORM 1 FROM message m WHERE m.id = of_message AND m.expires_at > baton_now() FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM message m WHERE m.id = of_message;
  IF cardinality(opened) > 0 THEN
    PERFORM baton_open_subscriptions(opened, opened_jobs);  -- looks only now: not at the message that we took
  END IF;
  IF start_subscription IS NOT NULL THEN
    -- No key is needed: while the subscription is there, a publisher starts an instance and stores nothing.
    INSERT INTO job (id, tenant_id, kind, definition_id, subscription_id, element_id, due_at, available_at, lock_first)
    SELECT next_job, s.tenant_id, 'message', s.definition_id, s.id, s.element_id, c.at, c.at, true
    FROM subscription s CROSS JOIN (SELECT baton_clock() AS at) c
    WHERE s.id = start_subscription
      AND EXISTS (SELECT FROM message m WHERE m.tenant_id = s.tenant_id AND m.name = s.message_name AND m.expires_at > baton_now());
  END IF;
  RETURN true;
END $$;
