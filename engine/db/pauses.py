"""What somebody paused is not begun: the one condition, as SQL, of whoever writes an item, reads a leased one, or hands one back.

A pause is a row of `pause`: (tenant, kind, topic). `kind`: of a job or delivery, or external_task, with a topic or `*` for all of
them; or `definition`, whose topic is the key of a process; or `element`, whose topic is key/element. Where nothing is paused, it
costs one look at an empty table in each statement.
"""

from __future__ import annotations

_KEY = "(SELECT v.key FROM process_definition v WHERE v.id = {a}.definition_id)"
_WORK = {"job": ("{a}.kind", "{a}.topic"), "external_task": ("'external_task'", "{a}.topic"), "delivery": ("{a}.kind", "''")}
# The engine's own jobs that hold, free and cancel belong to a process and are none of its work.
_OWN = "{a}.kind NOT IN ('hold', 'cancel') AND "


def is_paused(tenant: str, kind: str, topic: str, process: str, element: str) -> str:
    """SQL: whether an item with these rests; expressions of the statement that it becomes part of."""
    return f"EXISTS (SELECT FROM pause) AND baton_is_paused({tenant}, {kind}, {topic}, {process}, {element})"


def row_is_paused(table: str, alias: str) -> str:
    """SQL: whether this row of a table of durable work rests."""
    own = _OWN.format(a=alias) if table == "job" else ""
    kind, topic, process = (text.format(a=alias) for text in (*_WORK[table], _KEY))
    return f"({own}{is_paused(f'{alias}.tenant_id', kind, topic, process, f'{alias}.element_id')})"
