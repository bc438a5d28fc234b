-- The work of a suspended case is held: at most `most` of its items get the reason `suspended`, those of called instances too,
-- those that are leased or rest as failed too, so that none is free when it comes back. A message that another case threw and
-- that waits here (baton_free_some lets it go) has it already. The jobs that hold and cancel go on.
-- The caller has locked the root and set its mark: what is written from then on is written held. Returns how many.
CREATE OR REPLACE FUNCTION baton_hold_some(of_root uuid, most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  instances uuid[];
  room integer := most;
  n integer;
BEGIN
  instances := ARRAY(SELECT i.id FROM process_instance i WHERE i.root_id = of_root);

  UPDATE job j SET held = j.held || '{suspended}'::text[] WHERE j.id = ANY (ARRAY(
    SELECT w.id FROM job w
    WHERE w.instance_id = ANY (instances) AND NOT 'suspended' = ANY (w.held) AND w.kind NOT IN ('hold', 'cancel') LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  UPDATE external_task e SET held = e.held || '{suspended}'::text[] WHERE e.id = ANY (ARRAY(
    SELECT w.id FROM external_task w WHERE w.instance_id = ANY (instances) AND NOT 'suspended' = ANY (w.held) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  UPDATE delivery d SET held = d.held || '{suspended}'::text[] WHERE d.id = ANY (ARRAY(
    SELECT w.id FROM delivery w
    WHERE w.instance_id = ANY (instances) AND w.ended_at IS NULL AND NOT 'suspended' = ANY (w.held) LIMIT room));
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN most - room + n;
END $$;
