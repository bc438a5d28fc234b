-- Lock first: the root, then the leaf, and only then read, each in a statement of its own. VOLATILE, so that every
-- statement in here has a fresh snapshot; a single statement that locks and reads would read from before its wait.
CREATE OR REPLACE FUNCTION baton_lock_case(leaf_kind text, leaf_id uuid, whole boolean, lean boolean DEFAULT false) RETURNS json
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  root uuid;
BEGIN
  -- The root of a leaf never changes: read unlocked.
  CASE leaf_kind
    WHEN 'user_task' THEN SELECT l.root_id INTO root FROM user_task l WHERE l.id = leaf_id;
    WHEN 'job' THEN SELECT l.root_id INTO root FROM job l WHERE l.id = leaf_id;
    WHEN 'external_task' THEN SELECT l.root_id INTO root FROM external_task l WHERE l.id = leaf_id;
    WHEN 'subscription' THEN SELECT l.root_id INTO root FROM subscription l WHERE l.id = leaf_id;
    WHEN 'token' THEN SELECT l.root_id INTO root FROM token l WHERE l.id = leaf_id;
    WHEN 'instance' THEN SELECT l.root_id INTO root FROM process_instance l WHERE l.id = leaf_id;
  END CASE;
  PERFORM 1 FROM process_instance r WHERE r.id = root FOR NO KEY UPDATE;

  CASE leaf_kind
    WHEN 'user_task' THEN PERFORM 1 FROM user_task l WHERE l.id = leaf_id FOR NO KEY UPDATE;
    WHEN 'job' THEN PERFORM 1 FROM job l WHERE l.id = leaf_id FOR UPDATE;
    WHEN 'external_task' THEN PERFORM 1 FROM external_task l WHERE l.id = leaf_id FOR UPDATE;
    WHEN 'subscription' THEN PERFORM 1 FROM subscription l WHERE l.id = leaf_id FOR UPDATE;
    WHEN 'token' THEN PERFORM 1 FROM token l WHERE l.id = leaf_id FOR NO KEY UPDATE;
    ELSE NULL;
  END CASE;

  RETURN baton_read_case(leaf_kind, leaf_id, whole, lean);
END $$;
