"""Which workers are alive, and which handlers they know."""

from __future__ import annotations

SILENT_AFTER_SECONDS = 30  # a worker beats every few seconds; after this long without it counts as silent

ALIVE = f"w.stopped_at IS NULL AND w.heartbeat_at > baton_now() - make_interval(secs => {SILENT_AFTER_SECONDS})"
KNOWN_HANDLERS = f"ARRAY(SELECT DISTINCT k->>1 FROM worker w, jsonb_array_elements(w.kinds) k WHERE {ALIVE} AND k->>0 = 'service')"
