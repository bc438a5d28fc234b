-- Level 2 for whoever takes over from definitions, or takes them away: FOR UPDATE, sorted, and only then their start
-- timers are read. A start under way has finished by then; one that begins now waits, and finds its cause gone.
CREATE OR REPLACE FUNCTION baton_lock_definitions(definition_ids uuid[]) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM process_definition d WHERE d.id = ANY (definition_ids) ORDER BY d.id FOR UPDATE;
  RETURN (
    SELECT coalesce(json_agg(json_build_object('definition_id', j.definition_id, 'element_id', j.element_id,
      'due_at', j.due_at, 'payload', j.payload)), '[]')
    FROM job j WHERE j.definition_id = ANY (definition_ids) AND j.kind = 'start_timer');
END $$;
