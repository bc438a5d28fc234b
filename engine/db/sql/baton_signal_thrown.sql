-- What the job of a thrown signal carries besides: who is to have it. Of the cases that wait, those whose subscription was
-- committed when the statement that throws began: its snapshot says so, whenever the job runs. Of the start events, which
-- are few, those of now by name: a version that replaces them before the job runs changes nothing for this signal.
-- STABLE on purpose and without locks: both are read from the snapshot of the statement that throws.
CREATE OR REPLACE FUNCTION baton_signal_thrown(tenant text, thrown jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN thrown || jsonb_build_object('snapshot', pg_current_snapshot()::text, 'starts', (
    SELECT coalesce(jsonb_agg(jsonb_build_object('definition_id', s.definition_id, 'element_id', s.element_id) ORDER BY s.id), '[]')
    FROM subscription s
    WHERE s.tenant_id = tenant AND s.message_name = thrown->>'name' AND s.correlation_key = '' AND s.kind = 'signal_start'));
END $$;
