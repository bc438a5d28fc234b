"""What a write has of each kind: by this its statement is composed, once."""

from __future__ import annotations

from typing import NamedTuple


class Mix(NamedTuple):
    """Which members a writing statement has. `leaf`: a key of locks.LEAF, or start | start_newest | start_by_job.

    Numbers are 0, 1, or 2 for several: a row alone of its kind comes as parameters (single_rows), which are read faster.
    A tuple, because each write makes one, hashes it and compares it to find its statement.
    """

    leaf: str
    ended: bool = False
    calls: bool = False  # instances begin that are called, under the locks of their definitions
    returns: bool = False  # called instances end
    several: bool = False  # rows of more than one instance; they say of which
    scopes: int = 0
    gone_scopes: bool = False
    counters: bool = False
    tokens: int = 0
    moved: int = 0
    gone_tokens: bool = False
    remember: bool = False  # a new or moved token has a memory
    memories: bool = False  # that of tokens which stay
    variables: int = 0
    fresh: bool = False  # variables of scopes that begin with them: none of that name is there
    tasks: int = 0
    entries: bool = False  # of the inbox
    cancelled: bool = False
    jobs: int = 0
    external_tasks: bool = False
    exclusive: bool = False  # some of those are
    subscriptions: bool = False
    gone_subscriptions: bool = False
    deliveries: bool = False
    throws: bool = False
    fires: bool = False  # an occurrence of a schedule
    incidents: bool = False
    resolved: bool = False
    executions: bool = False
    moved_executions: bool = False
    handed_over: bool = False
    gone_executions: bool = False
    forgets: bool = False  # ends an instance that may have executions
    keys_later: bool = False  # the caller takes the keys together with a message, or after the next turn
    receipt: bool = False  # of a message that has an id
    alone: bool = False  # what starts is alone for its key (locks.GATHERED)
    request: str = ""  # the request member's text, from engine.commands.requests; empty: none
