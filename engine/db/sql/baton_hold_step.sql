-- One bounded step of a large suspension or resumption, by the job that goes on with it (kind `hold`): at most `most` items.
-- Its payload says `hold` or `free`. What the case has become meanwhile decides: a suspension that was taken back, or came
-- again, ends this job, because another one is at it. A step that finds less than `most` is the last; a suspension is then complete.
-- Locks the root and then the job, compares the lease, and only then changes the items.
-- Returns {"rows": how many, "ended": whether that was the last step}; NULL: the lease was lost, and nothing changed.
-- The suspension of a version goes on case by case (baton_hold_next_case); what a pause holds belongs to no one case.
CREATE OR REPLACE FUNCTION baton_hold_step(of_job uuid, leased_under bigint, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  of_root uuid;
  told jsonb;
  root_status text;
  root_mark text;
  n integer := 0;
BEGIN
  -- The root of a job, and what it is for, never changes: read unlocked.
  SELECT j.root_id, j.payload INTO of_root, told FROM job j WHERE j.id = of_job;
  IF told->>'what' IN ('hold_cases', 'free_cases') THEN
    RETURN baton_hold_next_case(of_job, leased_under, most);
  ELSIF told->>'what' = 'hold_paused' THEN
    RETURN baton_hold_paused(of_job, leased_under, most);
  ELSIF told->>'what' = 'free_paused' THEN
    RETURN baton_free_paused(of_job, leased_under, most);
  END IF;
  PERFORM 1 FROM process_instance r WHERE r.id = of_root FOR NO KEY UPDATE;
  SELECT j.payload INTO told FROM job j
  WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT r.status, r.mark INTO root_status, root_mark FROM process_instance r WHERE r.id = of_root;

  IF told->>'what' = 'hold' THEN
    -- What has ended has no mark.
    IF root_mark = 'suspending' THEN
      n := baton_hold_some(of_root, most);
      IF n < most THEN
        UPDATE process_instance r SET mark = 'suspended', revision = r.revision + 1 WHERE r.id = of_root;
      END IF;
    END IF;
  ELSIF root_mark IS NULL OR root_mark = 'cancelling' THEN
    n := baton_free_some(of_root, most, (told->>'spread')::float8, root_status <> 'running' OR root_mark IS NOT NULL);
  END IF;
  IF n = most THEN
    RETURN json_build_object('rows', n, 'ended', false);
  END IF;

  PERFORM baton_end_job(of_job);
  RETURN json_build_object('rows', n, 'ended', true);
END $$;
