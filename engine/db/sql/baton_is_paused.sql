-- Whether an item rests because somebody paused its kind and topic (or all topics of its kind), its process, or its element.
-- `work`: the kind of a job or delivery, or external_task. Asked where there is a pause at all (engine/db/pauses.py).
CREATE OR REPLACE FUNCTION baton_is_paused(tenant text, work text, work_topic text, process_key text, element text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pause p WHERE p.tenant_id = tenant AND (
    p.kind = work AND p.topic IN (work_topic, '*')
    OR p.kind = 'definition' AND p.topic = process_key
    OR p.kind = 'element' AND p.topic = process_key || '/' || element));
END $$;
