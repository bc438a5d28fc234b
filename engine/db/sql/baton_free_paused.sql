-- One bounded step after a pause was taken back: what is held and no pause covers any more becomes available, now. Which pause it
-- was does not matter: all that are left are asked. It looks three times, at once, ten seconds later and five minutes later, for
-- what somebody had locked, or wrote with the pause still in sight; how far it came stands in the job (kind `hold`).
-- Locks the job and compares the lease; items only where nobody has them.
-- Returns {"rows": how many, "ended": whether that was all}; {"again": true} besides: the job is free again, for later;
-- NULL: the lease was lost, and nothing changed.
CREATE OR REPLACE FUNCTION baton_free_paused(of_job uuid, leased_under bigint, most integer) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  mine job%ROWTYPE;
  told jsonb;
  after uuid;
  reached uuid;
  seen integer;
  looks integer;
BEGIN
  SELECT j.* INTO mine FROM job j WHERE j.id = of_job AND j.status = 'leased' AND j.lease_number = leased_under FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  told := mine.payload;
  after := coalesce((told->>'after')::uuid, '00000000-0000-0000-0000-000000000000');
  looks := coalesce((told->>'looks')::integer, 0);

  IF coalesce(told->>'table', 'job') = 'job' THEN
    WITH page AS MATERIALIZED (
      SELECT j.id, j.held, j.tenant_id, j.kind, j.topic, j.definition_id, j.element_id FROM job j
      WHERE j.held <> '{}' AND j.id > after ORDER BY j.id LIMIT most
    ), over AS MATERIALIZED (
      SELECT j.id FROM job j JOIN page ON page.id = j.id
      WHERE 'paused' = ANY (page.held) AND NOT baton_is_paused(page.tenant_id, page.kind, page.topic,
        (SELECT d.key FROM process_definition d WHERE d.id = page.definition_id), page.element_id)
      FOR UPDATE OF j SKIP LOCKED
    ), freed AS (
      UPDATE job j SET held = array_remove(j.held, 'paused'),
        available_at = greatest(j.available_at, baton_clock() + random() * least(30, 0.05 * greatest(0, (SELECT count(*) FROM over) - 10)) * interval '1 second')
      FROM over WHERE j.id = over.id
    )
    SELECT count(*), (array_agg(id ORDER BY id DESC))[1] INTO seen, reached FROM page;
  ELSIF told->>'table' = 'external_task' THEN
    WITH page AS MATERIALIZED (
      SELECT e.id, e.held, e.tenant_id, e.topic, e.definition_id, e.element_id FROM external_task e
      WHERE e.held <> '{}' AND e.id > after ORDER BY e.id LIMIT most
    ), over AS MATERIALIZED (
      SELECT e.id FROM external_task e JOIN page ON page.id = e.id
      WHERE 'paused' = ANY (page.held) AND NOT baton_is_paused(page.tenant_id, 'external_task', page.topic,
        (SELECT d.key FROM process_definition d WHERE d.id = page.definition_id), page.element_id)
      FOR UPDATE OF e SKIP LOCKED
    ), freed AS (
      UPDATE external_task e SET held = array_remove(e.held, 'paused'),
        available_at = greatest(e.available_at, baton_clock() + random() * least(30, 0.05 * greatest(0, (SELECT count(*) FROM over) - 10)) * interval '1 second')
      FROM over WHERE e.id = over.id
    )
    SELECT count(*), (array_agg(id ORDER BY id DESC))[1] INTO seen, reached FROM page;
  ELSE
    WITH page AS MATERIALIZED (
      SELECT d.id, d.held, d.tenant_id, d.kind, d.definition_id, d.element_id FROM delivery d
      WHERE d.held <> '{}' AND d.ended_at IS NULL AND d.id > after ORDER BY d.id LIMIT most
    ), over AS MATERIALIZED (
      SELECT d.id FROM delivery d JOIN page ON page.id = d.id
      WHERE 'paused' = ANY (page.held) AND NOT baton_is_paused(page.tenant_id, page.kind, '',
        (SELECT v.key FROM process_definition v WHERE v.id = page.definition_id), page.element_id)
      FOR UPDATE OF d SKIP LOCKED
    ), freed AS (
      UPDATE delivery d SET held = array_remove(d.held, 'paused'),
        available_at = greatest(d.available_at, baton_clock() + random() * least(30, 0.05 * greatest(0, (SELECT count(*) FROM over) - 10)) * interval '1 second')
      FROM over WHERE d.id = over.id
    )
    SELECT count(*), (array_agg(id ORDER BY id DESC))[1] INTO seen, reached FROM page;
  END IF;

  IF seen = most THEN
    UPDATE job j SET payload = j.payload || jsonb_build_object('after', reached) WHERE j.id = of_job;
    RETURN json_build_object('rows', seen, 'ended', false);
  ELSIF coalesce(told->>'table', 'job') <> 'delivery' THEN
    UPDATE job j SET payload = (j.payload - 'after') || jsonb_build_object('table',
      CASE coalesce(told->>'table', 'job') WHEN 'job' THEN 'external_task' ELSE 'delivery' END) WHERE j.id = of_job;
    RETURN json_build_object('rows', seen, 'ended', false);
  ELSIF looks < 2 THEN
    UPDATE job j SET payload = (j.payload - 'after' - 'table') || jsonb_build_object('looks', looks + 1), status = 'available',
      attempts = j.attempts - 1, lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL,
      available_at = baton_clock() + CASE looks WHEN 0 THEN interval '10 seconds' ELSE interval '5 minutes' END
    WHERE j.id = of_job;
    RETURN json_build_object('rows', seen, 'ended', true, 'again', true);
  END IF;
  PERFORM baton_end_job(of_job);
  RETURN json_build_object('rows', seen, 'ended', true);
END $$;
