-- A job of kind `message` delivers a stored message to a subscription. Locks the root (or, for a start subscription, its
-- definition), then the job and the subscription, and only then reads: the case, the subscription, the oldest message.
-- NULL: there is no such job. The message is looked at here and taken at the end, by baton_take_message.
CREATE OR REPLACE FUNCTION baton_lock_delivery(of_job uuid, whole boolean) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  job_root uuid;
  job_definition uuid;
  of_subscription uuid;
  found_case json;
  found_subscription json;
  found_message json;
BEGIN
  -- None of these ever changes: read unlocked.
  SELECT j.root_id, j.definition_id, j.subscription_id INTO job_root, job_definition, of_subscription FROM job j WHERE j.id = of_job;
  IF job_root IS NOT NULL THEN
    PERFORM 1 FROM process_instance r WHERE r.id = job_root FOR NO KEY UPDATE;
  ELSE
    PERFORM 1 FROM process_definition d WHERE d.id = job_definition FOR KEY SHARE;
  END IF;
  PERFORM 1 FROM job j WHERE j.id = of_job FOR UPDATE;
  PERFORM 1 FROM subscription s WHERE s.id = of_subscription FOR UPDATE;

  found_case := baton_read_case('job', of_job, whole);
  SELECT json_build_object('id', s.id, 'kind', s.kind, 'element_id', s.element_id, 'token_id', s.token_id,
      'definition_id', s.definition_id, 'definition_status', d.status, 'definition_version', d.version)
    INTO found_subscription
    FROM subscription s JOIN process_definition d ON d.id = s.definition_id WHERE s.id = of_subscription;
  SELECT json_build_object('id', m.id, 'variables', m.variables, 'correlation_key', m.correlation_key)
    INTO found_message
    FROM subscription s
    JOIN message m ON m.tenant_id = s.tenant_id AND m.name = s.message_name
      AND (s.kind = 'start' OR m.correlation_key = s.correlation_key)
    WHERE s.id = of_subscription AND m.expires_at > baton_now()
    ORDER BY m.published_at, m.id LIMIT 1;
  IF found_case IS NULL THEN
    RETURN NULL;
  END IF;
  RETURN json_build_object('case', found_case, 'subscription', found_subscription, 'message', found_message);
END $$;
