-- The work of a case that is no longer suspended loses the reason `suspended`, at most `most` items in one transaction; other
-- reasons stay. It becomes available now, never earlier: what was due long ago would lie below the low watermark, where
-- acquisition does not look. Many come back spread over up to half a minute, and over `spread` seconds besides.
-- A message that another case threw and that waited for this one belongs to no case again, and looks anew who waits.
-- `outliving`: the case has ended or is being cancelled: only what is sent all the same is freed, deliveries and throws.
-- The caller has locked the root. Returns how many.
CREATE OR REPLACE FUNCTION baton_free_some(of_root uuid, most integer, spread double precision, outliving boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  instances uuid[];
  room integer := most;
  n integer;
BEGIN
  instances := ARRAY(SELECT i.id FROM process_instance i WHERE i.root_id = of_root);

  WITH mine AS MATERIALIZED (
    SELECT f.id, spread + least(30, 0.05 * greatest(0, count(*) OVER () - 10)) AS pace FROM (
      SELECT w.id FROM job w
      WHERE w.instance_id = ANY (instances) AND 'suspended' = ANY (w.held) AND (w.kind = 'throw' OR NOT outliving) LIMIT room) f
  )
  UPDATE job j SET held = array_remove(j.held, 'suspended'), instance_id = CASE j.kind WHEN 'throw' THEN NULL ELSE j.instance_id END,
    available_at = greatest(j.available_at, baton_clock() + random() * mine.pace * interval '1 second')
  FROM mine WHERE j.id = mine.id;
  GET DIAGNOSTICS n = ROW_COUNT;
  room := room - n;

  IF NOT outliving THEN
    WITH mine AS MATERIALIZED (
      SELECT f.id, spread + least(30, 0.05 * greatest(0, count(*) OVER () - 10)) AS pace FROM (
        SELECT w.id FROM external_task w WHERE w.instance_id = ANY (instances) AND 'suspended' = ANY (w.held) LIMIT room) f
    )
    UPDATE external_task e SET held = array_remove(e.held, 'suspended'),
      available_at = greatest(e.available_at, baton_clock() + random() * mine.pace * interval '1 second')
    FROM mine WHERE e.id = mine.id;
    GET DIAGNOSTICS n = ROW_COUNT;
    room := room - n;
  END IF;

  WITH mine AS MATERIALIZED (
    SELECT f.id, spread + least(30, 0.05 * greatest(0, count(*) OVER () - 10)) AS pace FROM (
      SELECT w.id FROM delivery w
      WHERE w.instance_id = ANY (instances) AND w.ended_at IS NULL AND 'suspended' = ANY (w.held) LIMIT room) f
  )
  UPDATE delivery d SET held = array_remove(d.held, 'suspended'),
    available_at = greatest(d.available_at, baton_clock() + random() * mine.pace * interval '1 second')
  FROM mine WHERE d.id = mine.id;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN most - room + n;
END $$;
