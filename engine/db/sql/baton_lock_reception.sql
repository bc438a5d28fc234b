-- A job brings a signal, or a message that a case threw, to who waits: `of_subscription`, or else the one that the job names,
-- or else the start event whose definition the job names. Locks the root (or, for a start event, its definition), then the
-- job and the subscription, and only then reads. NULL: there is no such job.
CREATE OR REPLACE FUNCTION baton_lock_reception(of_job uuid, of_subscription uuid, whole boolean) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  receiver uuid := of_subscription;
  at_definition uuid;
  at_root uuid;
BEGIN
  -- None of these ever changes: read unlocked.
  IF receiver IS NULL THEN
    SELECT j.subscription_id, j.definition_id INTO receiver, at_definition FROM job j WHERE j.id = of_job;
  END IF;
  IF receiver IS NOT NULL THEN
    SELECT s.root_id, s.definition_id INTO at_root, at_definition FROM subscription s WHERE s.id = receiver;
  END IF;
  IF at_root IS NOT NULL THEN
    PERFORM 1 FROM process_instance r WHERE r.id = at_root FOR NO KEY UPDATE;
  ELSE
    PERFORM 1 FROM process_definition d WHERE d.id = at_definition FOR KEY SHARE;
  END IF;
  PERFORM 1 FROM job j WHERE j.id = of_job FOR UPDATE;
  PERFORM 1 FROM subscription s WHERE s.id = receiver FOR UPDATE;

  RETURN (
    SELECT json_build_object('now', baton_now(),
      'job', json_build_object('status', j.status, 'lease_number', j.lease_number, 'attempts', j.attempts, 'tenant_id', j.tenant_id,
        'element_id', j.element_id, 'instance_id', j.instance_id, 'payload', j.payload),
      'case', CASE WHEN at_root IS NOT NULL THEN baton_read_case('subscription', receiver, whole) END,
      'subscription', (SELECT s.id FROM subscription s WHERE s.id = receiver),
      'element_id', (SELECT s.element_id FROM subscription s WHERE s.id = receiver),
      'definition_id', at_definition, 'definition_status', (SELECT d.status FROM process_definition d WHERE d.id = at_definition))
    FROM job j WHERE j.id = of_job);
END $$;
