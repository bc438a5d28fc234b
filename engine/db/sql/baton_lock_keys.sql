-- Take advisory transaction locks, all at once and sorted by number (in opposite orders two sessions stall or deadlock).
-- The look that follows is a statement of the caller's own, begun after this call.
CREATE OR REPLACE FUNCTION baton_lock_keys(exclusive bigint[], shared bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  k record;
BEGIN
  FOR k IN
    SELECT n, bool_or(alone) AS alone
    FROM (SELECT unnest(exclusive) AS n, true AS alone UNION ALL SELECT unnest(shared), false) keys
    GROUP BY n ORDER BY n
  LOOP
    IF k.alone THEN
      PERFORM pg_advisory_xact_lock(k.n);
    ELSE
      PERFORM pg_advisory_xact_lock_shared(k.n);
    END IF;
  END LOOP;
END $$;
