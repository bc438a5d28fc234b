-- Exclusive work of a case is done one at a time: if none of it is free or leased, the first that waits is let go of. Called
-- by whoever holds the root's lock, after its write and in a statement of its own, so that it sees what went by cascade.
-- What rests as failed has given its turn up. First goes what nothing else holds, then what came first.
-- It is free from now on, not since it was written: acquisition does not look below its low watermark.
CREATE OR REPLACE FUNCTION baton_take_turn(of_root uuid) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  next_one record;
BEGIN
  IF EXISTS (SELECT FROM job j WHERE j.root_id = of_root AND j.exclusive AND j.status <> 'failed' AND NOT j.held @> '{exclusive}')
    OR EXISTS (
      SELECT FROM external_task e WHERE e.root_id = of_root AND e.exclusive AND e.status <> 'failed' AND NOT e.held @> '{exclusive}')
  THEN
    RETURN;
  END IF;
  SELECT w.id INTO next_one FROM (
    (SELECT j.id, j.held <> '{exclusive}' AS stopped, j.created_at FROM job j
      WHERE j.root_id = of_root AND j.exclusive AND j.held @> '{exclusive}' ORDER BY 2, 3, 1 LIMIT 1)
    UNION ALL
    (SELECT e.id, e.held <> '{exclusive}' AS stopped, e.created_at FROM external_task e
      WHERE e.root_id = of_root AND e.exclusive AND e.held @> '{exclusive}' ORDER BY 2, 3, 1 LIMIT 1)) w
  ORDER BY w.stopped, w.created_at, w.id LIMIT 1;
  UPDATE job j SET held = array_remove(j.held, 'exclusive'), available_at = greatest(j.available_at, baton_clock())
  WHERE j.id = next_one.id;
  UPDATE external_task e SET held = array_remove(e.held, 'exclusive'), available_at = greatest(e.available_at, baton_clock())
  WHERE e.id = next_one.id;
END $$;
