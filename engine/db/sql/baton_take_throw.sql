-- A job publishes a message that a case threw. The job ends, if the lease is still the one, and the publisher's keys are taken:
-- exclusively those of the message, shared those of its name at large. The look that follows is a statement of the caller's
-- own; who finds somebody that waits rolls back, and the job is there again.
-- Returns the job; NULL: the lease was lost.
CREATE OR REPLACE FUNCTION baton_take_throw(of_job uuid, leased_under bigint) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  thrown job%ROWTYPE;
BEGIN
  DELETE FROM job j WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under RETURNING j.* INTO thrown;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  PERFORM baton_lock_keys(
    ARRAY[baton_key_number(thrown.tenant_id, thrown.payload->>'name', thrown.payload->>'key')],
    ARRAY[baton_key_number(thrown.tenant_id, thrown.payload->>'name', NULL)]);
  RETURN json_build_object('tenant_id', thrown.tenant_id, 'root_id', thrown.root_id, 'element_id', thrown.element_id,
    'attempts', thrown.attempts, 'lease_owner', thrown.lease_owner, 'leased_at', thrown.leased_at, 'payload', thrown.payload);
END $$;
