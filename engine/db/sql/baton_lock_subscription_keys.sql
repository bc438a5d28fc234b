-- Take the keys of subscriptions that this transaction has just inserted: a catch subscription shares the key with others
-- of its kind, a start subscription takes the whole message name (engine/db/locks.py, level 5).
CREATE OR REPLACE FUNCTION baton_lock_subscription_keys(subscription_ids uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM baton_lock_keys(
    array_agg(baton_key_number(s.tenant_id, s.message_name, NULL)) FILTER (WHERE s.kind = 'start'),
    array_agg(baton_key_number(s.tenant_id, s.message_name, s.correlation_key)) FILTER (WHERE s.kind = 'catch'))
  FROM subscription s WHERE s.id = ANY (subscription_ids);
END $$;
