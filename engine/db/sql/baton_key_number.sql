-- The advisory lock number of a message key; key NULL: the message name at large (engine/db/locks.py, level 5).
CREATE OR REPLACE FUNCTION baton_key_number(tenant text, message_name text, message_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtextextended(tenant || chr(31) || message_name || coalesce(chr(31) || message_key, ''), 0)
$$;
