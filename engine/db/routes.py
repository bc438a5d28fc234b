"""Which registered destination a delivery belongs to, as SQL for whoever writes one."""

from __future__ import annotations

# For a row `u` like one of `delivery`, of the tenant of `go`: the destination `w` that its model names, else the one with the longest
# address that covers that of the delivery; none, if nobody has registered such a one.
DESTINATION_OF = (
    " LEFT JOIN LATERAL (SELECT d.* FROM destination d WHERE d.tenant_id = go.tenant_id AND d.kind = u.kind AND d.removed_at IS NULL"
    " AND CASE WHEN u.request ? 'destination' THEN d.name = u.request->>'destination'"
    " ELSE starts_with(u.address || '/', d.address || '/') END ORDER BY length(d.address) DESC LIMIT 1) w ON true"
)
ORIGIN = "substring(u.address FROM '^[a-z]*:(?://[^/]*)?')"  # the name of one that nobody has registered
