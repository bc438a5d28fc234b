-- The job of bounded steps has taken its last: it goes, and an event says under which lease. The caller has it locked, the lease compared.
CREATE OR REPLACE FUNCTION baton_end_job(of_job uuid) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  WITH done AS (DELETE FROM job j WHERE j.id = of_job RETURNING j.*)
  INSERT INTO history (at, tenant_id, root_id, instance_id, definition_id, kind, actor, item_id, data)
  SELECT baton_clock(), tenant_id, root_id, instance_id, definition_id, 'job_completed', 'engine', id,
    jsonb_build_object('lease_number', lease_number, 'attempt', attempts, 'owner', lease_owner, 'leased_at', leased_at)
  FROM done;
END $$;
