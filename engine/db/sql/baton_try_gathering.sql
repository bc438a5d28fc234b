-- As baton_lock_gathering, for who holds a leaf and must not wait: false also where somebody is at it.
CREATE OR REPLACE FUNCTION baton_try_gathering(tenant text, gateway text, awaited text, with_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(baton_key_number(tenant, chr(29) || 'gathering' || chr(29) || gateway, with_key)) THEN
    RETURN false;
  END IF;
  RETURN NOT EXISTS (
    SELECT FROM subscription s JOIN process_instance r ON r.id = s.root_id
    WHERE s.tenant_id = tenant AND s.message_name = awaited AND s.correlation_key = with_key AND s.kind = 'catch'
      AND r.mark IS DISTINCT FROM 'cancelling');
END $$;
