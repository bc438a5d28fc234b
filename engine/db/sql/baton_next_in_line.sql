-- Deliveries with an ordering key stand in a line (tenant, route, line) and are written held (`ordered`). Whatever of a line has not ended
-- and is not held so is its first: free, being sent, failed, or held for another reason. A line without a first has its oldest let go of;
-- uq_delivery_first_in_line allows no second one, so that a caller may meet 23505, and looks again.
-- Looks at no more than `most` lines, from the one after (tenant, route, line); rows that somebody has locked wait for the next look.
-- What is let go of is free from now on: acquisition does not look below its low watermark.
-- Returns {"freed": how many, "after": [tenant, route, line] of the last line, or null if there are no more}.
CREATE OR REPLACE FUNCTION baton_next_in_line(after_tenant text, after_route text, after_line text, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  heads uuid[];
  seen integer;
  reached json;
  n integer := 0;
BEGIN
  WITH RECURSIVE hop AS (
    (SELECT w.tenant_id, w.route, w.line, 1 AS nth FROM delivery w
      WHERE w.line IS NOT NULL AND w.ended_at IS NULL AND w.held @> '{ordered}'
        AND (w.tenant_id, w.route, w.line) > (after_tenant, after_route, after_line)
      ORDER BY w.tenant_id, w.route, w.line LIMIT 1)
    UNION ALL
    SELECT next.tenant_id, next.route, next.line, hop.nth + 1 FROM hop CROSS JOIN LATERAL (
      SELECT w.tenant_id, w.route, w.line FROM delivery w
      WHERE w.line IS NOT NULL AND w.ended_at IS NULL AND w.held @> '{ordered}'
        AND (w.tenant_id, w.route, w.line) > (hop.tenant_id, hop.route, hop.line)
      ORDER BY w.tenant_id, w.route, w.line LIMIT 1) next
    WHERE hop.nth < most
  ), oldest AS (
    SELECT w.id, hop.nth FROM hop CROSS JOIN LATERAL (
      SELECT d.id FROM delivery d
      WHERE d.tenant_id = hop.tenant_id AND d.route = hop.route AND d.line = hop.line AND d.ended_at IS NULL AND d.held @> '{ordered}'
      ORDER BY d.created_at, d.id LIMIT 1) w
    WHERE NOT EXISTS (
      SELECT FROM delivery f WHERE f.tenant_id = hop.tenant_id AND f.route = hop.route AND f.line = hop.line
        AND f.ended_at IS NULL AND NOT f.held @> '{ordered}')
  )
  SELECT ARRAY(SELECT id FROM oldest), count(*), (array_agg(json_build_array(tenant_id, route, line) ORDER BY nth DESC))[1]
  INTO heads, seen, reached FROM hop;

  IF heads <> '{}' THEN
    WITH mine AS MATERIALIZED (
      SELECT d.id FROM delivery d WHERE d.id = ANY (heads) AND d.ended_at IS NULL AND d.held @> '{ordered}'
      ORDER BY d.id FOR UPDATE SKIP LOCKED
    )
    UPDATE delivery d SET held = array_remove(d.held, 'ordered'), available_at = greatest(d.available_at, baton_clock())
    FROM mine WHERE d.id = mine.id;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN json_build_object('freed', n, 'after', CASE WHEN seen = most THEN reached END);
END $$;
