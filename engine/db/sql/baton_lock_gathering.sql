-- Whether nobody waits for a message that would start an instance behind a parallel event-based gateway. Who starts one for
-- the same key waits here for the other, and then sees what that one waits for: all messages of a key are one instance's.
-- (A name with a control character is no message name, so the numbers are apart.)
CREATE OR REPLACE FUNCTION baton_lock_gathering(tenant text, gateway text, awaited text, with_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(baton_key_number(tenant, chr(29) || 'gathering' || chr(29) || gateway, with_key));
  RETURN NOT EXISTS (
    SELECT FROM subscription s JOIN process_instance r ON r.id = s.root_id
    WHERE s.tenant_id = tenant AND s.message_name = awaited AND s.correlation_key = with_key AND s.kind = 'catch'
      AND r.mark IS DISTINCT FROM 'cancelling');
END $$;
