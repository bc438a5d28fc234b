"""The row that a message with an id leaves behind, as members of the statement that has its effect."""

from __future__ import annotations


# An id that counts no more makes room. Of one that counts, pk_message_receipt rolls everything back.
def receipt(source: str, at: str) -> str:
    """The members that keep the id of a message, for a statement whose member `source` has written the effect."""
    return (
        f"forgotten_id AS (DELETE FROM message_receipt r USING {source} WHERE r.tenant_id = %(tenant_id)s AND r.name = %(receipt_name)s"
        " AND r.message_id = %(receipt_id)s AND r.kept_until <= baton_now() RETURNING 1),\n"
        "kept_id AS (INSERT INTO message_receipt (tenant_id, name, message_id, correlation_key, outcome, published_at, kept_until)"
        f" SELECT %(tenant_id)s, %(receipt_name)s, %(receipt_id)s, %(receipt_key)s, %(receipt)s::jsonb, {at},"
        f" {at} + make_interval(secs => %(receipt_seconds)s) FROM {source}, (SELECT count(*) FROM forgotten_id) f)"
    )
