"""THE transition maps: every status of every thing, and where each may go next.

CHECK constraints, SQL guards, README pictures and the badges on screens are each tested against this file.
A status that is not a key of its map does not exist; a status with no successor is final.
"""

from collections.abc import Mapping
from types import MappingProxyType

TransitionMap = Mapping[str, frozenset[str]]


def _map(**moves: str) -> TransitionMap:
    return MappingProxyType({status: frozenset(following.split()) for status, following in moves.items()})


# Durable work (R1): jobs and external tasks. `failed` rests beside an incident until a person gives new attempts.
WORK = _map(
    available="leased cancelled",
    leased="available completed failed cancelled",
    failed="available cancelled",
    completed="",
    cancelled="",
)

# Outbox deliveries: the same life, and a person may skip one that is not leased.
DELIVERY = _map(
    available="leased cancelled skipped",
    leased="available completed failed cancelled",
    failed="available cancelled skipped",
    completed="",
    cancelled="",
    skipped="",
)

USER_TASK = _map(
    open="claimed cancelled",
    claimed="open completed cancelled",
    completed="",
    cancelled="",
)

# `mark` (suspended, cancelling) is not a status: it says what is being done to a running case.
INSTANCE = _map(running="completed cancelled", completed="", cancelled="")

# waiting: for a leaf (task, job, external task, subscription, inner scope). joining: at a gateway that still lacks
# tokens. listening: for the timer or message that starts an event subprocess; it does not keep its scope open.
# failed: could not go on; an incident stands beside it.
TOKEN = _map(waiting="joining failed", joining="waiting failed", listening="waiting failed", failed="waiting joining listening")

DEFINITION = _map(active="suspended deleting", suspended="active deleting", deleting="")

MARKS = frozenset({"suspending", "suspended", "cancelling"})
SUSPENDED = frozenset({"suspending", "suspended"})  # suspending: a job is still holding the work of a large case

MAPS: Mapping[str, TransitionMap] = MappingProxyType(
    {
        "job": WORK,
        "external_task": WORK,
        "delivery": DELIVERY,
        "user_task": USER_TASK,
        "process_instance": INSTANCE,
        "token": TOKEN,
        "process_definition": DEFINITION,
    }
)


def final(statuses: TransitionMap) -> frozenset[str]:
    """The statuses that nothing leaves."""
    return frozenset(status for status, following in statuses.items() if not following)
